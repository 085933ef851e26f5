"""A blend of several scores from item to item: one matrix again, and a bias; and the scores of many
users, block by block."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, clicks_matrix
from ..engines.executors import BLOCK, Executor, blocks
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.items.leads import clear_clicks
from .item_scores import ItemScores
from .next_clicks import MAX_SCORED
from .parts import Part, Popularity, Trend, law_of, part_of
from .products import AllProducts, Products
from .recency import Recency

MAX_CELLS = 1_000_000  # of a table of scores, 8 MB
LEAST_SPREAD = 128  # users behind the spread of scores: known to 1 / sqrt(2 * 128), 6 %
Floats = NDArray[np.float64]
Leads = NDArray[np.float32]


@dataclass(frozen=True)
class Blend:
    """Parts of a score, their weights, which add up to 1, and what the inner splits said.

    `worths[part]` is what the objective loses without the part (for a part alone: what it is above
    popularity), and `errors[part]` the standard error of that.
    """

    parts: tuple[Part, ...]
    weights: tuple[float, ...]
    objective: float
    worths: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    trend: Trend | None = None

    def settings(self) -> list[dict[str, Any]]:
        """For the settings of a fit, the largest weight first."""
        parts = zip(self.parts, self.weights, self.worths, self.errors, strict=True)
        rows = [
            {"part": part.name, "weight": weight, "worth": worth, "error": error}
            | {"law": law_of(part)}
            for part, weight, worth, error in parts
        ]
        return sorted(rows, key=lambda row: -float(row["weight"]))

    @classmethod
    def from_settings(cls, options: dict[str, Any]) -> "Blend | None":
        """The blend of a fit, from its settings; None if it has none, or parts not known here."""
        try:
            rows = options["parts"]
            parts = [part_of(row["law"]) for row in rows]
            names = ("weight", "worth", "error")
            numbers = [tuple(float(row[name]) for row in rows) for name in names]
            objective = float(options["objective"])
            trend = None if options.get("trend") is None else Trend(**options["trend"])
        except (KeyError, TypeError, ValueError):
            return None
        known = tuple(part for part in parts if part is not None)
        if not known or len(known) < len(parts) or not sum(numbers[0]) > 0:
            return None
        return cls(known, numbers[0], objective, numbers[1], numbers[2], trend)

    def learn(
        self,
        products: Products,
        sample: NDArray[np.int64],
        starts: dict[Part, ItemScores],
        recency: Recency | None = None,
    ) -> ItemScores:
        """One score, from all clicks of these products; spreads are those of a `sample` of users.

        The blend is scaled to the spread of the popularity, which is in shares of the users.
        `starts` has parts learnt from similar clicks, to begin with; those of all clicks go there.
        """
        factors = None if self.trend is None else self.trend.factors(products.clicks, products.now)
        learnt_parts = []
        for part in self.parts:
            learnt = products.learn(part, starts.get(part))
            if products.is_whole:
                starts[part] = learnt
            learnt_parts.append(learnt.times(factors))
        seen = products.clicks.take(sample)
        with_popularity = [*learnt_parts, products.learn(Popularity())]
        moments = moments_of(with_popularity, seen, products.executor, recency)
        alone = np.eye(len(learnt_parts) + 1)
        shares = np.array([*self.weights, 0.0])
        shares /= [moments.spread(one) for one in alone]
        shares *= moments.spread(alone[-1]) / moments.spread(shares)
        return add_up(list(zip(shares.tolist(), learnt_parts, strict=False)), products)


def add_up(parts: list[tuple[float, ItemScores]], products: Products) -> ItemScores:
    """The sum of some scores, each times a number: one array of items x items, unless there are
    too many items for it."""
    biases = [share * part.bias for share, part in parts if part.bias.size]
    bias = np.sum(biases, axis=0) if biases else np.empty(0)
    if isinstance(products, AllProducts):
        weights = np.zeros((products.n_items, products.n_items))
        for share, part in parts:
            if part.weights is not None or part.left.size:
                weights += share * part.dense()
        return ItemScores(weights, bias=bias)
    sparse = [np.float32(share) * part.weights for share, part in parts if part.weights is not None]
    sides = [(share, part) for share, part in parts if part.left.size]
    if not sides:
        return ItemScores(_sum_of(sparse, products.n_items), bias=bias)
    left = np.concatenate([part.left for _, part in sides], axis=1)
    right = np.concatenate([np.float32(share) * part.right for share, part in sides])
    return ItemScores(_sum_of(sparse, products.n_items), left, right, bias)


def _sum_of(sparse: list[Any], n_items: int) -> Any:
    from scipy.sparse import csr_array

    empty = csr_array((n_items, n_items), dtype=np.float32)
    return sum(sparse[1:], sparse[0]) if sparse else empty


class Moments(NamedTuple):
    """Of the scores of what users have not clicked, by some parts: how many there are, their sums
    and those of their products."""

    number: int
    sums: Floats
    products: Floats

    def spread(self, weights: Floats) -> float:
        """The standard deviation of the sum of the scores, each part times its weight; 1 if all
        are the same."""
        mean = float(weights @ self.sums) / max(self.number, 1)
        square = float(weights @ self.products @ weights) / max(self.number, 1)
        return float(np.sqrt(max(square - mean**2, 0.0))) or 1.0

    @classmethod
    def of(cls, clicks: ClickRows, tables: Leads, is_joint: bool) -> "Moments":
        """Of ``tables[part, row, item]``, 0 for what was clicked; products of two parts only if
        they are wanted. Each user's sums are in single precision."""
        n_parts, n_users, n_items = tables.shape
        sums, products = np.zeros(n_parts), np.zeros((n_parts, n_parts))
        for one, table in enumerate(tables):
            sums[one] = table.sum(axis=1).sum(dtype=np.float64)
            for other in range(0 if is_joint else one, one + 1):
                by_user = np.einsum("ri,ri->r", table, tables[other])
                products[one, other] = products[other, one] = by_user.sum(dtype=np.float64)
        n_clicks = int(clicks.starts[-1] - clicks.starts[0])
        return cls(n_users * n_items - n_clicks, sums, products)

    @classmethod
    def joined(cls, parts: "Sequence[Moments]") -> "Moments":
        """Those of all users."""
        numbers, sums, products = zip(*parts, strict=True)
        return cls(sum(numbers), np.sum(sums, axis=0), np.sum(products, axis=0))


