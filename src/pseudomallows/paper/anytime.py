"""Draws of the consensus of full rankings, alpha known or summed out, and the best answer in a
given time ("given a time limitation", section 4.3)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import Counts, Ranking, rank_tally
from ..laws.full import FullLaw
from ..scores import share_of_ranks
from .pseudo import ConsensusChain, PseudoMallows, WeightedDraws
from .summed_alpha import SummedAlpha

Floats = NDArray[np.float64]
N_PILOT = 200  # draws that give the mean distance to 7 % of its spread
N_CHAINS = 4  # whose spread gives their error; as many as a fit by "mcmc" has
FIRST_BATCH = 25  # of draws, and of sweeps, for an error of 0.1; then as many as all before


@dataclass(frozen=True, eq=False)
class FullDraws(WeightedDraws):
    """Draws with an alpha each."""

    alphas: Floats


class FullPosterior:
    """The posterior of full rankings with one cluster, by draws of a Pseudo-Mallows law.

    Their weights are towards the posterior with alpha summed out, unless it is given. The mean of
    the weights is the evidence.
    """

    def __init__(
        self,
        law: FullLaw,
        tally: Any,  # of its users, or of some of them
        alpha: float | None,
        log_prior: Callable[[float], float],
        rng: np.random.Generator,
        **kind: Any,  # of the Pseudo-Mallows law
    ):
        self.tally, self.n_items = rank_tally(tally.known), law.n_items
        self.alpha, self.best = alpha, self.tally.best()
        self.summed = SummedAlpha(law.distance, law.n_items, tally.n_users, log_prior)
        self._rng, self._kind = rng, kind

    @cached_property
    def pseudo(self) -> PseudoMallows:
        """The law that is drawn from: with alpha unknown, at the one for the mean distance of the
        posterior, which is known from a few draws at the alpha for its smallest distance."""
        alpha = self.alpha
        if alpha is None:
            first = self.summed.low_alpha(self.tally.distance(self.best))
            pilot = PseudoMallows.from_tally(self.tally, first, balanced=True)
            draws = pilot.draw_weighted(N_PILOT, self._rng)
            alpha = self.summed.low_alpha(float(draws.weights @ self.distances(draws.rankings)))
        return PseudoMallows.from_tally(self.tally, alpha, **self._kind)

    def distances(self, rankings: Ranking) -> Counts:
        """The total distance of each consensus from the rankings."""
        return np.asarray(self.tally.costs[np.arange(self.n_items), rankings - 1].sum(axis=1))

    def draw(self, n_draws: int, rng: np.random.Generator) -> FullDraws:
        """Independent draws with their weights."""
        draws, summed = self.pseudo.draw_weighted(n_draws, rng), self.summed
        logs = draws.log_weights - math.lgamma(self.n_items + 1)  # of a uniform consensus
        if self.alpha is None:  # each draw by its distance, not at the alpha of the proposal
            distances = self.distances(draws.rankings)
            log_likelihoods, alphas = summed.integrate(distances, rng)
            logs += log_likelihoods + self.pseudo.alpha / self.n_items * distances
        else:
            alphas = np.full(n_draws, self.alpha)
            logs += summed.log_constant(self.alpha)
        return FullDraws(draws.rankings, logs, alphas)

    def log_density(self, consensuses: Ranking, alphas: Floats, n_draws: int) -> Floats:
        """Log posterior density of some parameters; the constant is known from so many draws."""
        logs = self.draw(n_draws, self._rng).log_weights
        constant = np.logaddexp.reduce(logs) - math.log(n_draws) + math.lgamma(self.n_items + 1)
        values = -alphas / self.n_items * self.distances(consensuses) - constant
        parts = [self.summed.log_prior(a) + self.summed.log_constant(a) for a in alphas.tolist()]
        return np.asarray(values + parts)


class Chains:
    """Exact chains that begin at draws: a sweep of the consensus given alpha, then alpha given the
    distance of the consensus."""

    def __init__(self, posterior: FullPosterior, draws: FullDraws, rng: np.random.Generator):
        self._posterior, self._rng, self.n_sweeps = posterior, rng, 0
        chosen = rng.choice(len(draws.rankings), N_CHAINS, p=draws.weights)
        self._alphas, seeds = draws.alphas[chosen], rng.integers(2**63, size=N_CHAINS).tolist()
        starts = zip(draws.rankings[chosen], seeds, strict=True)
        self._chains = [ConsensusChain(posterior.tally, state, seed) for state, seed in starts]
        # the chains may be twice as far from the best as any draw: the grid of alphas still holds
        least = posterior.tally.distance(posterior.best)
        most = 2 * int(posterior.distances(draws.rankings).max()) - least
        self._table = posterior.summed.table(np.array([least, most]))

    def run(self, n_sweeps: int) -> tuple[Ranking, Floats]:
        """The next states: ``consensus[chain, draw, item]`` and ``alphas[chain, draw]``."""
        posterior = self._posterior
        consensus = np.empty((N_CHAINS, n_sweeps, posterior.n_items), dtype=np.int32)
        alphas = np.empty((N_CHAINS, n_sweeps))
        for draw in range(n_sweeps):
            for number, (chain, alpha) in enumerate(zip(self._chains, self._alphas, strict=True)):
                consensus[number, draw] = chain.sweep(alpha)
            if posterior.alpha is None:
                distances = posterior.distances(consensus[:, draw])
                self._alphas = posterior.summed.integrate(distances, self._rng, self._table)[1]
            alphas[:, draw] = self._alphas
        self.n_sweeps += n_sweeps
        return consensus, alphas


class Step(NamedTuple):
    """An answer on the way."""

    stage: str  # "MAP", "balanced matrix", "weighted draws" or "chains"
    seconds: float  # since the beginning
    probabilities: Floats  # [item, rank - 1]
    error: float  # the largest standard error of a probability; infinite if not known


class Answer(NamedTuple):
    """The draws with the smallest stated error, and the steps that led there."""

    consensus: Ranking  # [chain, draw, item]
    alphas: Floats  # [chain, draw]
    log_weights: Floats  # [chain, draw]
    drawn: FullDraws  # all weighted draws: they know the evidence
    last: Step  # that made these draws
    steps: list[Step]

    def settings(self) -> dict[str, Any]:
        """Of each step its stage, time and stated error, and how far it is from the answer."""
        rows = []
        for stage, seconds, probabilities, error in self.steps:
            row: dict[str, Any] = {"stage": stage, "seconds": round(seconds, 4)}
            row["error"] = error if math.isfinite(error) else None
            row["gap"] = float(np.abs(probabilities - self.last.probabilities).max())
            rows.append(row)
        return {"stage": self.last.stage, "error": self.last.error, "steps": rows}


def answer_in_time(
    posterior: FullPosterior,
    n_draws: int,
    seconds: float,
    rng: np.random.Generator,
    started: float,
) -> Answer:
    """The most probable ranking; the balanced matrix, an estimate without draws; weighted draws,
    twice as many each time, at most `n_draws`; then exact chains that begin at such draws, with as
    many each. A step that would take longer than is left is not begun, but the first draws are
    always made; how long it takes is estimated from the step before.

    As far as it gets, the same seed gives the same draws.
    """
    steps: list[Step] = []

    def note(stage: str, probabilities: Floats, error: float = math.inf) -> None:
        steps.append(Step(stage, time.perf_counter() - started, probabilities, error))

    def has_time() -> bool:
        """For twice what the latest step took?"""
        latest = steps[-1].seconds
        return latest + 2 * (latest - steps[-2].seconds) < seconds

    note("MAP", share_of_ranks(posterior.best[None]))
    note("balanced matrix", posterior.pseudo.balanced_marginals())
    draws = posterior.draw(min(FIRST_BATCH, n_draws), rng)
    while True:
        error = 0.5 / math.sqrt(draws.effective_size)  # of a probability of one half
        note("weighted draws", share_of_ranks(draws.rankings, draws.weights), error)
        n_done = len(draws.rankings)
        if n_done == n_draws or not has_time():
            break
        draws = _join(draws, posterior.draw(min(n_done, n_draws - n_done), rng))
    found = draws.rankings[None], draws.alphas[None], draws.log_weights[None]
    answer = Answer(*found, draws, steps[-1], steps)
    if n_done < n_draws:
        return answer

    chains, parts = Chains(posterior, draws, rng), []
    sums = np.zeros((N_CHAINS, posterior.n_items, posterior.n_items))
    while chains.n_sweeps < n_draws and has_time():
        begun = chains.n_sweeps
        parts.append(chains.run(min(max(begun, FIRST_BATCH), n_draws - begun)))
        for total, states in zip(sums, parts[-1][0], strict=True):
            total += len(states) * share_of_ranks(states)
        tables = sums / chains.n_sweeps
        spread = float(tables.std(axis=0, ddof=1).max()) / math.sqrt(N_CHAINS)
        least = 0.5 / math.sqrt(N_CHAINS * chains.n_sweeps)  # if all sweeps were independent
        note("chains", tables.mean(axis=0), max(spread, least))
    if steps[-1].error >= answer.last.error:
        return answer
    consensus, alphas = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    return Answer(consensus, alphas, np.zeros(alphas.shape), draws, steps[-1], steps)


def _join(one: FullDraws, other: FullDraws) -> FullDraws:
    names = ("rankings", "log_weights", "alphas")
    return FullDraws(*(np.concatenate([getattr(one, n), getattr(other, n)]) for n in names))
