"""The parts of a blend of scores: matrices from item to item, and the popularity.

With clicks X of users who have n_u of them, G_a = X' diag(n_u^-a) X are the products of the items:
where a is above 0, users with many clicks count for less.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.times import DAY
from ..engines.memory import DENSE_ITEMS
from .item_scores import ItemScores
from .products import AllProducts, Products
from .recency import are_dates

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


@dataclass(frozen=True)
class Trend:
    """What is popular now: every score of an item is multiplied by (its share of the clicks now /
    its share ever)^power, where a click counts half as much now with every half-life that it is
    older. So what each user likes stays, and what nobody clicks any more goes.
    """

    half_life: float
    unit: str  # "days", or "" for times that are no dates
    power: float

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"scores count by what is popular now, with a half-life of {self.half_life:.3g}{unit}, "
            f"to the power {self.power:g}"
        )

    def factors(self, clicks: Clicks, now: float) -> Floats:
        """``factors[item]`` by which scores are multiplied.

        >>> clicks = Clicks.from_clicks([[1, 1], [0, 1]], times=[[0, 8], [0, 9]])
        >>> Trend(1.0, "", 1.0).factors(clicks, 9.0).round(2)
        array([0.97, 1.02])
        """
        ever, times = popular(clicks, None), clicks.times
        assert times is not None
        ages = np.where(times <= now, (now - times) / (DAY if self.unit else 1.0), np.inf)
        recent = np.exp2(-ages / self.half_life)  # of unknown times 0
        shares = (popular(clicks, recent) * recent.sum() + N_ALWAYS * ever) / (
            recent.sum() + N_ALWAYS
        )
        return np.asarray((shares / ever) ** self.power)


def popular(clicks: Clicks, weights: Floats | None) -> Floats:
    """``shares[item]`` of the clicks, each times its weight, with one more click for all items
    together; their sum is 1."""
    people = clicks.weights[clicks.owners].astype(np.float64)
    people = people if weights is None else people * weights
    counts = np.bincount(clicks.codes, people, clicks.n_items) + 1 / clicks.n_items
    return np.asarray(counts / counts.sum())


Part = Regression | ClosedForm | Factors | Popularity
KINDS = {kind.__name__: kind for kind in (Regression, ClosedForm, Factors, Popularity)}
# Clicks by which popularity now is drawn to popularity ever, so that a few do not decide.
N_ALWAYS = 20.0
# Fewer than four did not suffice on nine click logs; what else was tried is in
# docs/measurements.md. On other logs other ridges and numbers of factors were best, by far: so the
# grids are as wide as those of a tuned rival, from a hundredth of the mean count up, and each inner
# split says which of them are worth weighing.
POOL: Sequence[Part] = (
    Regression(0, 0.3),
    Regression(0.5, 1),
    Regression(0, 0.5, 0.07),
    *(ClosedForm(0, ridge) for ridge in (0.01, 0.03, 0.1, 0.3, 1, 3)),
    ClosedForm(0, 0.3, 1),
    ClosedForm(1, 3),
    Factors(0, 8, 0.5),
    Factors(0, 16, 0.5),
    Factors(0, 32, 0.5),
    Factors(0, 64, 0.5),
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
# From the cube root of a trend to all of it. Over three date cuts of retail, half of these lost 0.5
# to 3 points of NDCG, twice gained 0.1 to 0.6 and 1 alone was level; steadier logs need less.
POWERS = (0.35, 0.7, 1.0)
SHARES = (3, 10, 30, 100, 300, 1000)  # of the time of a log: half-lives, of a year a third to hours


def pool_for(n_items: int) -> list[Part]:
    """The parts that make sense for so many items: fewer factors than half of them."""
    pool = POOL if n_items <= DENSE_ITEMS else CATALOGUE_POOL
    return [part for part in pool if not isinstance(part, Factors) or 2 * part.n_factors < n_items]


def trends_for(clicks: Clicks) -> list[Trend]:
    """Half-lives from a third of the time of the log to hours, and three powers; none if all clicks
    are at one time."""
    times = np.empty(0) if clicks.times is None else clicks.times[~np.isnan(clicks.times)]
    span = float(np.ptp(times)) if len(times) else 0.0
    if span <= 0:
        return []
    unit = "days" if are_dates(times) else ""
    lives = [span / share / (DAY if unit else 1.0) for share in SHARES]
    return [Trend(life, unit, power) for life in lives for power in POWERS]


def part_of(law: Any) -> Part | None:
    """The part with these settings (`law_of`), or None if it is not known here."""
    try:
        kind, *numbers = law
        return KINDS[kind](*numbers)
    except (TypeError, ValueError, KeyError):
        return None


def law_of(part: Part) -> list[Any]:
    """A part as settings keep it: its kind, and what it is made with."""
    values = [] if isinstance(part, Popularity) else [getattr(part, f.name) for f in fields(part)]
    return [type(part).__name__, *values]
