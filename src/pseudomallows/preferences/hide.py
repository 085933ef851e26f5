"""Splits: clicks to learn from, and clicks hidden to judge by."""

import numpy as np
from numpy.typing import NDArray

from ..rankings import check_count
from .blocks import Clicks


def hide_clicks(
    prefs: Clicks,
    hide: int,
    rng: np.random.Generator,
    users: NDArray[np.bool_] | None = None,
) -> tuple[Clicks, NDArray[np.bool_]]:
    """Hide some clicks of each user who has more: the clicks that are left, and a table of those
    hidden. With a mask of `users`, of these only."""
    taken = take_clicks(prefs, hide, rng, users)
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    hidden = np.zeros((prefs.n_users, prefs.n_items), dtype=bool)
    hidden[owners[taken], prefs.codes[taken]] = True
    return without_clicks(prefs, taken), hidden


def take_clicks(
    prefs: Clicks,
    hide: int,
    rng: np.random.Generator,
    users: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Which clicks to hide, some of each user who has more: one place for each click."""
    hide = check_count(hide, "hide")
    enough = prefs.n_clicks > hide
    if users is not None:
        enough &= users
    if not enough.any():
        raise ValueError(
            f"no user has more than {hide} clicks to hide, the most is {prefs.n_clicks.max()}: "
            "lower hide"
        )
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    order = np.lexsort((rng.random(len(owners)), owners))  # shuffles each user's clicks
    place = np.arange(len(owners)) - prefs.starts[owners]
    taken = np.zeros(len(owners), dtype=bool)
    taken[order] = (place < hide) & enough[owners]
    return taken


def without_clicks(prefs: Clicks, taken: NDArray[np.bool_]) -> Clicks:
    """The clicks that are left, when some are taken: one place in `taken` for each click."""
    starts = prefs.starts - np.concatenate([[0], np.cumsum(taken)])[prefs.starts]
    return Clicks(prefs.weights, prefs.users, prefs.items, starts, prefs.codes[~taken])
