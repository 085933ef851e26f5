"""One cluster of users in a chain: its consensus, its alpha, and how a sweep moves them.

For full rankings a cluster sees a tally alone, never the users. For users known in part each sweep
moves alpha given the consensus, with the latent rankings summed out, then draws the latent
rankings, then moves the consensus on their tally.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ...distances.tallies import Ranking, Tally
from ...files.saved import Saved
from ...kernels.streams import CHAIN, start_stream
from ...latent.augmented.votes import VotePopulation
from ...latent.population import Draw, DrawOrigin, Population
from ...rankings import MAX_ALPHA, rank_randomly
from ..priors import LOWEST_ALPHA, Prior, log_density
from .clustered import MAX_SWEEPS, TARGET_ACCEPTANCE

LONGEST_LOG_STEP = 700.0  # beyond it, the step is no number


class Cluster(ABC):
    """A consensus and its alpha; the steps of a sweep move them, given the users.

    The steps stand apart, so that those of several clusters can go side by side: see `Mixture`.
    """

    tally: Tally | None = None  # of the latest latent rankings
    origin: DrawOrigin  # of the latest latent rankings
    n_alpha_moves = 1
    lowest_alpha = 0.0

    def __init__(
        self, population: Population, consensus: Ranking, alpha: float, rng: np.random.Generator
    ):
        self.population, self.consensus, self.alpha, self.rng = population, consensus, alpha, rng
        self.seed = int(rng.integers(2**63))
        self.n_sweeps = 0
        self.log_likelihood: float | None = None  # of what is known of the users, if it is known

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps; all else is made anew in a sweep."""
        return {
            "consensus": self.consensus.copy(),
            "alpha": float(self.alpha),
            "seed": self.seed,
            "n_sweeps": self.n_sweeps,
            "log_likelihood": self.log_likelihood,
            "rng": self.rng.bit_generator.state,
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        self.consensus = saved.rankings("consensus", (self.population.n_items,))
        self.alpha = saved.number("alpha", self.lowest_alpha, MAX_ALPHA)
        self.seed = saved.count("seed", 0, 2**63 - 1)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self.log_likelihood = saved.number_or_none("log_likelihood")
        self.rng = saved.generator("rng")

    def alphas_to_try(self) -> list[float]:
        """The alphas whose likelihood the next step of alpha needs; none, if alpha is fixed."""
        return []

    def judge_alphas(self, values: list[float], adapt: bool) -> None:
        """Move alpha, given these log likelihoods."""
        raise NotImplementedError

    def move_alpha(self, adapt: bool) -> None:
        """All steps of alpha in a sweep, where nothing is latent: they wait for nobody."""
        log_likelihood = self.population.log_likelihood_by_alpha(self.consensus)
        for _ in range(self.n_alpha_moves):
            alphas = self.alphas_to_try()
            if alphas:
                self.judge_alphas([log_likelihood(alpha) for alpha in alphas], adapt)

    def log_prior(self, alpha: float) -> float:
        """Log prior density of alpha, if it is sampled."""
        return 0.0

    def begin_draw(self) -> Draw:
        """Begin to draw the latent rankings, the blocks of rows still to be run."""
        self.note_origin()
        return self.population.begin_draw(self.consensus, self.alpha, self.seed, self.n_sweeps)

    def draw_from_prior(self) -> None:
        """A move without any users: the consensus anywhere."""
        self.n_sweeps += 1
        self.consensus = rank_randomly(np.zeros(self.population.n_items), self.rng)
        self.note_origin()

    def note_origin(self) -> None:
        """Note from what the latent rankings of this sweep are drawn."""
        consensus = self.consensus.copy()
        self.origin = DrawOrigin(consensus, self.alpha, self.seed, self.n_sweeps)

    @abstractmethod
    def move(self, tally: Tally) -> None:
        """Move the consensus, given the tally of the completed data."""

    def log_posterior(self) -> float:
        """Log posterior density, where it is known."""
        return float("nan")

    def current_log_likelihood(self) -> float:
        """Log probability of what is known of the users; exact."""
        if self.log_likelihood is None:
            self.log_likelihood = self.population.log_likelihood(self.consensus, self.alpha)
        return self.log_likelihood


class Proposals(NamedTuple):
    """The Metropolis proposals in one sweep: `n_moves` for the consensus, and those for alpha."""

    move: str
    leap: int
    n_moves: int
    n_alpha_moves: int = 1


class ExactCluster(Cluster):
    """The consensus and alpha move by Metropolis steps that leave the exact posterior as it is."""

    def __init__(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        proposals: Proposals,
        prior: Prior | None,  # of alpha; None: alpha is given
        rng: np.random.Generator,
    ):
        super().__init__(population, consensus, alpha, rng)
        self._proposals, self._prior = proposals, prior
        self.n_alpha_moves = proposals.n_alpha_moves
        self._stream = np.empty(1, dtype=np.uint64)
        self.log_step = math.log(0.1)

    @property
    def lowest_alpha(self) -> float:  # type: ignore[override]
        """The least that a step of alpha can lead to."""
        return 0.0 if self._prior is None else LOWEST_ALPHA

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return super().to_save() | {"log_step": self.log_step}

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        super().resume(saved)
        self.log_step = saved.number("log_step", -LONGEST_LOG_STEP, LONGEST_LOG_STEP)

    def move(self, tally: Tally) -> None:
        """Move the consensus by proposals on the tally."""
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        scale, how = self.alpha / self.population.n_items, self._proposals
        tally.move(self._stream, scale, how.n_moves, self.consensus, how.move, how.leap)
        self.log_likelihood = None

    def log_posterior(self) -> float:
        """Log posterior density of the state, the latent rankings summed out, up to a constant."""
        return self.current_log_likelihood() + self.log_prior(self.alpha)

    def log_prior(self, alpha: float) -> float:
        """Log prior density of alpha, if it is sampled."""
        return 0.0 if self._prior is None else log_density(self._prior, alpha)

    def alphas_to_try(self) -> list[float]:
        """A step of the random walk on log alpha, and alpha as it is unless its likelihood is
        known; none if alpha is fixed, or the step leads too far."""
        if self._prior is None:
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

    def draw_from_prior(self) -> None:
        """A move without any users: the consensus anywhere, alpha by its prior."""
        super().draw_from_prior()
        if self._prior is not None:
            shape, rate = self._prior
            drawn = self.rng.gamma(shape) / rate
            self.alpha = float(min(max(drawn, LOWEST_ALPHA), MAX_ALPHA))
        self.log_likelihood = None


class FreeCluster(ExactCluster):
    """Votes with free gaps: the consensus is drawn by strengths, anew in each sweep; alpha moves
    given it, as if gaps were equal."""

    def move(self, tally: Tally) -> None:
        """Draw a consensus."""
        assert isinstance(self.population, VotePopulation)
        self.consensus = self.population.strengths.draw(self.rng)
        self.log_likelihood = None
