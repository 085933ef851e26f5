"""What comes next: clicks hidden inside a fit, from which its corrections are learnt."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import blocks
from ...posteriors.personal import PersonalModel
from ...posteriors.recency import Recency
from ...preferences import Clicks, rows_of_users
from ...preferences.splits import DATES, Split, hide_share, split_at, time_of_share

HALF_LIVES = {"clicks": (3.0, 10.0, 30.0), "days": (7.0, 30.0, 180.0)}
MAX_SCORED = 2500  # users by whom the half-life is chosen
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


def choose_recency(
    model: PersonalModel, shown: Clicks, later: Clicks, n_best: int, rng: np.random.Generator
) -> Recency | None:
    """The half-life by which most later clicks are among the best unseen items; None, if the best
    is not ahead of equal weights by its standard error."""
    later = later.take(np.flatnonzero(later.n_clicks))
    rows = rows_of_users(shown, later.users.tolist())
    chosen = np.flatnonzero(shown.n_clicks[rows] > 1)  # with one click there is nothing to weigh
    if len(chosen) > MAX_SCORED:
        chosen = np.sort(rng.choice(chosen, MAX_SCORED, replace=False))
    seen, wanted = shown.take(rows[chosen]), later.take(chosen)
    assert shown.times is not None
    is_dated = DATES[0] <= np.nanmedian(shown.times) < DATES[1]
    units = ("clicks", "days") if is_dated else ("clicks",)
    found = [Recency(length, unit) for unit in units for length in HALF_LIVES[unit]]
    if len(chosen) < MIN_USERS:
        return None
    plain = _recall(replace(model, recency=None), seen, wanted, n_best)
    recalls = [_recall(replace(model, recency=each), seen, wanted, n_best) for each in found]
    best = int(np.argmax([recall.sum() for recall in recalls]))
    lead = recalls[best] - plain
    error = lead.std(ddof=1) / np.sqrt(len(lead))
    return found[best] if lead.mean() > error else None


def _recall(model: PersonalModel, seen: Clicks, wanted: Clicks, n_best: int) -> NDArray[np.float64]:
    """The share of each user's later clicks that are among the best unseen items."""
    recall = np.empty(seen.n_users)
    cells = wanted.owners * wanted.n_items + wanted.codes
    for rows in blocks(seen.n_users):
        scores = model.scores_of(seen, rows)
        part = slice(seen.starts[rows.start], seen.starts[rows.stop])
        scores[seen.owners[part] - rows.start, seen.codes[part]] = -np.inf
        top = np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]
        places = np.arange(rows.start, rows.stop)[:, None] * seen.n_items + top
        recall[rows] = np.isin(places, cells).sum(axis=1)
    return recall / wanted.n_clicks
