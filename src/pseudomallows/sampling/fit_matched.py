"""Method "matched": blocks by the additive law alone, which never visits the users again."""

from dataclasses import dataclass
from typing import ClassVar

from .options import Case
from .sampler import Sampler


@dataclass(frozen=True, kw_only=True)
class Matched(Sampler):
    """A chain on the additive law of blocks, without the exact correction of "mcmc". It says how
    far the two are apart."""

    name: ClassVar[str] = "matched"
    words: ClassVar[str] = "an additive law of what is known, which is very nearly exact"
    is_checked: ClassVar[bool] = True

    @staticmethod
    def is_for(case: Case) -> bool:
        """Clicks, and rankings of which something is not known."""
        return case.has_clicks or case.is_partial

    def check_distance(self, case: Case) -> None:
        """The additive law is one of the footrule; others need none, or have none."""
        if self.distance != "footrule":
            raise ValueError(
                f"method='matched' works with the footrule only, got distance={self.distance!r}: "
                "use method='mcmc'"
            )
