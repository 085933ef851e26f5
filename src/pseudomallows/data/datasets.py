"""Data: real ones that come with the package, and simulated populations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from ..distances.mallows import Mallows
from ..engines.executors import interruptible
from ..engines.memory import available_memory
from ..rankings import as_rng, check_count, check_name, check_number
from .blocks import Clicks, Rankings
from .checks import check_memory
from .preferences import Preferences

FRUITS = ["apricot", "banana", "cherry", "damson", "elderberry", "fig", "grape", "hazelnut"]
FRUITS += ["kiwi", "lemon", "mango", "nectarine", "orange", "peach", "quince"]
SWEET = ["mango", "peach", "cherry", "nectarine", "banana", "grape", "apricot", "orange", "fig"]
SWEET += ["kiwi", "hazelnut", "elderberry", "damson", "quince", "lemon"]  # best first
TART = ["orange", "kiwi", "damson", "lemon", "quince", "cherry", "apricot", "elderberry", "grape"]
TART += ["nectarine", "mango", "peach", "hazelnut", "banana", "fig"]


def online_retail(n_items: int | None = 200, min_purchases: int = 1) -> Clicks:
    """Who bought what in a British online shop of gifts, in a year: real data.

    UCI Online Retail (Chen, Sain and Guo 2012, "Data mining for the online retail industry",
    doi:10.24432/C5BW33), licence CC BY 4.0, reduced to who bought what, and when for the first
    time: 4,335 customers, 3,659 products, 266,226 purchases from December 2010 to December 2011.
    ``data/README.md`` in the package has the details.

    Parameters
    ----------
    n_items : int, optional
        How many products, those with the most buyers; None for all. Ties are broken by stock code,
        which is also the order of the items.
    min_purchases : int
        Customers with fewer of these products are left out.

    Returns
    -------
    Clicks
        The users are customer numbers, the items are the titles of the products; `times` are the
        minutes of the first purchases, in seconds since 1970.

    Examples
    --------
    >>> prefs = online_retail(n_items=200, min_purchases=20)
    >>> prefs
    Clicks(1257 users, 200 items; 47988 clicks)
    >>> prefs.items[prefs.item_counts().argmax()]
    'REGENCY CAKESTAND 3 TIER'
    >>> [str(np.datetime64(int(time), "s")) for time in (prefs.times.min(), prefs.times.max())]
    ['2010-12-01T08:34:00', '2011-12-09T12:09:00']
    """
    least = check_count(min_purchases, "min_purchases", 0)
    customers, titles, cells, times = _read_purchases()
    rows, columns = np.divmod(cells, len(titles))
    n_kept = len(titles) if n_items is None else check_count(n_items, "n_items", 2)
    if n_kept > len(titles):
        raise ValueError(
            f"n_items must be at most {len(titles)}, the number of products, got {n_kept}: give "
            "None for all"
        )
    n_buyers = np.bincount(columns, minlength=len(titles))
    products = np.sort(np.argsort(-n_buyers, kind="stable")[:n_kept])
    chosen = np.isin(columns, products)
    n_bought = np.bincount(rows[chosen], minlength=len(customers))
    if n_bought.max() < least:
        raise ValueError(
            f"no customer has min_purchases = {least} of these {len(products)} products; the most "
            f"is {n_bought.max()}: lower min_purchases or raise n_items"
        )
    enough = n_bought >= least
    chosen &= enough[rows]
    return Clicks(
        np.ones(int(enough.sum()), dtype=np.int64),
        customers[enough].astype(object),
        titles[products],
        np.concatenate([[0], np.cumsum(n_bought[enough])]).astype(np.int64),
        np.searchsorted(products, columns[chosen]).astype(np.int32),
        times=times[chosen],
    )


def _read_purchases() -> tuple[
    NDArray[np.int64], NDArray[np.object_], NDArray[np.int64], NDArray[np.float64]
]:
    """Customers, titles, the purchases as rising cells customer * n_titles + title, and when each
    was made first, in seconds since 1970.

    ``tools/make_online_retail.py`` describes the file.
    """
    with (
        files("pseudomallows").joinpath("data", "online_retail.npz").open("rb") as file,
        np.load(file) as arrays,
    ):
        customers, text, gaps = (arrays[name] for name in ("customers", "titles", "gaps"))
        visits, n_visits, minutes = (arrays[name] for name in ("visits", "n_visits", "minutes"))
    titles = np.array(text.tobytes().decode().split("\n"), dtype=object)
    cells = np.cumsum(gaps, dtype=np.int64)[gaps < 255]  # 255 means: read on
    firsts = np.cumsum(n_visits, dtype=np.int64) - n_visits
    times = 60.0 * minutes[firsts[cells // len(titles)] + visits]
    return customers.astype(np.int64), titles, cells, times


def fruits() -> Rankings:
    """60 people rank 15 fruits: simulated, the same at each call, small enough for examples.

    40 people have a sweet tooth and 20 like it tart, in mixed order: Mallows around one consensus
    for each kind, with alpha 4.

    Examples
    --------
    >>> prefs = fruits()
    >>> prefs
    Rankings(60 users, 15 items; 60 full, 0 partial)
    >>> print(*prefs.items[prefs.mean_ranks().argsort()[:3]])
    cherry mango peach
    """
    rng = np.random.default_rng(15)
    draws = []
    for ordering, size in ((SWEET, 40), (TART, 20)):
        consensus = [ordering.index(name) + 1 for name in FRUITS]
        draws.append(Mallows(consensus, 4).draw(size, rng))
    rankings = np.concatenate(draws)
    return Preferences.from_rankings(rng.permutation(rankings), items=FRUITS)


@dataclass(frozen=True, eq=False)
class Simulation:
    """What the users show, and the truth behind it: their consensus and their full rankings.

    With several clusters, ``consensus[cluster]`` is a ranking; ``labels[user]`` is a cluster.
    """

    preferences: Preferences
    consensus: NDArray[np.int32]
    rankings: NDArray[np.int32]
    labels: NDArray[np.int64]


def simulate_rankings(
    n_users: int,
    n_items: int,
    alpha: float | Sequence[float],
    *,
    top: int | None = None,
    sizes: Sequence[int] | None = None,
    distance: str = "footrule",
    rng: np.random.Generator | int | None = None,
) -> Simulation:
    """Simulate users whose rankings are Mallows around a random consensus.

    Parameters
    ----------
    n_users, n_items : int
        Size of the data.
    alpha : float, or one for each cluster
        Concentration. Clusters have random consensuses of their own.
    top : int, optional
        Each user shows the first `top` ranks only.
    sizes : sequence of int, optional
        Users of each cluster; default: as equal as can be.
    distance : str
        That of the Mallows distributions.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> simulate_rankings(100, 10, alpha=3, top=4, rng=1).preferences
    Rankings(100 users, 10 items; 0 full, 100 partial)
    """
    rng = as_rng(rng)
    consensus, rankings, labels = _draw_rankings(n_users, n_items, alpha, sizes, distance, rng)
    shown = rankings
    if top is not None:
        shown = np.where(rankings <= check_count(top, "top"), rankings, 0)
    prefs = interruptible(Preferences.from_rankings, shown)
    return Simulation(prefs, consensus, rankings, labels)


def _draw_rankings(
    n_users: int,
    n_items: int,
    alpha: float | Sequence[float],
    sizes: Sequence[int] | None,
    distance: str,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """The consensus, or one for each cluster, the users' rankings and their clusters."""
    n_users, n_items = check_count(n_users, "n_users"), check_count(n_items, "n_items", 2)
    # Rankings are there four times on the way, with their order and what is shown of them.
    most = (available_memory() or 0) // (4 * 4 * n_items)
    size = f"{n_users:,} users and {n_items:,} items"
    check_memory(4 * 4 * n_users * n_items, size, f": at most {most:,} users fit")
    alphas: list[float] = np.atleast_1d(np.asarray(alpha)).tolist()
    if not alphas:
        raise ValueError("alpha must be a number, or one for each cluster, got none")
    sizes = _check_sizes(sizes, n_users, len(alphas))
    centers = [(rng.permutation(n_items) + 1).astype(np.int32) for _ in alphas]
    clusters = zip(centers, alphas, sizes, strict=True)
    rankings = np.concatenate(
        [Mallows(center, value, distance).draw(size, rng) for center, value, size in clusters]
    )
    labels = np.repeat(np.arange(len(sizes)), sizes)
    if len(alphas) > 1:
        mixed = rng.permutation(n_users)
        rankings, labels = rankings[mixed], labels[mixed]
    return centers[0] if np.ndim(alpha) == 0 else np.stack(centers), rankings, labels