def moments_of(
    scorers: list[ItemScores], seen: Clicks, executor: Executor, recency: Recency | None = None
) -> Moments:
    """The moments of all users and parts."""

    def work(task: list[slice]) -> list[Moments]:
        blocks = tables_of(scorers, seen, task, recency)
        return [Moments.of(clicks, tables, True) for clicks, tables in blocks]

    parts = executor.map(work, tasks_of(seen))
    return Moments.joined([moments for part in parts for moments in part])


def tasks_of(seen: Clicks) -> list[list[slice]]:
    """Blocks of users, some for each task: a task uses the memory of its scores again."""
    rows = blocks(seen.n_users, _n_rows(seen.n_items))
    return [rows[part] for part in blocks(len(rows), max(1, -(-len(rows) // 8)))]


def tables_of(
    scorers: list[ItemScores], seen: Clicks, task: list[slice], recency: Recency | None = None
) -> Iterator[tuple[ClickRows, Leads]]:
    """Clicks and ``tables[part, row, item]``, the scores by each part, block by block: 0 for what
    was clicked. The next block has the same memory."""
    most = max(rows.stop - rows.start for rows in task)
    memory = np.empty(len(scorers) * most * seen.n_items, np.float32)
    for rows in task:
        shape = (len(scorers), rows.stop - rows.start, seen.n_items)
        clicks, tables = slice_clicks(seen, rows), memory[: math.prod(shape)].reshape(shape)
        old = None if recency is None else weighted_rows(seen, rows, recency)
        for scorer, table in zip(scorers, tables, strict=True):
            table[:] = 0.0
            if old is None:
                scorer.add(clicks, table)
            else:
                scorer.add_weighted(old, table)
            clear_clicks(clicks, table)
        yield clicks, tables


def weighted_rows(seen: Clicks, rows: slice, recency: Recency) -> Any:
    """The clicks of some users as a sparse matrix of their weights."""
    weights = recency.weights_of(seen.take(np.arange(rows.start, rows.stop))).astype(np.float32)
    starts = seen.starts[rows.start : rows.stop + 1]
    return clicks_matrix(starts, seen.codes, seen.n_items, weights)


def n_of_spread(n_items: int) -> int:
    """Users behind the spread of scores: with very many items fewer tell as much."""
    return min(MAX_SCORED, max(LEAST_SPREAD, MAX_CELLS // n_items))


def _n_rows(n_items: int) -> int:
    """Users that are scored at a time."""
    return max(1, min(BLOCK, MAX_CELLS // n_items))
