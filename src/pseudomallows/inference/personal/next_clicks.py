"""What comes next: clicks hidden inside a fit, from which its corrections are learnt."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import blocks
from ...posteriors.personal import PersonalModel
from ...posteriors.recency import Recency, are_dates
from ...preferences import Clicks, rows_of_users
from ...preferences.splits import Split, hide_numbers, split_at, time_of_share
from .later import MAX_HELD_OUT, MIN_USERS, most_users

HALF_LIVES = {"clicks": (3.0, 10.0, 30.0), "days": (7.0, 30.0, 180.0)}
MAX_SCORED = 2500  # users by whom the half-life is chosen
NUMBERS = np.array([1, 3, 10, 30])  # of a user's clicks that may be hidden
FEW, LEFT = 1 / 3, np.array([1, 2, 3, 5, 8])  # share of these who keep only so many clicks
HIDDEN_USERS, LEAST_HIDDEN = 1 / 3, 500  # share of the users from whom clicks are hidden
CUT_SHARE = 0.2  # of all clicks


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
        numbers = draw_numbers(clicks.n_clicks, rng)
        numbers[_spared(numbers, most_users(MAX_HELD_OUT, clicks.n_items), rng)] = 0
        found = hide_numbers(clicks, numbers, how == "last", rng)
    if how == "random":  # what is hidden by chance did not come later
        found = Split(found.shown, replace(found.hidden, times=None))
    is_judged = (found.hidden.n_clicks > 0) & (found.shown.n_clicks > 0)
    return found if is_judged.sum() >= MIN_USERS else None


def _spared(numbers: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The users from whom nothing is hidden, so that scores are learnt from nearly all clicks: no
    more than `most` are needed."""
    able = np.flatnonzero(numbers)
    n_hidden = max(int(len(able) * HIDDEN_USERS), min(LEAST_HIDDEN, len(able)))
    return rng.permutation(able)[min(n_hidden, most) :]


def draw_numbers(n_clicks: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """How many clicks to hide from each user: any of a few numbers that leave a third; or, of some
    users, all but a few, so that the correction is learnt for new users as well.

    >>> draw_numbers(np.array([1, 2, 4, 100]), np.random.default_rng(1)).tolist()
    [0, 1, 2, 3]
    """
    choices = np.searchsorted(NUMBERS, 2 * n_clicks // 3, "right")
    numbers = NUMBERS[rng.integers(np.maximum(choices, 1))]
    left = LEFT[rng.integers(np.maximum(np.searchsorted(LEFT, n_clicks), 1))]
    numbers = np.where(rng.random(len(n_clicks)) < FEW, n_clicks - left, numbers)
    return np.where(choices > 0, numbers, 0)


def choose_recency(
    model: PersonalModel, shown: Clicks, later: Clicks, n_best: int, rng: np.random.Generator
) -> Recency | None:
    """The half-life by which most later clicks are among the best unseen items. Of what is within
    one standard error of that: equal weights, None, if they are; else a number of clicks."""
    later = later.take(np.flatnonzero(later.n_clicks))
    rows = rows_of_users(shown, later.users.tolist())
    chosen = np.flatnonzero(shown.n_clicks[rows] > 1)  # with one click there is nothing to weigh
    if len(chosen) > MAX_SCORED:
        chosen = np.sort(rng.choice(chosen, MAX_SCORED, replace=False))
    seen, wanted = shown.take(rows[chosen]), later.take(chosen)
    assert shown.times is not None
    units = ("clicks", "days") if are_dates(shown.times) else ("clicks",)
    found = [None, *(Recency(length, unit) for unit in units for length in HALF_LIVES[unit])]
    if len(chosen) < MIN_USERS:
        return None
    recalls = np.stack(
        [_recall(replace(model, recency=each), seen, wanted, n_best) for each in found]
    )
    means = recalls.mean(axis=1)
    behind = recalls[means.argmax()] - recalls
    near = behind.mean(axis=1) <= behind.std(axis=1, ddof=1) / np.sqrt(len(chosen))
    if near[0]:
        return None
    of_clicks = np.array([each is not None and each.unit == "clicks" for each in found])
    able = near & of_clicks if (near & of_clicks).any() else near
    return found[int(np.where(able, means, -1.0).argmax())]


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
