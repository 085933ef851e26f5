"""Distances between rankings, one file each, and what a consensus step needs of the users.

To add one: a file here, its name in `ALL`, and its definition in ``tests/naive.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import check_name, check_pair
from .cayley import CAYLEY
from .distance import Distance, PriceDistance, adds_up
from .footrule import FOOTRULE
from .hamming import HAMMING
from .kendall import KENDALL
from .spearman import SPEARMAN
from .ulam import ULAM

ALL: tuple[Distance, ...] = (FOOTRULE, SPEARMAN, KENDALL, CAYLEY, HAMMING, ULAM)
DISTANCES: dict[str, Distance] = {distance.name: distance for distance in ALL}
__all__ = [
    "DISTANCES",
    "FOOTRULE",
    "KENDALL",
    "Distance",
    "PriceDistance",
    "adds_up",
    "distance_between",
    "get",
    "get_price",
    "price_of",
]


def get(name: str) -> Distance:
    """The distance of that name, or an error that says which there are.

    >>> get("footrule").between([[1, 2, 3], [3, 2, 1]], [1, 2, 3])
    array([0, 4])
    """
    return DISTANCES[check_name(name, "distance", DISTANCES)]


def distance_between(
    ranking: ArrayLike, other: ArrayLike, name: str = "footrule"
) -> NDArray[np.int64] | int:
    """Distance between rankings, in whole numbers, never normalised.

    One number for two rankings; for an array of rankings, one number each. As `pm.distance`.

    Parameters
    ----------
    ranking, other : array_like of int
        A ranking, or an array ``[row, item]`` of rankings; one on either side may be compared with
        all rows of the other.
    name : str
        "footrule", "spearman" (squared differences), "kendall", "cayley", "hamming", "ulam".

    Examples
    --------
    >>> distance_between([1, 2, 3], [3, 2, 1], "kendall")
    3
    >>> distance_between([[1, 2, 3], [2, 3, 1]], [1, 2, 3], "hamming")
    array([0, 3])
    """
    distances = get(name).between(*check_pair(ranking, other))
    return int(distances[0]) if np.ndim(ranking) == np.ndim(other) == 1 else distances


def get_price(name: str) -> PriceDistance:
    """The distance of that name, if it adds up over items, or an error that says which do.

    >>> get_price("hamming").prices(2)
    array([[0, 1],
           [1, 0]])
    """
    return price_of(get(name))


def price_of(distance: Distance) -> PriceDistance:
    """The distance, if it adds up over items, or an error that says which do."""
    if not adds_up(distance):
        known = ", ".join(repr(other) for other, each in DISTANCES.items() if adds_up(each))
        raise ValueError(
            f"distance={distance.name!r} does not add up over items: use one of {known}, or "
            "method='mcmc'"
        )
    return distance
