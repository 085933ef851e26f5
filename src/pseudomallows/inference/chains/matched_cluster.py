"""One cluster of users of clicks in a chain on the matched law.

It moves for a stretch by swaps and steps of alpha that leave its matched posterior as it is, which
costs no visit to the users. Then the whole stretch is accepted by how much more the exact
likelihood changed than the matched one: a surrogate transition, after which the exact posterior is
left as it is.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...distances.tallies import Ranking
from ...files.saved import Saved
from ...kernels.streams import CHAIN, start_stream
from ...latent.click_laws import ClickTally, Curve
from ...latent.population import DrawOrigin
from ...rankings import MAX_ALPHA, rank_randomly
from ..priors import LOWEST_ALPHA, Prior, log_density
from .clustered import MAX_SWEEPS, TARGET_ACCEPTANCE

N_ALPHA_STEPS = 5  # before the swaps of a stretch, and after them: the same there and back
FIRST_MOVES, LEAST_MOVES, MOST_MOVES = 100.0, 1.0, 200.0  # swaps of a stretch, for each item
TARGET_STRETCHES = 0.6  # of the stretches are to be accepted, unless all may be as long as can be
CLIMB = 0.5  # of log alpha, in a search for the best


class Stretch(NamedTuple):
    """Where a stretch of moves on the matched posterior leads, and how its log likelihood changes
    on the way."""

    consensus: Ranking
    alpha: float
    change: float


class MatchedProposals(NamedTuple):
    """The Metropolis proposals of a stretch; without `n_moves` the warmup finds how many."""

    move: str = "swap"
    leap: int = 1
    n_moves: int | None = None


class MatchedCluster:
    """A consensus and its alpha, that move on the matched posterior of the cluster's users."""

    tally: ClickTally

    def __init__(
        self,
        consensus: Ranking,
        alpha: float,
        proposals: MatchedProposals,
        prior: Prior | None,  # of alpha; None: alpha is given
        rng: np.random.Generator,
    ):
        self.consensus, self.alpha, self.rng = consensus, alpha, rng
        self._prior, self._proposals = prior, proposals
        self.seed = int(rng.integers(2**63))
        self.n_sweeps = 0
        self.log_step = math.log(0.1)
        self.log_moves = math.log(proposals.n_moves or FIRST_MOVES * len(consensus))
        self.log_likelihood = math.nan  # exact, of what is known of the users
        self._stream = np.empty(1, dtype=np.uint64)

    @property
    def is_fixed(self) -> bool:
        """Is alpha given?"""
        return self._prior is None

    @property
    def has_users(self) -> bool:
        """Is anyone in the cluster?"""
        return not self.tally.is_empty

    @property
    def origin(self) -> DrawOrigin:
        """Of the latent rankings that go with the state."""
        return DrawOrigin(self.consensus.copy(), self.alpha, self.seed, self.n_sweeps)

    def log_prior(self) -> float:
        """Log prior density of alpha, if it is sampled."""
        return 0.0 if self._prior is None else log_density(self._prior, self.alpha)

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps."""
        return {
            "consensus": self.consensus.copy(),
            "alpha": float(self.alpha),
            "seed": self.seed,
            "n_sweeps": self.n_sweeps,
            "log_step": self.log_step,
            "log_moves": self.log_moves,
            "rng": self.rng.bit_generator.state,
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        n_items = len(self.consensus)
        self.consensus = saved.rankings("consensus", (n_items,))
        self.alpha = saved.number("alpha", 0.0 if self.is_fixed else LOWEST_ALPHA, MAX_ALPHA)
        self.seed = saved.count("seed", 0, 2**63 - 1)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self.log_step = saved.number("log_step", -700.0, 700.0)
        self.log_moves = saved.number("log_moves", 0.0, 700.0)
        self.rng = saved.generator("rng")

    def stretch(self, adapt: bool) -> Stretch:
        """Steps of alpha, swaps, steps of alpha: palindromic, so reversible as a whole."""
        self.n_sweeps += 1
        before = self.tally.curve(self.consensus)
        alpha = self._step_alpha(before, self.alpha, adapt)
        consensus = self.consensus.copy()
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        n_moves, how = round(math.exp(self.log_moves)), self._proposals
        self.tally.move(self._stream, alpha, n_moves, consensus, how.move, how.leap)
        after = self.tally.curve(consensus)
        alpha = self._step_alpha(after, alpha, adapt)
        return Stretch(consensus, alpha, after(alpha) - before(self.alpha))

    def _step_alpha(self, curve: Curve, alpha: float, adapt: bool) -> float:
        """A random walk on log alpha."""
        if self._prior is None:
            return alpha
        here = curve(alpha) + log_density(self._prior, alpha) + math.log(alpha)
        for _ in range(N_ALPHA_STEPS):
            step = math.exp(self.log_step) * self.rng.standard_normal()
            new = alpha * math.exp(min(max(step, -50.0), 50.0))
            accepted = False
            if LOWEST_ALPHA <= new <= MAX_ALPHA:
                there = curve(new) + log_density(self._prior, new) + math.log(new)
                accepted = math.log1p(-self.rng.random()) < there - here
            if accepted:
                alpha, here = new, there
            if adapt:
                self.log_step += self._rate * (accepted - TARGET_ACCEPTANCE)
        return alpha

    @property
    def _rate(self) -> float:
        """How much one more sweep teaches."""
        return 1 / math.sqrt(1 + self.n_sweeps)

    def take(self, stretch: Stretch) -> None:
        """Go there."""
        self.consensus, self.alpha = stretch.consensus, stretch.alpha

    def judge(self, stretch: Stretch, proposed: float, adapt: bool) -> bool:
        """Accept the stretch, or not, by the exact log likelihood where it leads."""
        log_ratio = proposed - self.log_likelihood - stretch.change
        accepted = math.log1p(-self.rng.random()) < log_ratio
        if accepted:
            self.take(stretch)
            self.log_likelihood = proposed
        if adapt and self._proposals.n_moves is None:
            n_items = len(self.consensus)
            low, high = math.log(LEAST_MOVES * n_items), math.log(MOST_MOVES * n_items)
            change = 2 * self._rate * (min(1.0, math.exp(min(log_ratio, 0.0))) - TARGET_STRETCHES)
            self.log_moves = min(max(self.log_moves + change, low), high)
        return accepted

    def wander(self) -> None:
        """A move without any users: the consensus anywhere, alpha by its prior."""
        self.n_sweeps += 1
        self.consensus = rank_randomly(np.zeros(len(self.consensus)), self.rng)
        if self._prior is not None:
            shape, rate = self._prior
            drawn = self.rng.gamma(shape) / rate
            self.alpha = float(min(max(drawn, LOWEST_ALPHA), MAX_ALPHA))
        self.log_likelihood = 0.0

    def climb(self) -> None:
        """Take the best consensus at this alpha, then the best alpha, by the matched posterior."""
        self.consensus = self.tally.best(self.alpha)
        if self._prior is not None:
            curve, prior = self.tally.curve(self.consensus), self._prior
            self.alpha = best_on_grid(
                lambda alpha: curve(alpha) + log_density(prior, alpha), self.alpha
            )


def best_on_grid(value: Any, alpha: float) -> float:
    """Where a function of alpha with one top is highest, to a tenth of a step or so.

    >>> round(best_on_grid(lambda alpha: -((math.log(alpha) - 2) ** 2), 1.0), 6) == round(
    ...     math.exp(2), 6
    ... )
    True
    """
    place = round(math.log(alpha) / CLIMB)
    found: dict[int, float] = {}

    def at(near: int) -> float:
        if near not in found:
            found[near] = value(math.exp(near * CLIMB))
        return found[near]

    lowest, highest = round(math.log(1e-2) / CLIMB), round(math.log(1e4) / CLIMB)
    while place < highest and at(place + 1) > at(place):
        place += 1
    while place > lowest and at(place - 1) > at(place):
        place -= 1
    bend = at(place - 1) - 2 * at(place) + at(place + 1)
    step = (at(place - 1) - at(place + 1)) / (2 * bend) if bend < 0 else 0.0
    return math.exp((place + min(max(step, -1.0), 1.0)) * CLIMB)
