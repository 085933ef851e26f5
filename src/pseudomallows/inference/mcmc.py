"""The exact posterior, by a Markov chain that never looks at the users.

For full rankings the chain sees the matrix of costs alone. For partial ones each sweep draws alpha
given the consensus with the latent rankings summed out, then the latent rankings, then moves the
consensus on their costs.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files.saved import Saved
from ..kernels.chain import LEAP_AND_SHIFT, SWAP, move_consensus
from ..kernels.streams import CHAIN, start_stream
from ..latent.population import Counts, Latent, Ranking, best_assignment
from ..rankings import MAX_ALPHA, rank_randomly
from .priors import Prior, log_density
from .states import State

MOVES = {"swap": SWAP, "leap_and_shift": LEAP_AND_SHIFT}
STARTS = ("map", "random")
TARGET_ACCEPTANCE = 0.44  # of the random walk of alpha, one-dimensional
LONGEST_LOG_STEP = 700.0  # beyond it, the step is no number
SHARP, FALL = 50.0, 2.0  # alpha / n_items that is as good as infinite; a fall in log likelihood
N_ROUNDS = 5  # in which a consensus without disagreement is looked for
LOWEST_ALPHA = 1e-12  # the prior's mass below it is left out


@dataclass(frozen=True)
class ChainOptions:
    """How a chain moves; see :func:`pseudomallows.fit`."""

    move: str
    leap: int
    n_moves: int
    start: str
    alpha_prior: Prior
    n_alpha_moves: int
    samples_alpha: bool = True


class Chain(State):
    """One Markov chain: its state, and a sweep that moves it."""

    def __init__(
        self,
        latent: Latent,
        consensus: Ranking,
        alpha: float,
        options: ChainOptions,
        rng: np.random.Generator,
    ):
        super().__init__(latent, consensus, alpha, rng)
        self._options = options
        self._stream = np.empty(1, dtype=np.uint64)
        self.n_alpha_moves = options.n_alpha_moves
        self.log_step = math.log(0.1)

    @property
    def lowest_alpha(self) -> float:  # type: ignore[override]
        """The least that a step of alpha can lead to."""
        return LOWEST_ALPHA if self._options.samples_alpha else 0.0

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return super().to_save() | {"log_step": self.log_step}

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        super().resume(saved)
        self.log_step = saved.number("log_step", -LONGEST_LOG_STEP, LONGEST_LOG_STEP)

    @classmethod
    def start(
        cls, latent: Latent, alpha: float | None, options: ChainOptions, rng: np.random.Generator
    ) -> "Chain":
        """A chain at a good place, or at a random one."""
        if options.start == "random":
            consensus = rank_randomly(np.zeros(latent.n_items), rng)
            return cls(latent, consensus, 1.0 if alpha is None else alpha, options, rng)
        consensus = latent.start(1.0 if alpha is None else alpha, rng)
        if alpha is None:
            best = latent.best_alpha(consensus, options.alpha_prior)
            alpha = float(np.clip(best, 0.1, 10 * latent.n_items))
        return cls(latent, consensus, alpha, options, rng)

    def move(self, costs: Counts) -> None:
        """Move the consensus by proposals on its costs."""
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        move_consensus(
            self._stream,
            costs,
            self.alpha / self.latent.n_items,
            MOVES[self._options.move],
            self._options.leap,
            self._options.n_moves,
            self.consensus,
        )
        self.log_likelihood = None

    def log_posterior(self) -> float:
        """Log posterior density of the state, the latent rankings summed out, up to a constant."""
        return self.current_log_likelihood() + self.log_prior(self.alpha)

    def current_log_likelihood(self) -> float:
        """Log probability of what is known of the users; exact."""
        if self.log_likelihood is None:
            self.log_likelihood = self.latent.log_likelihood(self.consensus, self.alpha)
        return self.log_likelihood

    def log_prior(self, alpha: float) -> float:
        """Log prior density of alpha, if it is sampled."""
        if not self._options.samples_alpha:
            return 0.0
        return log_density(self._options.alpha_prior, alpha)

    def alphas_to_try(self) -> list[float]:
        """A step of the random walk on log alpha, and alpha as it is unless its likelihood is
        known; none if alpha is fixed, or the step leads too far."""
        if not self._options.samples_alpha:
            return []
        step = math.exp(self.log_step) * self.rng.standard_normal()
        self._proposal = self.alpha * math.exp(min(max(step, -50.0), 50.0))
        if not LOWEST_ALPHA <= self._proposal <= MAX_ALPHA:
            return []
        return [self._proposal] if self.log_likelihood is not None else [self._proposal, self.alpha]

    def judge_alphas(self, values: list[float], adapt: bool) -> None:
        """Accept the proposal, or not; the step is adapted during the warmup only."""
        proposal, proposed, known = self._proposal, values[0], self.log_likelihood
        known = values[-1] if known is None else known
        log_ratio = proposed - known
        log_ratio += self.log_prior(proposal) - self.log_prior(self.alpha)
        log_ratio += math.log(proposal) - math.log(self.alpha)
        accepted = log_ratio >= 0 or self.rng.random() < math.exp(log_ratio)
        self.log_likelihood = proposed if accepted else known
        if accepted:
            self.alpha = proposal
        if adapt:
            rate = 1 / math.sqrt(1 + self.n_sweeps / 10)
            self.log_step += rate * ((1.0 if accepted else 0.0) - TARGET_ACCEPTANCE)

    def wander(self) -> None:
        """A move without any users: the consensus anywhere, alpha by its prior."""
        super().wander()
        if self._options.samples_alpha:
            shape, rate = self._options.alpha_prior
            drawn = self.rng.gamma(shape) / rate
            self.alpha = float(min(max(drawn, LOWEST_ALPHA), MAX_ALPHA))
        self.log_likelihood = None


def best_log_posterior(latent: Latent, alpha: float | None, options: ChainOptions) -> float:
    """Log posterior at the exact MAP consensus of full rankings, at the best or the given alpha."""
    return Chain.start(latent, alpha, options, np.random.default_rng(0)).log_posterior()


def is_unbounded(state: State) -> bool:
    """Does nothing in the data bound the alpha of a state from above?

    That is so if some consensus leaves no user in disagreement: then the likelihood does not fall
    from the present alpha to infinity, and the prior alone decides. The consensus is looked for
    from that of the mean ranks, which is one for clicks that are nested, and from the present one
    on, by rounds of latent rankings as close to it as can be.
    """
    latent, alpha, consensus = state.latent, state.alpha, state.consensus
    sharp = max(SHARP * latent.n_items, 10 * alpha)
    present = latent.log_likelihood(consensus, alpha)
    if latent.is_full:
        return latent.log_likelihood(best_assignment(latent.known_costs), sharp) >= present - FALL
    mean_ranks = np.argsort(np.argsort(latent.mean_ranks, kind="stable")).astype(np.int32) + 1
    if latent.log_likelihood(mean_ranks, sharp) >= present - FALL:
        return True
    for n_round in range(N_ROUNDS):
        if latent.log_likelihood(consensus, sharp) >= present - FALL:
            return True
        costs = latent.draw(consensus.copy(), sharp, state.seed, n_round)
        consensus = best_assignment(costs)
    return False


def stuck_chains(log_posterior: NDArray[np.float64], best: float, n_items: int) -> list[int]:
    """Chains whose draws cannot be typical.

    The mean gap between the mode and a draw is at most the entropy, so at most log n! for the
    consensus; a chain whose mean gap is larger has not found the bulk of the posterior.
    """
    limit = best - math.lgamma(n_items + 1) - 10
    return [chain for chain, values in enumerate(log_posterior) if values.mean() < limit]
