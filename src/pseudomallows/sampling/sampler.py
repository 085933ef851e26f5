"""What the methods that sample alpha along with the consensus share."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import MOVES
from ..engines.progress import Progress
from ..laws.law import Law
from ..posteriors.names import STARTS
from ..preferences import Preferences
from .chain import Moves
from .options import Case, Method, Plan, above_0, count, one_of, option
from .priors import FLAT, AlphaPrior, default_prior
from .run import TEMPERED_DRAWS, Lengths, Run

LEAST_DRAWS, ROOM = 10, 2**29  # draws of a chain, and bytes of all, of a huge catalogue
N_MOVES = 10  # in a sweep, for each item
BLOCK_DISTANCES, CLICK_DISTANCES = ("footrule", "hamming"), ("footrule", "kendall")
USUAL_MOVES = {"cayley": ("swap", 30), "ulam": ("insert", 3)}  # and numbers, by what they cost


def check_prior(prior: Any, name: str) -> AlphaPrior:
    if isinstance(prior, str) and prior == "flat":
        return FLAT
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha_prior must be (shape, rate) of a gamma, or "flat", got {prior!r}'
        ) from None
    return AlphaPrior(above_0(shape, "alpha_prior shape"), above_0(rate, "alpha_prior rate"))


@dataclass(frozen=True, kw_only=True)
class Sampler(Method):
    """Metropolis steps on the consensus and on alpha, which has a prior."""

    samples_alpha: ClassVar[bool] = True

    n_chains: int = option(4, "Number of chains; default 4.", check=count())
    warmup: int | None = option(
        None,
        "Sweeps thrown away at the start of a chain; default half of n_draws * thin, at least 100 "
        "(with clusters a fifth, at least 50; where latent rankings are summed out a quarter, at "
        "least 20).",
        check=count(0),
    )
    thin: int | None = option(
        None,
        "Sweeps for each draw that is kept; default 1, and 5 where a chain keeps latent rankings.",
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
        "Proposals for each cluster in a sweep; default 10 n_items (30 n_items by Cayley's "
        "distance, 3 n_items by Ulam's), and by the footrule where something is not known as many "
        "as the warmup finds best between two corrections, at most 200 n_items.",
        check=count(),
    )
    temperatures: int | None = option(
        None,
        "Replicas of each chain on flatter and flatter posteriors, with which it exchanges states "
        "(parallel tempering), for one cluster without latent rankings; default: none, unless "
        "chains end in different modes.",
        lambda case: not case.has_clusters,
        count(2),
    )
    alpha_prior: Any = option(
        None,
        "Gamma prior of alpha, (shape, rate). The default, (2, 2 / n_items + 1 / 20), has a mean "
        'of n_items for few items and of 40 for many; "flat" is (1, 0.001), nearly flat.',
        check=check_prior,
    )
    start: str = option(
        "dispersed",
        'Where the chains begin: "map" at the best consensus that is found, "random" each at a '
        'random one, "dispersed" (default) every second chain at the furthest good place that '
        "moves from random ones lead to, so that R-hat can see a second mode.",
        lambda case: not case.has_clusters,
        one_of(*STARTS),
    )

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """Proposals and prior by the number of items."""
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
        }

    def is_matched(self, case: Case) -> bool:
        """Are the proposals as many as the law finds best?"""
        return self.sums_out(case) and not case.is_full

    def sums_out(self, case: Case) -> bool:
        """Is what is not known summed out, so that a sweep is worth a draw?"""
        if case.has_clicks:
            return self.distance in CLICK_DISTANCES
        return case.is_full or (case.is_partial and self.distance in BLOCK_DISTANCES)

    def make_run(
        self,
        law: Law,
        prefs: Preferences,
        owners: NDArray[np.int64],
        plan: Plan,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Run:
        """The chains."""
        if self.temperatures is not None and law.has_latent:
            raise ValueError(
                "temperatures: chains that keep latent rankings have no replicas: leave it out"
            )
        prior = self.alpha_prior if plan.alpha is None else None
        weights = float(self.share_prior)
        leap, is_exact = int(self.leap or 1), self.is_exact
        moves = Moves(self.move, leap, self.n_moves, prior, weights, is_exact)
        lengths = Lengths(self.n_chains, plan.n_draws, plan.warmup, plan.thin)
        return Run(
            law,
            prefs,
            owners,
            plan.case.n_clusters,
            plan.alpha,
            moves,
            lengths,
            rng,
            progress,
            kept_rows=plan.kept_rows,
            starts=self.start_of,
            last_states=plan.last_draws,
            is_checked=self.is_checked and not law.is_exact,
            temperatures=self.temperatures,
        )

    def start_of(self, number: int) -> str:
        """Where the chain of this number begins: "map", "random" or "elsewhere"."""
        if self.start != "dispersed":
            return self.start
        return "elsewhere" if number % 2 else "map"

    def is_markov(self, case: Case) -> bool:
        """Always."""
        return True

    def default_thin(self, case: Case) -> int:
        """Latent rankings that a chain keeps move slowly."""
        return 1 if self.sums_out(case) else 5

    def default_warmup(self, case: Case, n_sweeps: int) -> int:
        """The additive law is a good start."""
        quarter = max(20, n_sweeps // 4)
        is_quick = self.sums_out(case) and not case.is_full
        return quarter if is_quick else super().default_warmup(case, n_sweeps)

    def default_draws(self, case: Case) -> int:
        """Draws are nearly independent where proposals are as many as the law finds best; of a huge
        catalogue only as many as have room."""
        factor = 1 if self.temperatures is None else TEMPERED_DRAWS
        if not self.is_matched(case):
            return 200 * factor
        of_one = 4 * case.n_items * case.n_clusters * self.n_chains
        return factor * min(100, max(LEAST_DRAWS, ROOM // of_one))

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return super().settings(case) | {"alpha_prior": list(self.alpha_prior)}
