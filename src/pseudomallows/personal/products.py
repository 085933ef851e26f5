"""What the parts of a blend need of the users: the products of the items, regressions from them,
and their factors. Up to some thousand items by a table of all pairs; beyond, by lists of clicks
alone, so that memory grows with the clicks and the weights that are kept.

A user counts as clicks^-power, where the clicks are those of the whole log: so the products of a
log with some clicks hidden differ little, and are made from those of the whole one.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, clicks_matrix
from ..engines.executors import Executor, at_hand, blocks, is_remote
from ..engines.memory import CUBIC_ITEMS, DENSE_ITEMS
from ..kernels.click_rows import ClickRows
from ..kernels.items.item_products import (
    ClickLists,
    Head,
    count_all_products,
    count_products,
    drop_products,
    mark_taken,
    mirror_rows,
)
from ..kernels.items.near import NearLaw, Rows, near_rows
from ..kernels.items.weights import nonnegative_rows
from .click_shards import RemoteClicks, click_lists
from .item_scores import ItemScores

# Of the weights of a regression in a blend; three times that with clicks hidden.
TOLERANCE = 1e-4
N_TARGETS = 32  # regressions in a task of a thread: with 4,000 items a row of 16 KB each
MAX_FACTORS = 64  # the most that a part of `pool_for` asks for
N_TURNS = 12  # of a search for eigenvectors, a third from a start near; 6 and 24 did as well
# Of large catalogues; what half and twice of these change is in docs/measurements.md: no hits.
N_HEAD = 6144  # often clicked items, whose pairs have a table: 150 MB, which saves time alone
N_NEAR, N_LEAST_NEAR = 150, 20  # items that one is regressed on; at least, with few clicks
NEAR_TOLERANCE, LEAST_WEIGHT = 1e-3, 1e-3  # of weights on near items, as what is less is not kept
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Products(ABC):
    """The products of the items, of all clicks or of those that are left when some are hidden."""

    dtype: ClassVar[Any]  # of the weights

    def __init__(self, clicks: Clicks, executor: Executor, taken: Mask | None = None):
        self.whole, self.executor, self._taken = clicks, at_hand(executor), taken
        self.is_whole = taken is None
        self.n_items, self.n_people = clicks.n_items, int(clicks.weights.sum())
        self.now = np.inf  # the time of which a trend says what is popular
        self._learnt: dict[Any, ItemScores] = {}
        self._vectors: dict[tuple[float, float], Floats] = {}
        self.near_vectors: dict[
            tuple[float, float], Any
        ] = {}  # those of another log, to begin with

    @cached_property
    def clicks(self) -> Clicks:
        """Those that are left."""
        return self.whole if self._taken is None else self.whole.choose(~self._taken)

    def learn(self, part: Any, start: ItemScores | None = None) -> ItemScores:
        """A part of a blend, learnt when it is asked for first."""
        if part not in self._learnt:
            self._learnt[part] = part.learn(self, start)
        return self._learnt[part]

    def forget(self, part: Any) -> None:
        """Keep a part no longer."""
        self._learnt.pop(part, None)

    def shares(self, power: float) -> Floats:
        """What each user counts, as a multiple of so small a power of 2 that all sums over users
        are exact: the same bits in any order, on threads and on workers."""
        bits = max(min(52 - math.ceil(math.log2(self.n_people + 1)), 40), 0)  # of 52 in a double
        shares = self.whole.weights * np.maximum(self.whole.n_clicks, 1.0) ** -power
        return np.asarray(np.ldexp(np.rint(np.ldexp(shares, bits)), -bits))

    def scales(self, power: float, damping: float) -> Floats:
        """(popularity + 1)^-damping."""
        return np.asarray((self.norms(power) + 1) ** -damping)

    def vectors(self, power: float, damping: float) -> Floats:
        """The first eigenvectors of the products of items scaled by popularity^-damping."""
        key = (power, damping)
        if key not in self._vectors:
            self._vectors[key] = self._make_vectors(key)
        return self._vectors[key]

    @abstractmethod
    def norms(self, power: float) -> Floats:
        """The products of each item with itself."""

    @abstractmethod
    def without(self, taken: Mask) -> "Products":
        """Those of what is left when some clicks are `taken`, one place for each."""

    @abstractmethod
    def regress(
        self, power: float, ridge: float, lasso: float, start: ItemScores | None
    ) -> ItemScores:
        """Each item by the others, with weights of 0 or more."""

    @abstractmethod
    def _make_vectors(self, key: tuple[float, float]) -> Floats: ...


def make_products(clicks: Clicks, executor: Executor) -> Products:
    """The kind that suits so many items."""
    return (AllProducts if clicks.n_items <= DENSE_ITEMS else NearProducts)(clicks, executor)


def taken_from(whole: Clicks, shown: Clicks) -> Mask | None:
    """Which clicks of the whole log are not shown; None if the one is not a part of the other."""
    if isinstance(shown, RemoteClicks):
        return shown.taken_from(whole)
    if shown.n_users != whole.n_users or shown.n_items != whole.n_items:
        return None
    if not (whole.weights == shown.weights).all():
        return None
    taken = np.empty(len(whole.codes), dtype=bool)
    rows = [ClickRows(log.starts, log.codes) for log in (whole, shown)]
    return taken if mark_taken(*rows, taken) else None


class AllProducts(Products):
    """A table of all pairs of items."""

    dtype: ClassVar[Any] = np.float64

    def __init__(
        self,
        clicks: Clicks,
        executor: Executor,
        parent: "AllProducts | None" = None,
        taken: Mask | None = None,
    ):
        super().__init__(clicks, executor, taken)
        self._parent = parent
        self._products: dict[float, Floats] = {}
        self._singles: dict[float, NDArray[np.float32]] = {}
        self._remote: RemoteClicks | None = clicks if isinstance(clicks, RemoteClicks) else None
        if parent is None and is_remote(executor) and self._remote is None:
            self._remote = RemoteClicks.send(clicks, executor)

    @cached_property
    def _lists(self) -> ClickLists:
        return click_lists(self.whole) if self._parent is None else self._parent._lists

    def without(self, taken: Mask) -> "AllProducts":
        """From the table of all clicks, less what is taken."""
        products = AllProducts(self.whole, self.executor, self, taken)
        products.near_vectors = self.near_vectors
        return products

    def of(self, power: float) -> Floats:
        """How often people clicked both of two items, each person times clicks^-power."""
        if power not in self._products:
            self._products[power] = self._count(power)
        return self._products[power]

    def _count(self, power: float) -> Floats:
        """Row by row of the table, or shard by shard of the users, where these are elsewhere."""
        n_items, shares = self.n_items, self.shares(power)
        if self._parent is not None and self._taken is not None:
            table = self._parent.of(power).copy()
            if self._remote is not None:
                return table + self._remote.products_taken(shares, self._taken)
            drop_products(self._lists, self._taken, shares, table)
            return table
        if self._remote is not None:
            return self._remote.products(shares)
        table = np.zeros((n_items, n_items))

        def count(rows: slice) -> None:
            count_all_products(self._lists, shares, rows.start, table[rows])

        list(self.executor.map(count, blocks(n_items, N_TARGETS)))
        mirror_rows(table)
        return table

    def norms(self, power: float) -> Floats:
        """The diagonal."""
        return np.diag(self.of(power)).copy()

    def _single(self, power: float) -> NDArray[np.float32]:
        if power not in self._singles:
            self._singles[power] = self.of(power).astype(np.float32)
        return self._singles[power]

    def regress(
        self, power: float, ridge: float, lasso: float, start: ItemScores | None
    ) -> ItemScores:
        """On all other items."""
        table = self._single(power)
        unit = float(np.trace(self.of(power))) / self.n_items
        solved = np.zeros_like(table)
        if start is not None and start.weights is not None:
            solved[:] = start.weights.T
        tolerance = TOLERANCE if self.is_whole else 3 * TOLERANCE
        law = (max(ridge * unit, 1e-6), lasso * unit, tolerance)
        solve_regressions(table, law, solved, self.executor)
        return ItemScores(np.ascontiguousarray(solved.T))

    def invert(self, power: float, penalty: Floats) -> ItemScores:
        """Weights of any sign, by the inverse of the products with a penalty on each item."""
        is_small = self.n_items <= CUBIC_ITEMS
        table = self.of(power) if is_small else self._single(power)
        inverse = inverse_of(table, penalty)
        weights = inverse / -np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return ItemScores(weights)

    def _make_vectors(self, key: tuple[float, float]) -> Floats:
        is_small = self.n_items <= CUBIC_ITEMS
        table: NDArray[Any] = self.of(key[0]) if is_small else self._single(key[0])
        scales: NDArray[Any] = self.scales(*key).astype(table.dtype)
        scaled = scales[:, None] * table
        scaled *= scales
        start = self.near_vectors.get(key)
        vectors = first_eigenvectors(scaled, start)
        self.near_vectors[key] = vectors
        return vectors[:, :MAX_FACTORS]


def start_from(weights: Floats, products: Products, power: float, ridge: float) -> ItemScores:
    """The weights of a blend as the start of a regression: what is above 0, in the scale that fits
    some of the items best."""
    assert isinstance(products, AllProducts)
    table, positive = products.of(power), np.maximum(weights, 0.0)
    some = positive[:, :: max(1, products.n_items // N_TARGETS)]
    targets = table[:, :: max(1, products.n_items // N_TARGETS)]
    penalty = ridge * float(np.trace(table)) / products.n_items
    size = float((some * (table @ some)).sum() + penalty * (some**2).sum())
    return ItemScores(positive * (float((some * targets).sum()) / size if size > 0 else 0.0))


def inverse_of(matrix: NDArray[Any], penalty: Floats) -> NDArray[Any]:
    """The inverse of a symmetric positive matrix, with a penalty on its diagonal, by Cholesky."""
    from scipy.linalg import lapack

    whole = np.array(matrix, order="F")
    whole[np.diag_indices(len(whole))] += penalty.astype(whole.dtype)
    is_single = whole.dtype == np.float32
    potrf, potri = (lapack.spotrf, lapack.spotri) if is_single else (lapack.dpotrf, lapack.dpotri)
    root, info = potrf(whole, lower=True, clean=False, overwrite_a=True)  # by columns
    if info != 0:  # pragma: no cover  # so small a penalty that single precision does not do
        return np.linalg.inv(matrix.astype(np.float64) + np.diag(penalty))
    inverse, _ = potri(root, lower=True, overwrite_c=True)
    turned = np.ascontiguousarray(inverse.T)  # by rows: the half above the diagonal is filled
    mirror_rows(turned)
    return turned


def first_eigenvectors(matrix: NDArray[Any], start: Any = None) -> Floats:
    """Those of the `MAX_FACTORS` largest eigenvalues of a symmetric matrix, largest first; with
    many items some more, which may be a `start` for a matrix near this one."""
    from scipy.linalg import eigh

    n_items = len(matrix)
    if n_items <= CUBIC_ITEMS:
        first = max(n_items - MAX_FACTORS, 0)
        return np.asarray(eigh(matrix, subset_by_index=[first, n_items - 1])[1][:, ::-1])
    return subspace(lambda vectors: matrix @ vectors, n_items, start)


def subspace(apply: Any, n_items: int, start: Any = None) -> Floats:
    """The first eigenvectors of a symmetric matrix that is applied to some vectors at a time, by
    turns of applying it and making them orthogonal (Halko, Martinsson, Tropp 2011)."""
    from scipy.linalg import eigh

    width = min(MAX_FACTORS + 16, n_items)  # more than are wanted, so that these are exact soon
    vectors, n_turns = start, N_TURNS // 3
    if start is None or start.shape != (n_items, width):
        vectors, n_turns = np.random.default_rng(0).standard_normal((n_items, width)), N_TURNS
    for _ in range(n_turns):
        vectors = orthogonal(apply(np.asarray(vectors, dtype=np.float32)))
    moved = np.asarray(apply(vectors.astype(np.float32)), dtype=np.float64)
    inner = vectors.T @ moved
    return np.asarray(vectors @ eigh((inner + inner.T) / 2)[1][:, ::-1])


def orthogonal(vectors: NDArray[Any]) -> Floats:
    """Orthogonal vectors that span the same space, by the eigenvectors of their products."""
    from scipy.linalg import eigh

    wide = np.asarray(vectors, dtype=np.float64)
    values, turn = eigh(wide.T @ wide)
    return np.asarray(wide @ (turn / np.sqrt(np.maximum(values, values[-1] * 1e-14 + 1e-300))))


def solve_regressions(
    products: NDArray[Any],
    law: tuple[float, float, float],
    solved: NDArray[Any],
    executor: Executor,
) -> None:
    """Fill ``solved[target, item]``; `law` is ridge, lasso and tolerance."""

    def solve(rows: slice) -> None:
        nonnegative_rows(products, *law, rows.start, solved[rows])

    list(executor.map(solve, blocks(len(products), N_TARGETS)))


class NearProducts(Products):
    """No table of all pairs: of each item those near to it, and of the often clicked ones all."""

    dtype: ClassVar[Any] = np.float32

    def __init__(self, clicks: Clicks, executor: Executor, taken: Mask | None = None):
        super().__init__(clicks, executor, taken)
        self._lists = click_lists(self.clicks)
        self._changed = np.arange(self.n_items)
        if taken is not None:
            self._changed = np.unique(clicks.codes[taken]).astype(np.int64)

    def without(self, taken: Mask) -> "NearProducts":
        """From the lists of what is left."""
        products = NearProducts(self.whole, self.executor, taken)
        products.near_vectors = self.near_vectors
        return products

    def norms(self, power: float) -> Floats:
        """What the users of each item count."""
        owners = np.repeat(self.shares(power), self.clicks.n_clicks)
        sums = np.bincount(self.clicks.codes, weights=owners, minlength=self.n_items)
        return np.asarray(sums, dtype=np.float64)

    def _head(self, power: float) -> Head:
        """Large, and used once: not kept."""
        counts = np.diff(self._lists.item_starts)
        items = np.sort(np.argsort(-counts, kind="stable")[:N_HEAD])
        places = np.full(self.n_items, -1, dtype=np.int32)
        places[items] = np.arange(len(items))
        head = Head(places, items, np.zeros((len(items), len(items)), np.float32))
        shares = self.shares(power)

        def count(rows: slice) -> None:
            count_products(self._lists, shares, head, rows.start, head.table[rows])

        list(self.executor.map(count, blocks(len(items), N_TARGETS)))
        return head

    def regress(
        self, power: float, ridge: float, lasso: float, start: ItemScores | None
    ) -> ItemScores:
        """On the items near it alone. From a `start`, the weights of the whole log, only those of
        items of which clicks are hidden are sought anew: what the others owe to them is little."""
        head, norms, shares = self._head(power), self.norms(power), self.shares(power)
        unit = float(norms.mean())
        penalties = (max(ridge * unit, 1e-6), lasso * unit)
        law = NearLaw(*penalties, NEAR_TOLERANCE, LEAST_WEIGHT, N_LEAST_NEAR)
        is_near = start is not None and not self.is_whole
        targets = self._changed if is_near else np.arange(self.n_items)

        def solve(part: slice) -> tuple[Any, Any, Any]:
            size = part.stop - part.start
            shape = (size, min(N_NEAR, self.n_items))
            rows = Rows(
                np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(size, np.int64)
            )
            near_rows(self._lists, shares, head, norms, law, targets[part], rows)
            is_filled = np.arange(shape[1]) < rows.sizes[:, None]
            return rows.sizes, rows.items[is_filled], rows.weights[is_filled]

        solved = list(self.executor.map(solve, blocks(len(targets), 4 * N_TARGETS)))
        by_target = self._packed(targets, solved)
        if is_near and start is not None:
            is_old = np.ones(self.n_items, dtype=bool)
            is_old[targets] = False
            by_target = by_target + _rows_kept(start.weights.T.tocsr(), is_old)
        return ItemScores(by_target.T.tocsr())

    def _packed(self, targets: NDArray[np.int64], solved: list[tuple[Any, Any, Any]]) -> Any:
        """The weights of each target in its row of a sparse array."""
        from scipy.sparse import csr_array

        sizes, items, weights = (np.concatenate(parts) for parts in zip(*solved, strict=True))
        all_sizes = np.zeros(self.n_items, dtype=np.int64)
        all_sizes[targets] = sizes
        starts = np.concatenate([[0], np.cumsum(all_sizes)])
        return csr_array((weights, items, starts), shape=(self.n_items, self.n_items))

    def _make_vectors(self, key: tuple[float, float]) -> Floats:
        """By turns of sparse products with the clicks: X and then its transpose."""
        scales, shares = self.scales(*key), np.sqrt(self.shares(key[0]))
        scaled = clicks_matrix(self.clicks.starts, self.clicks.codes, self.n_items)
        values = np.repeat(shares, self.clicks.n_clicks) * scales[self.clicks.codes]
        scaled.data = values.astype(np.float32)
        turned = scaled.T.tocsr()
        eigenvectors = subspace(
            lambda vectors: turned @ (scaled @ vectors), self.n_items, self.near_vectors.get(key)
        )
        self.near_vectors[key] = eigenvectors
        return eigenvectors[:, :MAX_FACTORS]


def _rows_kept(matrix: Any, is_kept: Mask) -> Any:
    """A sparse array without some of its rows."""
    from scipy.sparse import csr_array

    sizes = np.diff(matrix.indptr)
    is_entry = np.repeat(is_kept, sizes)
    starts = np.concatenate([[0], np.cumsum(np.where(is_kept, sizes, 0))])
    return csr_array((matrix.data[is_entry], matrix.indices[is_entry], starts), shape=matrix.shape)
