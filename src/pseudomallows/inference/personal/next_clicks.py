"""What comes next: clicks hidden inside a fit, from which its corrections are learnt."""

import numpy as np

from ...preferences import Clicks
from ...preferences.splits import Split, hide_share, split_at, time_of_share

CALIBRATIONS = {
    "last": "each user's last clicks",
    "cut": "all clicks after a date",
    "random": "some clicks of each user, at random",
    "law": "clicks that are the last by the law of each user",
}  # which clicks are hidden, to learn from
HIDDEN_SHARE, MOST_HIDDEN = 1 / 3, 30  # of a user's clicks; no correction looks further
CUT_SHARE = 0.2  # of all clicks
MIN_USERS = 50  # behind a correction


def usual_calibration(clicks: Clicks) -> str:
    """By the last clicks, if that is known of most."""
    if clicks.times is None or np.isnan(clicks.times).mean() > 0.5:
        return "random"
    return "last"


def split_inside(clicks: Clicks, how: str, rng: np.random.Generator) -> Split | None:
    """The clicks to learn from, and those to learn a correction from; None for too few users."""
    if how == "cut":
        found = split_at(clicks, time_of_share(clicks, CUT_SHARE))
    else:
        found = hide_share(clicks, HIDDEN_SHARE, MOST_HIDDEN, how == "last", rng)
    is_judged = (found.hidden.n_clicks > 0) & (found.shown.n_clicks > 0)
    return found if is_judged.sum() >= MIN_USERS else None
