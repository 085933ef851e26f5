"""Parallel tempering: replicas of a chain on flatter and flatter posteriors exchange states.

A replica with the likelihood to the power beta crosses between modes that hold the chain;
neighbours exchange their consensuses by Metropolis' rule (Geyer 1991). All replicas have the same
alpha: with alphas of their own they would fall from agreement to none at some power, and few states
would pass there. The log likelihoods of the replicas also give the evidence (`log_evidence`).
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..laws.law import Clusters, Floats, Law, Ranking
from .chain import Chain, Moves, State, curves_at
from .priors import AlphaPrior
from .start import best_place

RATIO = 0.7  # of a power to the one before: two of three exchanges are accepted
FLAT = 2.0  # log likelihood units, between draws of the prior, that a replica may still see
# Of a chain, whose differences give the error: 16 of 4 chains tell it to 18 %; sweeps of one.
N_PIECES, LEAST_PIECE = 4, 10
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


class TemperedChain(Chain):
    """The chain, and its replicas at one alpha, the first of which has the power 1."""

    def __init__(
        self, law: Law, state: State, moves: Moves, rng: np.random.Generator, ladder: Ladder
    ):
        own, *children = rng.spawn(1 + len(ladder.betas))
        super().__init__(law, state, moves, own)
        first = state._replace(alpha=np.array([ladder.alpha]))
        still = replace(moves, prior=None)
        self.betas: list[float] = ladder.betas.tolist()
        self.replicas = [
            Chain(law, first, still, child, beta)
            for child, beta in zip(children, self.betas, strict=True)
        ]
        self._exchange_rng = rng
        # after each sweep behind the warmup: alpha, the log likelihood of the chain at its alpha
        # and at that of the replicas, and the log likelihood of each replica
        self.trace: list[list[float]] = []

    def sweep(self, adapt: bool) -> None:
        """A sweep of each replica, then exchanges of neighbours, the hottest first."""
        super().sweep(adapt)
        for replica in self.replicas:
            replica.sweep(adapt)
        values = [float(replica.exact[0]) for replica in self.replicas]
        limits = np.log1p(-self._exchange_rng.random(len(values))).tolist()
        here, first = float(self.exact[0]), self.replicas[0]
        there = self._value(self.state.consensus, first.state.alpha)
        if not adapt:
            self.trace.append([float(self.state.alpha[0]), here, there, *values])
        for low in range(len(values) - 2, -1, -1):
            gap = self.betas[low] - self.betas[low + 1]
            if limits[low] < gap * (values[low + 1] - values[low]):
                values[low], values[low + 1] = values[low + 1], values[low]
                one, other = self.replicas[low], self.replicas[low + 1]
                mine, theirs = one.state.consensus, other.state.consensus
                one.jump(theirs, values[low])
                other.jump(mine, values[low + 1])
        mine, theirs = self.state.consensus, first.state.consensus
        new = self._value(theirs, self.state.alpha)
        if limits[-1] < new + there - here - values[0]:
            self.jump(theirs, new)
            first.jump(mine, there)

    def _value(self, consensus: Ranking, alpha: Floats) -> float:
        """The log likelihood at a place."""
        place = Clusters(consensus, alpha)
        exact = self.law.weigh(place, None) if self.corrects else curves_at(self.tallies, place)
        return float(exact[0])


def log_evidence(
    betas: Floats, traces: list[Floats], prior: AlphaPrior | None
) -> tuple[float, float]:
    """Log probability of the data, consensus and alpha summed out, and its standard error.

    ``traces[chain][sweep]`` is that of a tempered chain. Neighbouring replicas give the ratio of
    their normalising constants (Bennett 1976), so all of them the evidence at their alpha. The
    ratio of this to the evidence with alpha summed out is a mean over the draws of the chain
    (Gelfand and Dey 1994; between two quantiles of alpha, so that no draw has a large weight).
    The error is that of the mean over pieces of the chains.
    """
    pooled = np.concatenate(traces)
    low, high = np.quantile(pooled[:, 0], MIDDLE) * (1 - 1e-9, 1 + 1e-9)

    def evidence(trace: Floats) -> float:
        values = trace[:, 3:]
        steps = zip(betas[:-1] - betas[1:], values.T[:-1], values.T[1:], strict=True)
        found = sum(_log_ratio(step * cold, step * hot) for step, cold, hot in steps)
        if prior is None:
            return found
        alpha, here, there = trace[(trace[:, 0] > low) & (trace[:, 0] < high), :3].T
        logs = there - here - np.log(alpha) - np.array([prior.log_density(a) for a in alpha])
        mean = np.logaddexp.reduce(logs) - math.log(len(trace) * math.log(high / low))
        return float(found - mean + prior.log_constant)

    n_pieces = min(N_PIECES, max(1, len(traces[0]) // LEAST_PIECE))
    pieces = [evidence(piece) for trace in traces for piece in np.array_split(trace, n_pieces)]
    known = [value for value in pieces if math.isfinite(value)]  # alpha may stay at an end
    error = float(np.std(known, ddof=1) / math.sqrt(len(known))) if len(known) > 1 else 0.0
    return evidence(pooled), error


def _log_ratio(cold: Any, hot: Any) -> float:
    """The log ratio of two normalising constants, from the log ratios of the two densities at draws
    of each, the same number."""
    from scipy.optimize import brentq
    from scipy.special import expit

    def excess(log_ratio: float) -> float:
        return float(expit(hot - log_ratio).sum() - expit(log_ratio - cold).sum())

    ends = min(cold.min(), hot.min()) - 1, max(cold.max(), hot.max()) + 1
    return float(brentq(excess, *ends))
