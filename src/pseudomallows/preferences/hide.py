"""Hidden clicks as a table of users and items, for those who learn from all of it."""

import numpy as np
from numpy.typing import NDArray

from .blocks import Clicks
from .splits import hide_random


def hide_clicks(
    prefs: Clicks,
    hide: int,
    rng: np.random.Generator,
    users: NDArray[np.bool_] | None = None,
) -> tuple[Clicks, NDArray[np.bool_]]:
    """Hide some clicks of each user who has more: the clicks that are left, and a table of those
    hidden. With a mask of `users`, of these only."""
    shown, hidden = hide_random(prefs, hide, rng, users)
    table = np.zeros((prefs.n_users, prefs.n_items), dtype=bool)
    table[hidden.owners, hidden.codes] = True
    return shown, table


def without_clicks(prefs: Clicks, taken: NDArray[np.bool_]) -> Clicks:
    """The clicks that are left, when some are taken: one place in `taken` for each click."""
    return prefs.choose(~taken)
