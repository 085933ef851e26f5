"""Data: simulated populations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .mallows import Mallows
from .preferences import Preferences
from .rankings import check_count


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the users show, and the truth behind it: their consensus and their full rankings."""

    preferences: Preferences
    consensus: NDArray[np.int32]
    rankings: NDArray[np.int32]


def simulate_rankings(
    n_users: int,
    n_items: int,
    alpha: float,
    *,
    top: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> Simulation:
    """Simulate users whose rankings are Mallows around a random consensus.

    Parameters
    ----------
    n_users, n_items : int
        Size of the data.
    alpha : float
        Concentration.
    top : int, optional
        Each user shows the first `top` ranks only.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> simulate_rankings(100, 10, alpha=3, top=4, rng=1).preferences
    Rankings(100 users, 10 items; 0 full, 100 partial)
    """
    rng = np.random.default_rng(rng)
    n_users, n_items = check_count(n_users, "n_users"), check_count(n_items, "n_items", 2)
    consensus = (rng.permutation(n_items) + 1).astype(np.int32)
    rankings = Mallows(consensus, alpha).draw(n_users, rng)
    shown = rankings
    if top is not None:
        shown = np.where(rankings <= check_count(top, "top"), rankings, 0)
    return Simulation(Preferences.from_rankings(shown), consensus, rankings)
