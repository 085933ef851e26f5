"""The core of clicks: users and items that have enough of them."""

import numpy as np
from numpy.typing import NDArray

from .blocks import Clicks


def keep_core(prefs: Clicks, min_clicks: int) -> Clicks:
    """Leave out users and items with fewer clicks, again and again, until all have so many.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1, 1, 0], [1, 1, 0], [0, 1, 1]])
    >>> keep_core(prefs, 2)
    Clicks(2 users, 2 items; 4 clicks)
    """
    owners, codes = prefs.owners, prefs.codes
    is_kept = np.ones(len(codes), dtype=bool)
    while True:
        n_before = int(is_kept.sum())
        of_users, of_items = _counts(owners, codes, is_kept, prefs)
        is_kept &= (of_users[owners] >= min_clicks) & (of_items[codes] >= min_clicks)
        if int(is_kept.sum()) == n_before:
            break
    if not n_before:
        raise ValueError(
            f"min_clicks={min_clicks} leaves nothing: no users and items have so many clicks "
            "among themselves; lower it"
        )
    users, items = np.flatnonzero(of_users), np.flatnonzero(of_items)
    places = np.cumsum(of_items > 0) - 1
    kept = prefs.choose(is_kept).take(users)
    return Clicks(
        kept.weights,
        kept.users,
        prefs.items[items],
        kept.starts,
        places[kept.codes].astype(np.int32),
        times=kept.times,
    )


def _counts(
    owners: NDArray[np.int64], codes: NDArray[np.int32], kept: NDArray[np.bool_], prefs: Clicks
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    of_users = np.bincount(owners[kept], minlength=prefs.n_users)
    return of_users, np.bincount(codes[kept], minlength=prefs.n_items)
