"""Method "balanced": Pseudo-Mallows with a price for each rank, and importance weights."""

from dataclasses import dataclass
from typing import ClassVar

from ..paper.clicks import PseudoMoves
from .fit_pseudo import PseudoMethod
from .options import Case, flag, option


@dataclass(frozen=True, kw_only=True)
class Balanced(PseudoMethod):
    """Draws whose ranks are priced, so that none is in excess demand, with weights to be exact."""

    name: ClassVar[str] = "balanced"
    words: ClassVar[str] = "balanced Pseudo-Mallows, with weights that correct its error"

    weighted: bool = option(
        True,
        "Correct the approximation by importance weights. On full rankings the draws carry them; "
        "on partial ones each sweep chooses by them.",
        check=flag,
    )

    def default_draws(self, case: Case) -> int:
        """Independent weighted draws are cheap."""
        return 200 if self.is_markov(case) else 4000

    def default_thin(self, case: Case) -> int:
        """A sweep moves little."""
        return 1 if case.is_full else 5 if case.has_clusters else 10

    def moves(self, case: Case) -> PseudoMoves:
        """How a cluster moves."""
        return PseudoMoves(balanced=True, weighted=self.weighted)
