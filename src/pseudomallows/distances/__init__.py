"""Distances between rankings, one file each, and what a consensus step needs of the users.

To add one: a file here, a line in `DISTANCES`, and its definition in ``tests/naive.py``.
"""

from .distance import Distance, PriceDistance
from .footrule import FOOTRULE

DISTANCES: dict[str, PriceDistance] = {FOOTRULE.name: FOOTRULE}
__all__ = ["DISTANCES", "FOOTRULE", "Distance", "PriceDistance", "get"]


def get(name: str) -> PriceDistance:
    """The distance of that name, or an error that says which there are.

    >>> get("footrule").between([[1, 2, 3], [3, 2, 1]], [1, 2, 3])
    array([0, 4])
    """
    if not isinstance(name, str) or name not in DISTANCES:
        known = ", ".join(map(repr, DISTANCES))
        raise ValueError(f"distance must be one of {known}, got {name!r}")
    return DISTANCES[name]
