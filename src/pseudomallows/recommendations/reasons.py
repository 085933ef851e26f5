"""Why an item is recommended: what speaks for it and how much, in numbers that add up.

A personal fit scores an item by the user's clicks, so its reasons are clicks, and they add up to
the score. A posterior of clusters has a chance for each, so its reasons are clusters; users known
by latent rankings have ranks: these add up to the probability.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Threads
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.posterior import Posterior
from .latent import LatentRanks
from .recommenders.chances import Floats, Users
from .recommenders.registry import recommender_of

CLICK, POPULARITY, GIVEN, REST, CLUSTER, RANK = KINDS = (
    "click",
    "popularity",
    "given",
    "rest",
    "cluster",
    "rank",
)
NEGLIGIBLE = 1e-5  # of a score: what is left after all reasons is a rounding error
ONE_USER, ONE = slice(0, 1), Threads(1)


class Reasons(NamedTuple):
    """The reasons for some items and one user.

    ``amounts[reason, item]`` add up, over the reasons, to what is explained: "score" or
    "probability". `kinds` and `names` say what the reasons are; `details` have more columns, of the
    same shape as the amounts.
    """

    what: str
    kinds: list[str]
    names: list[Any]
    amounts: Floats
    details: dict[str, NDArray[Any]]


def reasons_of_one(posterior: Fit, users: Users, items: NDArray[np.int64], window: int) -> Reasons:
    """The reasons for some items, for one user who is known by clicks."""
    if isinstance(posterior, PersonalFit):
        return _personal_reasons(posterior, users, items)
    return _cluster_reasons(posterior, users, items, window)


def _personal_reasons(fit: PersonalFit, users: Users, items: NDArray[np.int64]) -> Reasons:
    """The clicks, and what is added for everybody; what neither explains is the rest."""
    scores = fit.scores_for(users.clicks, ONE_USER, users.rows)[:, items]
    clicked = users.clicks.codes
    if fit.is_given:
        return Reasons("score", [GIVEN], ["the scores that were given"], scores, {})
    if not len(clicked):
        return Reasons("score", [POPULARITY], ["popularity"], scores, {})
    kinds, names = [CLICK] * len(clicked), fit.items[clicked].tolist()
    parts = [np.stack([fit.item_scores.row(click)[items] for click in clicked.tolist()])]
    if fit.recency is not None and fit.recency.is_known(users.clicks):
        parts[0] = parts[0] * fit.recency.weights_of(users.clicks)[:, None]
    if fit.bias.size:
        kinds.append(POPULARITY)
        names.append("popularity")
        parts.append(fit.bias[None, items])
    amounts = np.concatenate(parts)
    rest = scores - amounts.sum(axis=0)
    if np.abs(rest).max() > NEGLIGIBLE * max(np.abs(amounts).max(), np.abs(scores).max()):
        kinds.append(REST)
        names.append("everything else")
        amounts = np.concatenate([amounts, rest])
    return Reasons("score", kinds, names, amounts, {})


def _cluster_reasons(
    posterior: Posterior, users: Users, items: NDArray[np.int64], window: int
) -> Reasons:
    """The clusters: how likely the user belongs to each, times the item's chance there."""
    memberships, amounts = recommender_of(posterior).by_cluster(users, window, window, ONE)
    every = range(posterior.n_clusters)
    amounts, mine = amounts[:, items], np.repeat(memberships[:, None], len(items), axis=1)
    details = {
        "membership": mine,
        "chance": np.divide(amounts, mine, out=np.zeros_like(amounts), where=mine > 0),
        "rank": np.stack([posterior.point_consensus(cluster=each)[items] for each in every]),
    }
    return Reasons("probability", [CLUSTER] * len(every), list(every), amounts, details)


def rank_reasons(posterior: Posterior, user: Any, item: int, window: int) -> Reasons:
    """For a user with latent rankings: the ranks in them, those after the clicks."""
    ranks = LatentRanks(posterior, [user])
    first = int(ranks.n_clicks[0])
    chances = ranks.rank_probabilities()[0, item, first : first + window]
    names = list(range(first + 1, first + 1 + len(chances)))
    return Reasons("probability", [RANK] * len(names), names, chances[:, None], {})
