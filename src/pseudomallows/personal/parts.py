"""The parts of a blend of scores: matrices from item to item, and the popularity.

With clicks X of users who have n_u of them, G_a = X' diag(n_u^-a) X are the products of the items:
where a is above 0, users with many clicks count for less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import DENSE_ITEMS
from ..posteriors.item_scores import ItemScores
from .products import AllProducts, Products

Floats = NDArray[np.float64]


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

    def learn(self, products: Products, start: ItemScores | None = None) -> ItemScores:
        """The weights; the search starts with those of `start`."""
        return products.regress(self.power, self.ridge, self.lasso, start)


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

    def learn(self, products: Products, start: ItemScores | None = None) -> ItemScores:
        """The weights."""
        assert isinstance(products, AllProducts)
        counts = products.norms(self.power)
        penalty = np.maximum(self.ridge * counts.mean() + self.own * counts, 1e-6)
        return products.invert(self.power, penalty)


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

    def learn(self, products: Products, start: ItemScores | None = None) -> ItemScores:
        """The factors."""
        scales = products.scales(self.power, self.damping)[:, None]
        vectors = products.vectors(self.power, self.damping)[:, : self.n_factors]
        left = np.asarray(scales * vectors, dtype=products.dtype)
        return ItemScores(left=left, right=np.asarray((vectors / scales).T, dtype=products.dtype))


@dataclass(frozen=True)
class Popularity:
    """The same scores for everybody: the share of the people who clicked an item."""

    name: str = "popularity"

    def learn(self, products: Products, start: ItemScores | None = None) -> ItemScores:
        """The bias."""
        return ItemScores(bias=products.norms(0.0) / max(products.n_people, 1))


Part = Regression | ClosedForm | Factors | Popularity
# Fewer than four did not suffice on nine click logs; what else was tried is in
# docs/measurements.md. The first is the simplest: it stays unless another is clearly better.
POOL: Sequence[Part] = (
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
# Those of them for so many items that there is no table of their pairs.
CATALOGUE_POOL: Sequence[Part] = (
    Regression(0, 0.3),
    Factors(0, 16, 0.5),
    Factors(0, 32, 0.5),
    Popularity(),
)


def pool_for(n_items: int) -> list[Part]:
    """The parts that make sense for so many items: fewer factors than half of them."""
    pool = POOL if n_items <= DENSE_ITEMS else CATALOGUE_POOL
    return [part for part in pool if not isinstance(part, Factors) or 2 * part.n_factors < n_items]


def part_named(name: str) -> Part | None:
    """The part of either pool that has this name."""
    return next((part for part in (*POOL, *CATALOGUE_POOL) if part.name == name), None)
