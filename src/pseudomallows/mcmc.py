"""The exact posterior, by a Markov chain that never looks at the users.

For full rankings the chain sees the matrix of costs alone. For partial ones each sweep draws alpha
given the consensus with the latent rankings summed out, then the latent rankings, then moves the
consensus on their costs.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .kernels.chain import LEAP_AND_SHIFT, SWAP, move_consensus
from .kernels.streams import CHAIN, start_stream
from .latent import Latent
from .rankings import MAX_ALPHA, rank_randomly

MOVES = {"swap": SWAP, "leap_and_shift": LEAP_AND_SHIFT}
STARTS = ("map", "random")
TARGET_ACCEPTANCE = 0.44  # of the random walk of alpha, one-dimensional
LOWEST_ALPHA = 1e-12  # the prior's mass below it is left out


@dataclass(frozen=True)
class ChainOptions:
    """How a chain moves; see :func:`pseudomallows.fit`."""

    move: str
    leap: int
    n_moves: int
    start: str
    alpha_prior: tuple[float, float]
    n_alpha_moves: int


class Chain:
    """One Markov chain: its state, and a sweep that moves it."""

    def __init__(
        self,
        latent: Latent,
        alpha: float | None,
        options: ChainOptions,
        rng: np.random.Generator,
    ):
        self.latent, self._options, self._rng = latent, options, rng
        self.seed = int(rng.integers(2**63))
        self._stream = np.empty(1, dtype=np.uint64)
        self.n_sweeps = 0
        self._samples_alpha = alpha is None
        self.log_step = math.log(0.1)
        if options.start == "map":
            self.consensus = latent.start(1.0 if alpha is None else alpha, rng)
        else:
            self.consensus = rank_randomly(np.zeros(latent.n_items), rng)
        self.alpha = self._start_alpha() if alpha is None else alpha
        self.costs = self._draw_costs(self.alpha)
        self._log_likelihood: float | None = None

    def _start_alpha(self) -> float:
        if self._options.start == "random":
            return 1.0
        return float(np.clip(self.latent.best_alpha(self.consensus), 0.1, 10 * self.latent.n_items))

    def sweep(self, adapt: bool) -> None:
        """Alpha given the consensus, latent rankings given both, consensus given the latent."""
        self.n_sweeps += 1
        if self._samples_alpha:
            for _ in range(self._options.n_alpha_moves):
                self._move_alpha(adapt)
        self.costs = self._draw_costs(self.alpha)
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        move_consensus(
            self._stream,
            self.costs,
            self.alpha / self.latent.n_items,
            MOVES[self._options.move],
            self._options.leap,
            self._options.n_moves,
            self.consensus,
        )
        self._log_likelihood = None

    def _draw_costs(self, alpha: float) -> NDArray[np.int64]:
        if self.latent.is_full:
            return self.latent.known_costs
        return self.latent.draw(self.consensus, alpha, self.seed, self.n_sweeps)

    def log_posterior(self) -> float:
        """Log posterior density of the state, the latent rankings summed out, up to a constant."""
        return self.log_likelihood() + (self._log_prior(self.alpha) if self._samples_alpha else 0.0)

    def log_likelihood(self) -> float:
        """Log probability of what is known of the users; exact."""
        if self._log_likelihood is None:
            self._log_likelihood = self.latent.log_likelihood(self.consensus, self.alpha)
        return self._log_likelihood

    def _log_prior(self, alpha: float) -> float:
        shape, rate = self._options.alpha_prior
        return (shape - 1) * math.log(alpha) - rate * alpha

    def _move_alpha(self, adapt: bool) -> None:
        """Random walk on log alpha, its step adapted during the warmup only."""
        step = math.exp(self.log_step) * self._rng.standard_normal()
        proposal = self.alpha * math.exp(min(max(step, -50.0), 50.0))
        if not LOWEST_ALPHA <= proposal <= MAX_ALPHA:
            return
        log_likelihood = self.latent.log_likelihood(self.consensus, proposal)
        log_ratio = log_likelihood - self.log_likelihood()
        log_ratio += self._log_prior(proposal) - self._log_prior(self.alpha)
        log_ratio += math.log(proposal) - math.log(self.alpha)
        accepted = log_ratio >= 0 or self._rng.random() < math.exp(log_ratio)
        if accepted:
            self.alpha, self._log_likelihood = proposal, log_likelihood
        if adapt:
            rate = 1 / math.sqrt(1 + self.n_sweeps / 10)
            self.log_step += rate * ((1.0 if accepted else 0.0) - TARGET_ACCEPTANCE)


def best_log_posterior(latent: Latent, alpha: float | None, options: ChainOptions) -> float:
    """Log posterior at the exact MAP consensus of full rankings, at the best or the given alpha."""
    chain = Chain(latent, alpha, options, np.random.default_rng(0))
    return chain.log_posterior()


def stuck_chains(log_posterior: NDArray[np.float64], best: float, n_items: int) -> list[int]:
    """Chains whose draws cannot be typical.

    The mean gap between the mode and a draw is at most the entropy, so at most log n! for the
    consensus; a chain whose mean gap is larger has not found the bulk of the posterior.
    """
    limit = best - math.lgamma(n_items + 1) - 10
    return [chain for chain, values in enumerate(log_posterior) if values.mean() < limit]
