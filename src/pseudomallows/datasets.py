"""Data: simulated populations."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .mallows import Mallows
from .preferences import Preferences
from .rankings import check_count, check_number


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


def simulate_clicks(
    n_users: int,
    n_items: int,
    alpha: float,
    mean_clicks: float = 5,
    *,
    distribution: str = "poisson",
    min_clicks: int = 1,
    max_clicks: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> Simulation:
    """Simulate users who click the first items of their latent rankings, as the paper does.

    The rankings are Mallows around a random consensus, so the labels of the items tell nothing.

    Parameters
    ----------
    n_users, n_items : int
        Size of the data.
    alpha : float
        Concentration.
    mean_clicks : float
        Mean number of clicks (of "poisson": before its ends are cut off).
    distribution : str
        "poisson" (section 4.2 of the paper) or "exponential" (section 4.3, with `min_clicks` 3),
        each cut off at its ends.
    min_clicks, max_clicks : int, optional
        The ends; default 1 and n_items - 3.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> simulate_clicks(100, 20, alpha=3, rng=1).preferences
    Clicks(100 users, 20 items; 511 clicks)
    """
    rng = np.random.default_rng(rng)
    truth = simulate_rankings(n_users, n_items, alpha, rng=rng)
    highest = max(n_items - 3, 1) if max_clicks is None else check_count(max_clicks, "max_clicks")
    lowest = check_count(min_clicks, "min_clicks", 0)
    if not lowest <= highest <= n_items:
        raise ValueError(
            f"clicks must be between min_clicks and max_clicks, at most n_items: got {lowest}, "
            f"{highest} and {n_items}"
        )
    n_clicks = _draw_sizes(n_users, mean_clicks, distribution, lowest, highest, rng)
    clicked = truth.rankings <= n_clicks[:, None]
    return Simulation(Preferences.from_clicks(clicked), truth.consensus, truth.rankings)


def _draw_sizes(
    n_users: int,
    mean: float,
    distribution: str,
    lowest: int,
    highest: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Numbers of clicks, by the chances of each number between the ends."""
    from scipy.optimize import brentq

    sizes = np.arange(lowest, highest + 1)
    mean = check_number(mean, "mean_clicks")
    if distribution == "poisson":
        logs = sizes * np.log(max(mean, 1e-300)) - np.array(
            [math.lgamma(size + 1) for size in sizes]
        )
    elif distribution == "exponential":
        if not lowest < mean < highest:
            raise ValueError(
                f"mean_clicks must be between min_clicks and max_clicks ({lowest} and {highest}), "
                f"got {mean}"
            )
        logs = sizes * brentq(lambda rate: _tilted_mean(sizes, rate) - mean, -50, 50)
    else:
        raise ValueError(
            f"distribution must be one of 'poisson', 'exponential', got {distribution!r}"
        )
    chances = np.exp(logs - logs.max())
    return rng.choice(sizes, n_users, p=chances / chances.sum())


def _tilted_mean(sizes: NDArray[np.int64], rate: float) -> float:
    """Mean of sizes with chances proportional to exp(rate * size)."""
    weights = np.exp(rate * (sizes - sizes[0 if rate < 0 else -1]))
    return float(np.average(sizes, weights=weights))
