"""Distances between rankings, one file each, and what a consensus step needs of the users.

To add one: a file here, a line in `DISTANCES`, and its definition in ``tests/naive.py``.
"""

from .cayley import CAYLEY
from .distance import Distance, PriceDistance, adds_up, has_evidence
from .footrule import FOOTRULE
from .hamming import HAMMING
from .kendall import KENDALL

ALL: tuple[Distance, ...] = (FOOTRULE, KENDALL, CAYLEY, HAMMING)
DISTANCES: dict[str, Distance] = {distance.name: distance for distance in ALL}
__all__ = [
    "DISTANCES",
    "FOOTRULE",
    "KENDALL",
    "Distance",
    "PriceDistance",
    "adds_up",
    "get",
    "get_price",
    "has_evidence",
    "price_of",
]


def get(name: str) -> Distance:
    """The distance of that name, or an error that says which there are.

    >>> get("footrule").between([[1, 2, 3], [3, 2, 1]], [1, 2, 3])
    array([0, 4])
    """
    if not isinstance(name, str) or name not in DISTANCES:
        known = ", ".join(map(repr, DISTANCES))
        raise ValueError(f"distance must be one of {known}, got {name!r}")
    return DISTANCES[name]


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
