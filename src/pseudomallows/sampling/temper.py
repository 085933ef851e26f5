"""Parallel tempering: replicas of a chain on flatter and flatter posteriors exchange states.

A replica with the likelihood to the power beta crosses between modes that hold the chain;
neighbours exchange their consensuses by Metropolis' rule (Geyer 1991). All replicas have the same
alpha: with alphas of their own they would fall from agreement to none at some power, and few states
would pass there. The log likelihoods of the replicas also give the evidence (`log_evidence`).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..distances.tallies import Proposals, Ranking
from ..kernels.streams import CHAIN, start_stream
from ..laws.law import Clusters, Floats, Law
from ..posterior.diagnostics import error_of_mean
from ..rankings import rank_randomly
from .chain import Chain, Moves, State
from .priors import AlphaPrior
from .start import best_place

RATIO = 0.7  # of a power to the one before: two of three exchanges are accepted
FLAT = 2.0  # log likelihood units, between draws of the prior, that a replica may still see
# Quantiles of alpha between which its density is compared with the prior: 80 % of the draws count,
# and those in the tails, whose weights would be large, do not.
MIDDLE = (0.1, 0.9)


class Ladder(NamedTuple):
    """The powers of the replicas, from 1 to 0, and their alpha."""

    betas: Floats
    alpha: float


def make_ladder(
    law: Law, alpha: float | None, moves: Moves, number: int | None, rng: np.random.Generator
) -> Ladder:
    """1, 1/2, 1/4, ... until the likelihood hardly matters, then 0: draws of the prior. Or so many
    powers as are asked for."""
    (tally,) = law.tallies(None, 1)
    best = best_place(tally, alpha, moves.prior)
    there = float(best.alpha[0])
    flat = [
        tally.curve((rng.permutation(law.n_items) + 1).astype(np.int32))(there) for _ in range(20)
    ]
    spread = max(tally.curve(best.consensus[0])(there) - float(np.mean(flat)), 2 * FLAT)
    betas = RATIO ** np.arange(1 + math.ceil(math.log(spread / FLAT) / -math.log(RATIO)))
    if number is not None:
        betas = np.geomspace(1.0, betas[-1], max(number - 1, 1))
    return Ladder(np.append(betas, 0.0), there)


class Replica(NamedTuple):
    """A consensus, and its log likelihood at the alpha of the replicas: exact, and additive."""

    consensus: Ranking
    exact: float
    additive: float


class TemperedChain(Chain):
    """The chain, and replicas of its consensus at one alpha, the first of which has the power 1."""

    def __init__(
        self, law: Law, state: State, moves: Moves, rng: np.random.Generator, ladder: Ladder
    ):
        own, self._replica_rng = rng.spawn(2)
        super().__init__(law, state, moves, own)
        self.betas, self.alpha = ladder.betas.tolist(), ladder.alpha
        self.replicas = [self.replica_at(state.consensus[0])] * len(self.betas)
        # after each sweep behind the warmup: alpha, the log likelihood of the chain at its alpha
        # and at that of the replicas, and the log likelihood of each replica
        self.trace: list[list[float]] = []

    def replica_at(self, consensus: Ranking) -> Replica:
        """A replica with this consensus."""
        additive = self.tallies[0].curve(consensus)(self.alpha)
        exact = self._value(consensus, self.alpha) if self.corrects else additive
        return Replica(consensus, exact, additive)

    def sweep(self, adapt: bool, weighs: bool = False) -> None:
        """A sweep of the chain and of each replica, then exchanges of neighbours, the hottest
        first."""
        super().sweep(adapt, weighs)
        n_moves = round(math.exp(self.state.log_moves[0]))
        proposals = Proposals(n_moves, self.moves.move, self.moves.leap)
        uniforms = self._replica_rng.random((2, len(self.betas)))
        limits, exchange_limits = np.log1p(-uniforms).tolist()
        for number, limit in enumerate(limits):
            self._move_replica(number, proposals, limit)
        replicas, consensus = self.replicas, self.state.consensus[0]
        here, there = float(self.exact[0]), self.replica_at(consensus)
        if not adapt:
            values = [each.exact for each in replicas]
            self.trace.append([float(self.state.alpha[0]), here, there.exact, *values])
        for low in range(len(replicas) - 2, -1, -1):
            gap = self.betas[low] - self.betas[low + 1]
            if exchange_limits[low] < gap * (replicas[low + 1].exact - replicas[low].exact):
                replicas[low], replicas[low + 1] = replicas[low + 1], replicas[low]
        first = replicas[0]
        new = self._value(first.consensus, float(self.state.alpha[0]))
        if exchange_limits[-1] < new + there.exact - here - first.exact:
            self.jump(first.consensus[None], new)
            replicas[0] = there

    def _move_replica(self, number: int, proposals: Proposals, limit: float) -> None:
        """A replica moves as the chain does, its likelihood to the power beta."""
        old, beta = self.replicas[number], self.betas[number]
        if beta == 0.0:
            anywhere = rank_randomly(np.zeros(self.law.n_items), self._replica_rng)
            self.replicas[number] = self.replica_at(anywhere)
            return
        consensus, stream = old.consensus.copy(), np.empty(1, dtype=np.uint64)
        start_stream(self.seed, self.n_sweeps, CHAIN + 1 + number, stream)
        self.tallies[0].move(stream, self.alpha, proposals, consensus, beta)
        new = self.replica_at(consensus)
        if limit <= beta * (new.exact - old.exact - (new.additive - old.additive)):
            self.replicas[number] = new

    def _value(self, consensus: Ranking, alpha: float) -> float:
        """The log likelihood at a place."""
        if not self.corrects:
            return self.tallies[0].curve(consensus)(alpha)
        return float(self.law.weigh(Clusters(consensus[None], np.array([alpha])), None)[0])


def log_evidence(
    betas: Floats, traces: list[Floats], prior: AlphaPrior | None
) -> tuple[float, float]:
    """Log probability of the data, consensus and alpha summed out, and its standard error.

    ``traces[chain][sweep]`` is that of a tempered chain. Neighbouring replicas give the ratio of
    their normalising constants (Bennett 1976), so all of them the evidence at their alpha. The
    ratio of this to the evidence with alpha summed out is a mean over the draws of the chain
    (Gelfand and Dey 1994; between two quantiles of alpha, so that no draw has a large weight).

    All of this is, nearly, a mean over the sweeps of what each adds to it (its influence: Geyer
    1994), so the error is that of a mean of correlated values.
    """
    from scipy.special import expit

    pooled = np.concatenate(traces)
    total, influence = 0.0, np.zeros(len(pooled))
    values = pooled[:, 3:].T
    for step, cold, hot in zip(betas[:-1] - betas[1:], values[:-1], values[1:], strict=True):
        log_ratio = _log_ratio(step * cold, step * hot)
        up, down = expit(step * hot - log_ratio), expit(log_ratio - step * cold)
        slope = float((up * (1 - up) + down * (1 - down)).mean())
        influence += (up - down) / max(slope, 1e-300)
        total += log_ratio

    if prior is not None:
        low, high = np.quantile(pooled[:, 0], MIDDLE) * (1 - 1e-9, 1 + 1e-9)
        is_middle = (pooled[:, 0] > low) & (pooled[:, 0] < high)
        alpha, here, there = pooled[is_middle, :3].T
        logs = np.full(len(pooled), -np.inf)
        densities = np.array([prior.log_density(each) for each in alpha])
        logs[is_middle] = there - here - np.log(alpha) - densities
        log_sum = np.logaddexp.reduce(logs)
        influence -= len(logs) * np.exp(logs - log_sum) - 1
        total -= log_sum - math.log(len(logs) * math.log(high / low)) - prior.log_constant
    return float(total), error_of_mean(influence.reshape(len(traces), -1))


def _log_ratio(cold: Any, hot: Any) -> float:
    """The log ratio of two normalising constants, from the log ratios of the two densities at draws
    of each, the same number."""
    from scipy.optimize import brentq
    from scipy.special import expit

    def excess(log_ratio: float) -> float:
        return float(expit(hot - log_ratio).sum() - expit(log_ratio - cold).sum())

    ends = min(cold.min(), hot.min()) - 1, max(cold.max(), hot.max()) + 1
    return float(brentq(excess, *ends))