def _check_sizes(sizes: Sequence[int] | None, n_users: int, n_clusters: int) -> list[int]:
    if sizes is None:
        return [len(part) for part in np.array_split(np.arange(n_users), n_clusters)]
    listed = [check_count(size, "sizes", 0) for size in np.atleast_1d(np.asarray(sizes)).tolist()]
    if len(listed) != n_clusters or sum(listed) != n_users:
        raise ValueError(
            f"sizes must have one number for each of {n_clusters} clusters, and sum to {n_users} "
            f"users, got {listed}"
        )
    return listed


def simulate_clicks(
    n_users: int,
    n_items: int,
    alpha: float | Sequence[float],
    mean_clicks: float = 5,
    *,
    distribution: str = "poisson",
    min_clicks: int = 1,
    max_clicks: int | None = None,
    sizes: Sequence[int] | None = None,
    distance: str = "footrule",
    rng: np.random.Generator | int | None = None,
) -> Simulation:
    """Simulate users who click the first items of their latent rankings, as the paper does.

    The rankings are Mallows around a random consensus, so the labels of the items say nothing.

    Parameters
    ----------
    n_users, n_items : int
        Size of the data.
    alpha : float, or one for each cluster
        Concentration. Clusters have random consensuses of their own.
    mean_clicks : float
        Mean number of clicks (of "poisson": before its ends are cut off).
    distribution : str
        "poisson" (section 4.2 of the paper) or "exponential" (section 4.3, with `min_clicks` 3),
        each cut off at its ends.
    min_clicks, max_clicks : int, optional
        The ends; default 1 and n_items - 3.
    sizes, distance, rng : optional
        As in :func:`simulate_rankings`.

    Examples
    --------
    >>> simulate_clicks(100, 20, alpha=3, rng=1).preferences
    Clicks(100 users, 20 items; 511 clicks)
    >>> simulate_clicks(100, 20, alpha=[3, 6], sizes=[70, 30], rng=1).consensus.shape
    (2, 20)
    """
    rng = as_rng(rng)
    consensus, rankings, labels = _draw_rankings(n_users, n_items, alpha, sizes, distance, rng)
    highest = max(n_items - 3, 1) if max_clicks is None else check_count(max_clicks, "max_clicks")
    lowest = check_count(min_clicks, "min_clicks", 0)
    if not lowest <= highest <= n_items:
        raise ValueError(
            f"clicks must be between min_clicks and max_clicks, at most n_items: got {lowest}, "
            f"{highest} and {n_items}"
        )
    n_clicks = _draw_sizes(n_users, mean_clicks, distribution, lowest, highest, rng)
    prefs = interruptible(Preferences.from_clicks, rankings <= n_clicks[:, None])
    return Simulation(prefs, consensus, rankings, labels)


def _draw_sizes(
    n_users: int,
    mean: float,
    distribution: str,
    lowest: int,
    highest: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Numbers of clicks, by the probabilities of each number between the ends."""
    from scipy.optimize import brentq

    sizes = np.arange(lowest, highest + 1)
    mean = check_number(mean, "mean_clicks")
    check_name(distribution, "distribution", ("poisson", "exponential"))
    if distribution == "poisson":
        logs = sizes * np.log(max(mean, 1e-300)) - np.array(
            [math.lgamma(size + 1) for size in sizes]
        )
    else:
        if not lowest < mean < highest:
            raise ValueError(
                f"mean_clicks must be between min_clicks and max_clicks ({lowest} and {highest}), "
                f"got {mean}"
            )
        logs = sizes * brentq(lambda rate: _tilted_mean(sizes, rate) - mean, -50, 50)
    probabilities = np.exp(logs - logs.max())
    return rng.choice(sizes, n_users, p=probabilities / probabilities.sum())


def _tilted_mean(sizes: NDArray[np.int64], rate: float) -> float:
    """Mean of sizes with probabilities proportional to exp(rate * size)."""
    weights = np.exp(rate * (sizes - sizes[0 if rate < 0 else -1]))
    return float(np.average(sizes, weights=weights))
