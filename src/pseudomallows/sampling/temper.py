"""Parallel tempering: replicas of a chain on flatter and flatter posteriors, which exchange states.

A replica with the likelihood to the power beta crosses between modes that hold the chain at beta 1;
neighbours exchange their states by Metropolis' rule (Geyer 1991). The log likelihoods of the
replicas also give the evidence, by stepping stones (Xie et al. 2011).
"""

import math

import numpy as np

from ..laws.law import Floats, Law
from .chain import Chain, Moves, State

RATIO = 0.5  # of a power to the one before, for few items
MANY = 12  # items from which powers are nearer: neighbours must overlap in more dimensions
FLAT = 1.0  # log likelihood units, between draws of the prior, that a replica may still see


def powers(law: Law, moves: Moves, rng: np.random.Generator) -> Floats:
    """1, 1/2, 1/4, ... until the likelihood hardly matters, then 0: draws of the prior."""
    spread = spread_of(law, moves, rng)
    ratio = RATIO if law.n_items < MANY else math.sqrt(RATIO)
    number = max(2, 1 + math.ceil(math.log(max(spread, 2.0) / FLAT) / -math.log(ratio)))
    return np.append(ratio ** np.arange(number), 0.0)


def spread_of(law: Law, moves: Moves, rng: np.random.Generator) -> float:
    """Standard deviation of the log likelihood over draws of the prior at a small alpha."""
    (tally,) = law.tallies(None, 1)
    best = tally.best(1.0)
    values = [
        tally.curve((rng.permutation(law.n_items) + 1).astype(np.int32))(float(law.n_items))
        for _ in range(20)
    ]
    return float(tally.curve(best)(float(law.n_items)) - np.mean(values))


class TemperedChain(Chain):
    """The chain at beta 1, and its replicas."""

    def __init__(
        self, law: Law, state: State, moves: Moves, rng: np.random.Generator, betas: Floats
    ):
        children = rng.spawn(len(betas))
        super().__init__(law, state, moves, children[0])
        self.betas = betas
        self.replicas: list[Chain] = [
            self,
            *(
                Chain(law, state, moves, child, float(beta))
                for child, beta in zip(children[1:], betas[1:], strict=True)
            ),
        ]
        self._exchange_rng = rng
        self.log_likelihoods: list[Floats] = []  # [replica] after each sweep behind the warmup

    def sweep(self, adapt: bool) -> None:
        """A sweep of each replica, then exchanges of neighbours."""
        super().sweep(adapt)
        for replica in self.replicas[1:]:
            replica.sweep(adapt)
        values = np.array([float(replica.exact[0]) for replica in self.replicas])
        if not adapt:
            self.log_likelihoods.append(values.copy())
        uniforms = self._exchange_rng.random(len(values) - 1)
        for low in range(len(values) - 2, -1, -1):
            gap = self.betas[low] - self.betas[low + 1]
            if math.log1p(-uniforms[low]) < gap * (values[low + 1] - values[low]):
                one, other = self.replicas[low], self.replicas[low + 1]
                mine, theirs = one.state, other.state
                one.go_to(_placed(mine, theirs))
                other.go_to(_placed(theirs, mine))
                values[low], values[low + 1] = values[low + 1], values[low]


def _placed(state: State, other: State) -> State:
    """The state at the consensus and alpha of another; step sizes belong to the temperature."""
    return state._replace(consensus=other.consensus, alpha=other.alpha)


def log_evidence(betas: Floats, chains: list[Floats]) -> tuple[float, float]:
    """Log probability of the data, consensus and alpha summed out, and its standard error.

    `chains[chain][sweep, replica]` are log likelihoods. The mean over the draws at one power of the
    likelihood to the step to the next power is the ratio of their normalising constants.
    """
    steps, estimates = betas[:-1] - betas[1:], []
    for values in chains:
        logs = steps * values[:, 1:]
        sums = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        estimates.append(float(sums.sum()))
    error = float(np.std(estimates, ddof=1) / math.sqrt(len(estimates))) if len(chains) > 1 else 0.0
    return float(np.mean(estimates)), error
