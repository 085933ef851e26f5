"""Some users, with what they clicked, what comes next, and why."""

from typing import Any

import numpy as np

from ..data.blocks import Clicks
from ..personal.personal_fit import Fit, PersonalFit
from ..posterior.posterior import Posterior
from ..recommendations.explain import CLICK, reasons_of_one
from ..recommendations.recommend import recommend
from ..recommendations.recommender import Users
from ..recommendations.users import needs_latent

# an example fits on a phone's screen
MAX_CLICKED = 6  # clicks of an example that are named
Figures = dict[str, Any]  # what the template asks for, by name


def make_examples(posterior: Fit, n_examples: int) -> list[Figures]:
    """Some users, taken evenly, with their clicks and what comes next."""
    clicks = posterior.clicks
    if clicks is None or needs_latent(posterior):  # of other data, or not kept
        return []
    rows = _spread(clicks, n_examples)
    if not rows:
        return []
    best = recommend(posterior, 3, users=posterior.users[rows].tolist())
    lists = zip(rows, best.items.tolist(), best.probabilities.tolist(), strict=True)
    return [_example(posterior, clicks, *each) for each in lists]


def mean_probabilities(posterior: Fit, k: int = 5) -> list[float]:
    """Mean probability of the first, second, ... recommendation, over some users taken evenly."""
    clicks = posterior.clicks
    rows = [] if clicks is None else _spread(clicks, 200)  # known to 3 points by them
    if not rows:
        return []
    best = recommend(posterior, min(k, posterior.n_items), users=posterior.users[rows].tolist())
    has_any = ~np.isnan(best.probabilities).all(axis=0)
    return np.nanmean(best.probabilities[:, has_any], axis=0).tolist()


def _spread(clicks: Clicks, n_wanted: int) -> list[int]:
    """Rows of users with clicks, evenly from the list."""
    known = np.flatnonzero(clicks.is_informative)
    n_shown = min(n_wanted, len(known))
    places = np.linspace(0, len(known) - 1, n_shown).round().astype(np.int64)
    return known[places].tolist() if n_shown else []


def _example(
    posterior: Fit, clicks: Clicks, row: int, items: list[int], probabilities: list[float]
) -> Figures:
    """The user of a row; an item of -1 means that none is left to recommend."""
    clicked, best = clicks.clicks_of(row), [item for item in items if item >= 0]
    reasons = _reasons(posterior, clicks.take([row]), best)
    shown = zip(best, probabilities[: len(best)], reasons, strict=True)
    example = {
        "user": posterior.users[row],
        "clicked": posterior.items[clicked[:MAX_CLICKED]].tolist(),
        "n_more": max(len(clicked) - MAX_CLICKED, 0),
        "n_next": len(items),
        "next": [(posterior.items[item], *more) for item, *more in shown],
    }
    if isinstance(posterior, Posterior):
        label = int(posterior.labels[row])
        example |= {"label": label + 1, "membership": float(posterior.memberships[row, label])}
    return example


def _reasons(posterior: Fit, someone: Clicks, items: list[int]) -> list[list[Any]]:
    """For each item the names of the clicks that speak most for it; none where scores do not come
    from clicks."""
    if not isinstance(posterior, PersonalFit) or posterior.is_given or not items:
        return [[] for _ in items]
    found = reasons_of_one(posterior, Users(someone, None), np.array(items), len(items))
    worths = np.maximum(found.amounts[[kind == CLICK for kind in found.kinds]], 0)  # [click, item]
    reasons = []
    for worth in worths.T:
        best = np.argsort(-worth, kind="stable")[:2]
        best = best[worth[best] > 0.1 * worth.sum()]  # less is not worth a word
        reasons.append([found.names[click] for click in best.tolist()])
    return reasons
