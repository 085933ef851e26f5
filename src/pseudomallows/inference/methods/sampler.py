"""What the methods that sample alpha along with the consensus share."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ...distances.tallies import MOVES
from ...posteriors.names import STARTS
from ..priors import FLAT, Prior, default_prior
from .method import Case, Method, above_0, clusters_only, count, one_of, option

N_MOVES = 10  # in a sweep, for each item
USUAL_MOVES = {"cayley": ("swap", 30), "ulam": ("insert", 3)}  # and numbers, by what they cost


def _check_prior(prior: Any, name: str) -> Prior:
    if isinstance(prior, str) and prior == "flat":
        return FLAT
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha_prior must be (shape, rate) of a gamma, or "flat", got {prior!r}'
        ) from None
    return above_0(shape, "alpha_prior shape"), above_0(rate, "alpha_prior rate")


@dataclass(frozen=True, kw_only=True)
class Sampler(Method):
    """Metropolis steps on the consensus and on alpha, which has a prior."""

    samples_alpha: ClassVar[bool] = True

    n_chains: int = option(4, "Number of chains; default 4.", check=count())
    warmup: int | None = option(
        None,
        "Sweeps thrown away at the start of a chain; default half of n_draws * thin, at least 100 "
        "(with clusters a fifth, at least 50; for clicks a quarter, at least 20).",
        check=count(0),
    )
    thin: int | None = option(
        None,
        "Sweeps for each draw that is kept; default 1 for full rankings and for clicks, else 5.",
        check=count(),
    )
    move: str | None = option(
        None,
        'Proposals: "swap" (default) or "leap_and_shift"; for Ulam\'s distance "insert" (default): '
        "an item is taken out, and its new place drawn by its exact probabilities.",
        check=one_of(*MOVES),
    )
    leap: int | None = option(
        None, "How far a leap goes, in places; default n_items / 5.", check=count()
    )
    n_moves: int | None = option(
        None,
        "Proposals in a sweep; default 10 n_items (30 n_items by Cayley's distance, 3 n_items by "
        "Ulam's), and for clicks by the footrule as many as the warmup finds best "
        "between two corrections, at most 200 n_items; of each of several clusters at most 40 "
        "n_items, between which labels are drawn anew (method='matched': 2 to 10 "
        "rounds, of 40 n_items in all or 10 each).",
        check=count(),
    )
    refresh: int | None = option(
        None,
        "Sweeps between two draws of the users' labels and of the shares of the clusters; default "
        "1 for full rankings, else 5.",
        clusters_only,
        count(),
    )
    alpha_prior: Any = option(
        None,
        "Gamma prior of alpha, (shape, rate). The default, (2, 2 / n_items + 1 / 20), has a mean "
        'of n_items for few items and of 40 for many; "flat" is (1, 0.001), nearly flat.',
        check=_check_prior,
    )
    start: str = option(
        "dispersed",
        'Where the chains begin: "map" at the best consensus that is found, "random" each at a '
        'random one, "dispersed" (default) every second chain at a random one, so that R-hat can '
        "see a second mode.",
        lambda case: not case.has_clusters,
        one_of(*STARTS),
    )

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """Proposals and prior by the number of items."""
        refresh = self.default_refresh(case) if self.refresh is None else self.refresh
        if self.refresh is not None and refresh > n_sweeps:
            raise ValueError(
                f"refresh must be at most the {n_sweeps} sweeps after the warmup, got {refresh}"
            )
        if self.is_matched(case) and self.refresh is not None:
            raise ValueError("refresh: the labels of clusters of clicks are drawn in every round")
        if self.move == "insert" and self.distance != "ulam":
            raise ValueError(
                f"move='insert' is for distance='ulam' only, got distance={self.distance!r}: use "
                "'swap' or 'leap_and_shift'"
            )
        usual_move, number = USUAL_MOVES.get(self.distance, ("swap", N_MOVES))
        move = self.move or usual_move
        number = number if move == usual_move else N_MOVES
        leap = max(1, case.n_items // 5) if self.leap is None else self.leap
        n_moves = None if self.is_matched(case) else number * case.n_items
        n_moves = n_moves if self.n_moves is None else self.n_moves
        prior = default_prior(case.n_items) if self.alpha_prior is None else self.alpha_prior
        return {
            "move": move,
            "leap": min(leap, case.n_items - 1),
            "n_moves": n_moves,
            "alpha_prior": prior,
            "refresh": min(refresh, n_sweeps),
        }

    def start_of(self, number: int) -> str:
        """Where the chain of this number begins: "map", "random" or "elsewhere"."""
        if self.start != "dispersed":
            return self.start
        return "elsewhere" if number % 2 else "map"

    def is_markov(self, case: Case) -> bool:
        """Always."""
        return True

    def default_thin(self, case: Case) -> int:
        """A sweep on the matched law is worth a draw."""
        return 1 if self.is_matched(case) else super().default_thin(case)

    def default_warmup(self, case: Case, n_sweeps: int) -> int:
        """The matched law is a good start."""
        quarter = max(20, n_sweeps // 4)
        return quarter if self.is_matched(case) else super().default_warmup(case, n_sweeps)

    def default_refresh(self, case: Case) -> int:
        """Sweeps between two draws of the labels, which are cheap by the matched law."""
        is_cheap = case.is_full or not case.has_clusters or self.is_matched(case)
        return 1 if is_cheap else 5

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return super().settings(case) | {"alpha_prior": list(self.alpha_prior)}
