"""The best answer in a given time ("given a time limitation", section 4.3), and how good it is."""

import math
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances.tallies import Proposals
from ..kernels.streams import CHAIN, start_stream
from ..rankings import as_rng, check_number
from ..scores import share_of_ranks
from .pseudo import PseudoMallows, WeightedDraws

N_CHAINS = 4  # whose spread tells the error
FIRST_BATCH = 25  # of draws, and of sweeps: these tell their spread; then as many as all before
MOST_DRAWS = 4000  # then chains: where weighted draws are good, this many leave an error of 0.01
MOVES = 10  # of a sweep, for each item, as in a fit


class Step(NamedTuple):
    """An answer on the way."""

    stage: str  # "MAP", "balanced matrix", "weighted draws" or "chains"
    seconds: float  # since the beginning
    probabilities: NDArray[np.float64]  # [item, rank - 1]
    error: float  # the largest standard error of a probability; infinite if not known


@dataclass(frozen=True, eq=False)
class Anytime:
    """The answers of :func:`anytime`, in the order in which they came.

    Attributes
    ----------
    consensus : (n_items,) array of int
        The most probable ranking, which is exact from the first step on.
    steps : list of Step
        What was known when; :func:`pm.plots.anytime` draws it.
    """

    consensus: NDArray[np.int32]
    steps: list[Step]

    @property
    def best(self) -> Step:
        """The answer with the smallest stated error, or else the latest."""
        known = [step for step in self.steps if math.isfinite(step.error)]
        return min(known, key=lambda step: step.error) if known else self.steps[-1]

    def __repr__(self) -> str:
        stage, seconds, _, error = self.best
        stated = f"error {error:.2g}" if math.isfinite(error) else "error not known"
        return f"Anytime({stage} after {seconds:.2g} s, {stated})"


def anytime(
    rankings: ArrayLike,
    alpha: float,
    seconds: float,
    *,
    distance: str = "footrule",
    rng: np.random.Generator | int | None = None,
) -> Anytime:
    """Rank probabilities of the consensus of full rankings, as good as the time allows.

    First the most probable ranking; then the balanced matrix, an estimate without draws; then
    weighted draws with foresight, twice as many each time; then exact chains that begin at such
    draws. Each answer states its error. How far it gets depends on the machine; as far as it gets,
    the same seed gives the same answers.

    Parameters
    ----------
    rankings : (n_users, n_items) array_like of int
        Full rankings.
    alpha : float
        Concentration of the users around the consensus, 0 or more.
    seconds : float
        When to stop. A step that would take longer than is left is not begun; how long it takes is
        judged by the one before.
    distance : str
        "footrule", "spearman" or "hamming".
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> rankings = Mallows([1, 2, 3, 4, 5, 6], alpha=2).draw(50, rng=1)
    >>> answer = anytime(rankings, 2.0, seconds=1, rng=1)
    >>> answer.consensus
    array([1, 2, 3, 4, 5, 6], dtype=int32)
    >>> answer.steps[0].stage  # how many more there are depends on the machine
    'MAP'
    """
    seconds, rng = check_number(seconds, "seconds"), as_rng(rng)
    start = perf_counter()
    law = PseudoMallows(rankings, alpha, balanced=True, distance=distance)
    consensus = law.tally.best()
    steps: list[Step] = []

    def note(stage: str, probabilities: NDArray[np.float64], error: float = math.inf) -> None:
        steps.append(Step(stage, perf_counter() - start, probabilities, error))

    def has_time(factor: float) -> bool:
        """For a step that takes so many times as long as the one before?"""
        before = steps[-2].seconds if len(steps) > 1 else 0.0
        return steps[-1].seconds + factor * (steps[-1].seconds - before) < seconds

    note("MAP", share_of_ranks(consensus[None]))
    if not has_time(0):
        return Anytime(consensus, steps)
    note("balanced matrix", law.balanced_marginals())

    draws: WeightedDraws | None = None
    while has_time(0 if draws is None else 2):
        fresh = law.draw_weighted(FIRST_BATCH if draws is None else len(draws.rankings), rng)
        draws = fresh if draws is None else _join(draws, fresh)
        error = 0.5 / math.sqrt(draws.effective_size)  # of a probability of one half
        note("weighted draws", share_of_ranks(draws.rankings, draws.weights), error)
        if len(draws.rankings) >= MOST_DRAWS:
            break
    if draws is None or len(draws.rankings) < MOST_DRAWS:
        return Anytime(consensus, steps)

    chosen = rng.choice(len(draws.rankings), N_CHAINS, p=draws.weights)
    states, seeds = draws.rankings[chosen], rng.integers(2**63, size=N_CHAINS).tolist()
    sums, n_sweeps = np.zeros((N_CHAINS, law.n_items, law.n_items)), 0
    while has_time(2 if n_sweeps else 0):
        batch = max(n_sweeps, FIRST_BATCH)
        for state, seed, total in zip(states, seeds, sums, strict=True):
            total += batch * share_of_ranks(_sweep(law, state, seed, n_sweeps, batch))
        n_sweeps += batch
        tables = sums / n_sweeps
        spread = float(tables.std(axis=0, ddof=1).max()) / math.sqrt(N_CHAINS)
        least = 0.5 / math.sqrt(N_CHAINS * n_sweeps)  # if all sweeps were independent
        note("chains", tables.mean(axis=0), max(spread, least))
    return Anytime(consensus, steps)


def _join(one: WeightedDraws, other: WeightedDraws) -> WeightedDraws:
    rankings = np.concatenate([one.rankings, other.rankings])
    return WeightedDraws(rankings, np.concatenate([one.log_weights, other.log_weights]))


def _sweep(
    law: PseudoMallows, state: NDArray[np.int32], seed: int, first: int, n_sweeps: int
) -> NDArray[np.int32]:
    """The rankings of a chain after each of its next sweeps; `state` goes along."""
    draws, stream = np.empty((n_sweeps, law.n_items), dtype=np.int32), np.empty(1, np.uint64)
    for number, draw in enumerate(draws, first):
        start_stream(seed, number, CHAIN, stream)
        law.tally.move(stream, law.alpha / law.n_items, Proposals(MOVES * law.n_items), state)
        draw[:] = state
    return draws
