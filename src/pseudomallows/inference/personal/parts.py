"""The parts of a blend of scores: matrices from item to item, and the popularity.

With clicks X of users who have n_u of them, G_a = X' diag(n_u^-a) X are the products of the items:
where a is above 0, users with many clicks count for less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import BLOCK, Executor, blocks
from ...kernels.item_weights import nonnegative_rows
from ...posteriors.personal import clicks_matrix
from ...preferences import Clicks

TOLERANCE = 1e-4  # of the weights of a regression in a blend
N_TARGETS = 32  # regressions in a task of a thread
MAX_FACTORS = 32
DENSE_EIGEN = 400  # items up to which all eigenvectors are as fast as some
Floats = NDArray[np.float64]


class Products:
    """What the parts need of the users: the products of the items, and their eigenvectors."""

    def __init__(self, clicks: Clicks, executor: Executor):
        self.clicks, self.executor = clicks, executor
        self._products: dict[float, Floats] = {}
        self._vectors: dict[tuple[float, float], Floats] = {}

    def of(self, power: float) -> Floats:
        """How often people clicked both of two items, each person times clicks^-power."""
        if power not in self._products:
            self._products[power] = self._count(power)
        return self._products[power]

    def _count(self, power: float) -> Floats:
        """Sums over blocks of users, always of the same size and in the same order."""
        clicks = self.clicks
        shares = clicks.weights * np.maximum(clicks.n_clicks, 1.0) ** -power

        def count(rows: slice) -> Floats:
            starts = clicks.starts[rows.start : rows.stop + 1]
            matrix = clicks_matrix(starts, clicks.codes, clicks.n_items)
            weighted = matrix.multiply(shares[rows][:, None]).tocsr()
            return np.asarray((weighted.T @ matrix).toarray())

        total = np.zeros((clicks.n_items, clicks.n_items))
        for part in self.executor.map(count, blocks(clicks.n_users, 64 * BLOCK)):
            total += part
        return total

    def vectors(self, power: float, damping: float) -> Floats:
        """The first eigenvectors of the products of items scaled by popularity^-damping."""
        key = (power, damping)
        if key not in self._vectors:
            products, scales = self.of(power), self.scales(power, damping)
            self._vectors[key] = first_eigenvectors(scales[:, None] * products * scales)
        return self._vectors[key]

    def scales(self, power: float, damping: float) -> Floats:
        """(popularity + 1)^-damping."""
        return np.asarray((np.diag(self.of(power)) + 1) ** -damping)


def first_eigenvectors(matrix: Floats) -> Floats:
    """Those of the `MAX_FACTORS` largest eigenvalues of a symmetric matrix, largest first."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    n_items = len(matrix)
    if n_items <= DENSE_EIGEN:
        first = max(n_items - MAX_FACTORS, 0)
        return np.asarray(eigh(matrix, subset_by_index=[first, n_items - 1])[1][:, ::-1])
    values, vectors = eigsh(matrix, k=MAX_FACTORS, v0=np.ones(n_items))
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")])


@dataclass(frozen=True)
class Regression:
    """Each item by the others, with weights of 0 or more."""

    power: float
    ridge: float
    lasso: float = 0.0  # both in units of the mean number of clicks of an item

    @property
    def name(self) -> str:
        """For settings and reports."""
        lasso = f", lasso {self.lasso:g}" if self.lasso else ""
        return f"regression of weights >= 0, power {self.power:g}, ridge {self.ridge:g}{lasso}"

    def learn(self, products: Products, start: Floats | None = None) -> Floats:
        """The weights; the search starts with those of `start`."""
        table = products.of(self.power)
        unit = float(np.trace(table)) / len(table)
        solved = np.zeros_like(table) if start is None else np.ascontiguousarray(start.T)
        law = (max(self.ridge * unit, 1e-6), self.lasso * unit, TOLERANCE)
        solve_regressions(table, law, solved, products.executor)
        return np.ascontiguousarray(solved.T)


def solve_regressions(
    products: Floats, law: tuple[float, float, float], solved: Floats, executor: Executor
) -> None:
    """Fill ``solved[target, item]``; `law` is ridge, lasso and tolerance."""

    def solve(rows: slice) -> None:
        nonnegative_rows(products, *law, rows.start, solved[rows])

    list(executor.map(solve, blocks(len(products), N_TARGETS)))


@dataclass(frozen=True)
class ClosedForm:
    """Each item by the others, with weights of any sign: EASE (Steck 2019)."""

    power: float
    ridge: float
    own: float = 0.0  # ridge in units of the number of clicks of the item itself

    @property
    def name(self) -> str:
        """For settings and reports."""
        own = f" + {self.own:g} of the item" if self.own else ""
        return f"regression of any weights, power {self.power:g}, ridge {self.ridge:g}{own}"

    def learn(self, products: Products, start: Floats | None = None) -> Floats:
        """The weights."""
        table = products.of(self.power)
        counts = np.diag(table)
        penalty = np.maximum(self.ridge * counts.mean() + self.own * counts, 1e-6)
        inverse = np.linalg.inv(table + np.diag(penalty))
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return weights


@dataclass(frozen=True)
class Factors:
    """The items in the space of some factors (SVD). An item's own click is left out, as in the
    other parts: unseen items have none, and the law of the clicked ones stays honest."""

    power: float
    n_factors: int
    damping: float

    @property
    def name(self) -> str:
        """For settings and reports."""
        return f"{self.n_factors} factors, power {self.power:g}, damping {self.damping:g}"

    def learn(self, products: Products, start: Floats | None = None) -> Floats:
        """The weights."""
        scales = products.scales(self.power, self.damping)
        vectors = products.vectors(self.power, self.damping)[:, : self.n_factors]
        weights = np.asarray((scales[:, None] * vectors) @ (vectors / scales[:, None]).T)
        np.fill_diagonal(weights, 0.0)
        return weights


@dataclass(frozen=True)
class Popularity:
    """The same scores for everybody."""

    name: str = "popularity"


Part = Regression | ClosedForm | Factors | Popularity
POOL: Sequence[Part] = (  # the first is the simplest: it stays unless another is clearly better
    Regression(0, 0.3),
    Regression(0.5, 1),
    Regression(0, 0.5, 0.07),
    ClosedForm(0, 0.3, 1),
    ClosedForm(1, 3),
    Factors(0, 16, 0.5),
    Factors(0, 32, 0.5),
    Factors(0.5, 8, 0.5),
    Factors(1, 16, 0.75),
    Popularity(),
)


def pool_for(n_items: int) -> list[Part]:
    """The parts that make sense for so many items: fewer factors than half of them."""
    return [part for part in POOL if not isinstance(part, Factors) or 2 * part.n_factors < n_items]
