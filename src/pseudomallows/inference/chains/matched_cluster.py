"""One cluster of users of clicks in a chain on the matched law.

It moves by swaps and steps of alpha that leave the matched posterior of its users as it is, which
costs no visit to them. `MatchedMixture` corrects what many such moves lead to.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Ranking
from ...files.saved import Saved
from ...kernels.streams import CHAIN, start_stream
from ...latent.click_laws import ClickTally, Curve
from ...latent.population import DrawOrigin
from ...rankings import MAX_ALPHA, rank_randomly
from ..priors import LOWEST_ALPHA, Prior, log_density
from .clustered import MAX_SWEEPS, TARGET_ACCEPTANCE

N_ALPHA_STEPS = 3  # before the swaps or after them, as probability will have it
N_STEPS_ALONE = 10  # for one cluster, whose swaps take longer
CLIMB = 0.5  # of log alpha, in a search for the best


class MatchedProposals(NamedTuple):
    """The Metropolis proposals of a cluster between two corrections; without `n_moves` the warmup
    finds how many."""

    move: str = "swap"
    leap: int = 1
    n_moves: int | None = None


class Place(NamedTuple):
    """Where a cluster stands: its consensus, its alpha and the tally of users drawn with them."""

    consensus: Ranking
    alpha: float
    tally: ClickTally


class Snapshot(NamedTuple):
    """``consensus[cluster, item]``, ``alpha[cluster]``, ``shares[cluster]`` and ``labels[row]``."""

    consensus: Ranking
    alpha: NDArray[np.float64]
    shares: NDArray[np.float64]
    labels: NDArray[np.int32]


class MatchedCluster:
    """A consensus and its alpha, that move on the matched posterior of the cluster's users."""

    tally: ClickTally
    n_alpha_steps = N_ALPHA_STEPS

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
        self._stream = np.empty(1, dtype=np.uint64)
        self._known: tuple[Place, Curve] | None = None

    @property
    def is_fixed(self) -> bool:
        """Is alpha given?"""
        return self._prior is None

    def fix_alpha(self) -> None:
        """From now on alpha stays as it is."""
        self._prior = None

    @property
    def has_users(self) -> bool:
        """Is anyone in the cluster?"""
        return not self.tally.is_empty

    @property
    def origin(self) -> DrawOrigin:
        """Of the latent rankings that go with the state."""
        return DrawOrigin(self.consensus.copy(), self.alpha, self.seed, self.n_sweeps)

    @property
    def curve(self) -> Curve:
        """The matched log likelihood of the users under the consensus, for any alpha; it stays at
        hand until one of the two changes."""
        if self._known is not None:
            place, curve = self._known
            if place.tally is self.tally and place.consensus is self.consensus:
                return curve
        self._known = self.place, self.tally.curve(self.consensus)
        return self._known[1]

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
        self.rng = saved.generator("rng")

    @property
    def place(self) -> Place:
        """Where the cluster stands."""
        return Place(self.consensus, self.alpha, self.tally)

    def restore(self, place: Place) -> None:
        """Stand there."""
        self.consensus, self.alpha, self.tally = place

    def move(self, n_moves: int, adapt: bool) -> None:
        """Steps of alpha and swaps, in an order by chance: so the whole is reversible."""
        self.n_sweeps += 1
        is_alpha_first = self.rng.random() < 0.5
        if is_alpha_first:
            self._step_alpha(adapt)
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        self.consensus, self._known, how = self.consensus.copy(), None, self._proposals
        where = (self._stream, self.alpha, n_moves, self.consensus)
        self.tally.move(*where, how.move, how.leap)
        if not is_alpha_first:
            self._step_alpha(adapt)

    def _step_alpha(self, adapt: bool) -> None:
        """A random walk on log alpha."""
        if self._prior is None:
            return
        curve, alpha = self.curve, self.alpha
        here = curve(alpha) + log_density(self._prior, alpha) + math.log(alpha)
        for _ in range(self.n_alpha_steps):
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
        self.alpha = alpha

    @property
    def _rate(self) -> float:
        """How much one more sweep teaches."""
        return 1 / math.sqrt(1 + self.n_sweeps)

    def draw_from_prior(self) -> None:
        """A move without any users: the consensus anywhere, alpha by its prior."""
        self.n_sweeps += 1
        self.consensus = rank_randomly(np.zeros(len(self.consensus)), self.rng)
        if self._prior is not None:
            shape, rate = self._prior
            drawn = self.rng.gamma(shape) / rate
            self.alpha = float(min(max(drawn, LOWEST_ALPHA), MAX_ALPHA))

    def climb(self) -> None:
        """Take the best consensus at this alpha, then the best alpha, by the matched posterior."""
        self.consensus = self.tally.best(self.alpha)
        if self._prior is not None:
            curve, prior = self.curve, self._prior
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
