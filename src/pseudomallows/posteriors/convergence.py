"""What the draws of chains are judged by, however many numbers there are.

The largest R-hat of one consensus is to be 1.05 or less. Clusters have more numbers (ranks of
items, cluster by cluster), and the largest of some thousand is above that by chance alone. So from
a hundred draws on it may be as large as that of independent draws is in all but one of a thousand
fits, that of the alphas likewise; and the mean over the items of each cluster is to be 1.05 or
less. An effective size of one in eight draws, at most 50, is then enough.

Of more than 10,000 numbers there may be few draws, as memory leaves room: of 10 million ranks, in
4 chains of 10 independent draws, the largest R-hat is about 2. So three things are asked of them,
which independent draws pass and chains that disagree fail:

- The mean R-hat over items is 1.05 or less: most items are as they should be.
- No R-hat of alpha is larger than those of independent draws are in all but one of a thousand fits.
- The largest R-hat of all ranks is no larger than chance allows. What chance does the draws show
  themselves: shuffled across the chains, they have no chains that could disagree. Half as much
  again is allowed, since successive draws of good chains may be a little alike. With few draws only
  chains that are some standard deviations apart are found out so, but of every single item.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import all_cores, blocks
from ..engines.memory import DENSE_ITEMS
from ..kernels.agreement import largest_rhats
from ..preferences import Pairs
from .diagnostics import EFFECTIVE_SIZE_LIMIT, RHAT_LIMIT, Diagnostics
from .intervals import BLOCK_OF_ITEMS
from .posterior import Posterior

FAILURE_RATE = 0.001  # that independent draws fail: one fit of a thousand is warned of for nothing
LEAST_DRAWS = 100  # of all chains, from which on clusters are judged by what chance does
# shuffles that show how far R-hats vary by chance, and how much of that is allowed
N_PERMUTATIONS, ALLOWED = 4, 1.5
POOR_RHAT = 1.2  # where the limit is 1.05: up to here, with care

Row = tuple[str, float, float]  # what it is of, R-hat, its limit


class Convergence(NamedTuple):
    """The R-hat that is nearest to its limit or furthest beyond, by the name of what it is of; and
    the least effective size."""

    name: str
    rhat: float
    rhat_limit: float
    effective_size: float
    size_limit: float

    @property
    def is_good(self) -> bool:
        """Can the draws be trusted?"""
        return self.rhat <= self.rhat_limit and self.effective_size >= self.size_limit

    @property
    def poor_rhat(self) -> float:
        """Up to here the draws have nearly settled."""
        return POOR_RHAT * self.rhat_limit / RHAT_LIMIT

    @property
    def _excess(self) -> float:
        return np.inf if np.isnan(self.rhat) else (self.rhat - 1) / (self.rhat_limit - 1)


def check_convergence(posterior: Posterior) -> Convergence:
    """The draws of all clusters of a posterior, against what is wanted."""
    clusters = range(posterior.n_clusters)
    found = list(all_cores().map(lambda each: posterior.diagnostics(each, some=True), clusters))
    size = float(np.min([each.checked_effective_size for each in found]))
    n_draws, part = posterior.weights.size, 4
    if posterior.n_items * posterior.n_clusters > DENSE_ITEMS:
        rows = _judge_many(posterior, found)
    else:
        rows = _judge_some(posterior, found)
        part = 4 if rows[-1][-1] == RHAT_LIMIT else 8  # the least of many is small by chance too
    enough = (size, min(EFFECTIVE_SIZE_LIMIT, n_draws / part))
    return max((Convergence(*row, *enough) for row in rows), key=lambda each: each._excess)


def groups_apart(posterior: Posterior) -> list[list[Any]]:
    """The groups of items that were never compared with each other, if it was fitted to comparisons
    and there are several."""
    groups = posterior.data.groups() if isinstance(posterior.data, Pairs) else []
    return groups if len(groups) > 1 else []


def _judge_some(posterior: Posterior, found: list[Diagnostics]) -> list[Row]:
    worst = float(np.max([each.worst_rhat for each in found]))
    n_numbers = posterior.n_clusters * (posterior.n_items + 1)
    n_chains, n_draws = posterior.weights.shape
    if posterior.n_clusters == 1 or posterior.weights.size < LEAST_DRAWS:
        return [("largest R-hat", worst, RHAT_LIMIT)]
    return [
        _mean_rhat(found),
        _rhat_of_alpha(posterior, found),
        ("largest R-hat", worst, rhat_limit(n_numbers, n_chains, n_draws)),
    ]


def _judge_many(posterior: Posterior, found: list[Diagnostics]) -> list[Row]:
    largest, by_chance = permuted_rhats(posterior.consensus)
    of_ranks = max(RHAT_LIMIT, 1 + ALLOWED * (by_chance - 1))
    return [
        _mean_rhat(found),
        _rhat_of_alpha(posterior, found),
        ("largest R-hat", largest, of_ranks),
    ]


def _rhat_of_alpha(posterior: Posterior, found: list[Diagnostics]) -> Row:
    limit = rhat_limit(posterior.n_clusters, *posterior.weights.shape)
    return "R-hat of alpha", float(np.max([each.alpha_rhat for each in found])), limit


def _mean_rhat(found: list[Diagnostics]) -> Row:
    return "mean R-hat", float(np.max([each.rank_rhat.mean() for each in found])), RHAT_LIMIT


def rhat_limit(n_numbers: int, n_chains: int, n_draws: int) -> float:
    """The largest R-hat of so many numbers that independent draws have in all but one of a thousand
    fits, by the F distribution; 1.05, if that is larger.

    >>> [round(rhat_limit(10, 4, n_draws), 2) for n_draws in (10, 20, 100)]
    [1.48, 1.2, 1.05]
    """
    from scipy.stats import f

    half, n_halves = n_draws // 2, 2 * n_chains
    if half < 2:
        return RHAT_LIMIT
    # a number has two R-hats, of what it is and of how far it is from its median
    ratio = f.isf(FAILURE_RATE / (2 * n_numbers), n_halves - 1, n_halves * (half - 1))
    return max(RHAT_LIMIT, float(np.sqrt((ratio + half - 1) / half)))


def permuted_rhats(consensus: NDArray[np.int32]) -> tuple[float, float]:
    """The largest R-hat of the halves of all chains among all items of ``consensus[chain, draw,
    cluster, item]``, and the largest after the draws were shuffled across the chains."""
    n_chains, n_draws = consensus.shape[:2]
    half = n_draws // 2
    if half < 2:
        return np.nan, np.nan
    parts = np.full((n_chains, n_draws), -1)
    parts[:, :half] = np.arange(n_chains)[:, None]
    parts[:, n_draws - half :] = n_chains + np.arange(n_chains)[:, None]
    rng = np.random.default_rng(0)  # the same draws have the same verdict
    shuffles = [parts.ravel(), *(rng.permutation(parts.ravel()) for _ in range(N_PERMUTATIONS))]
    rows = consensus.reshape(n_chains * n_draws, -1)

    def work(part: slice) -> NDArray[np.float64]:
        largest = np.zeros(len(shuffles))
        largest_rhats(rows[:, part], np.stack(shuffles), 2 * n_chains, largest)
        return largest

    found = list(all_cores().map(work, blocks(rows.shape[1], BLOCK_OF_ITEMS)))
    observed, *others = np.max(found, axis=0).tolist()
    return observed, max(others)
