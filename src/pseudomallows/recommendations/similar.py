"""similar_items and similar_users: what is alike, by what a fit has learnt."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.checks import rows_of_names
from ..data.frames import Tabular
from ..engines.executors import blocks
from ..personal.personal_fit import Fit, PersonalFit, check_fit
from ..posterior.posterior import Posterior
from ..rankings import check_count
from .choose_recommender import recommender_of
from .explain import ONE
from .recommender import Floats, Users
from .users import code_of_item, needs_latent, one_user

BLOCK_CELLS = 1 << 22  # scores that are made at a time: 16 MB in single precision


@dataclass(frozen=True, eq=False, repr=False)
class Similar(Tabular):
    """Items like one item, or users like one user, the most similar first.

    Attributes
    ----------
    what : str
        "item" or "user".
    name
        Name of the item or user that was asked about.
    codes : array
        Codes of the items, or rows of the users.
    names : array
        Their names.
    similarities : array
        How similar: see the function that made it.
    """

    what: str
    name: Any
    codes: NDArray[np.int64]
    names: NDArray[Any]
    similarities: Floats

    def to_columns(self, digits: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns: place, the item or user, similarity."""
        values = self.similarities if digits is None else self.similarities.round(digits)
        return {"place": np.arange(1, len(values) + 1), self.what: self.names, "similarity": values}


def similar_items(posterior: Fit, item: Any, k: int = 10) -> Similar:
    """Find the items that are most like one.

    In a personal fit, the similarity is what a click on either item adds to the score of the other,
    averaged over both directions; if the scores were given, it is the correlation of the scores
    over the users. With clusters, it is 1 minus the difference of the two mean ranks, averaged over
    the clusters by their shares and divided by the largest possible difference: 1 for two items
    that every cluster ranks alike. A single consensus does not say which items are alike.

    Parameters
    ----------
    posterior : PersonalFit, or Posterior with clusters
        From `fit`.
    item
        Its name.
    k : int
        How many; at most all others.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> log = {i: ["tea", "milk"] if i % 2 else ["ale", "rum"] for i in range(40)}
    >>> log |= {40: ["tea", "ale"], 41: ["milk", "rum"]}
    >>> similar_items(fit(Preferences.from_clicks(log), "personal", rng=1), "tea", k=1).names
    array(['milk'], dtype=object)
    """
    check_fit(posterior)
    code, k = code_of_item(posterior, item), check_count(k, "k")
    if isinstance(posterior, PersonalFit):
        likes = _by_scores(posterior, code) if posterior.is_given else _by_weights(posterior, code)
    else:
        likes = _by_profiles(_check_clusters(posterior, "items"), code)
    codes = _most(likes, code, k)
    where = posterior.items[codes], likes[codes]
    return Similar("item", item, codes, *where, backend=posterior.settings.get("backend"))


def similar_users(posterior: Fit, user: Any = None, k: int = 10, *, clicks: Any = None) -> Similar:
    """Find the users of a fit who are most like one.

    In a personal fit, the similarity is the cosine of their scores, after subtracting those of the
    average user. With clusters, it is the probability that both belong to the same one.

    Parameters
    ----------
    posterior : PersonalFit, or Posterior with clusters
        From `fit`.
    user : optional
        Name of a user of the fit.
    k : int
        How many; at most all others.
    clicks : optional
        Clicks of a new user instead: a list of items, or the forms of :func:`recommend` for one
        user.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> log = {i: ["tea", "milk"] if i % 2 else ["ale", "rum"] for i in range(40)}
    >>> log |= {40: ["tea", "ale"], 41: ["milk", "rum"]}
    >>> posterior = fit(Preferences.from_clicks(log), "personal", rng=1)
    >>> int(similar_users(posterior, clicks=["tea"], k=1).codes[0]) % 2
    1
    """
    check_fit(posterior)
    k = check_count(k, "k")
    if not posterior.n_users:
        raise ValueError(
            "this fit keeps no users, as it was fitted to parts: there is nobody to compare with"
        )
    if isinstance(posterior, PersonalFit):
        one = one_user(posterior, user, clicks)
        row = None if one.rows is None else int(one.rows[0])
        likes, name = _like_user(posterior, one), one.clicks.users[0]
    else:
        memberships = _check_clusters(posterior, "users").memberships
        if needs_latent(posterior, clicks) or clicks is None:
            row, name = int(rows_of_names(posterior.users, [user])[0]), user
            mine = memberships[row]
        else:
            one, row = one_user(posterior, user, clicks), None
            mine, name = recommender_of(posterior).memberships(one, ONE)[0], one.clicks.users[0]
        likes = memberships @ mine
    codes = _most(likes, row, k)
    where = posterior.users[codes], likes[codes]
    return Similar("user", name, codes, *where, backend=posterior.settings.get("backend"))


def _most(likes: Floats, own: int | None, k: int) -> NDArray[np.int64]:
    """The places of the k largest, the first of equal ones first, without one's own."""
    others = np.arange(len(likes))
    if own is not None:
        others = np.delete(others, own)
    return others[np.argsort(-likes[others], kind="stable")[:k]]


def _check_clusters(posterior: Posterior, what: str) -> Posterior:
    """Refuse a posterior that does not tell items or users apart."""
    if posterior.n_clusters < 2:
        raise ValueError(
            f"one consensus does not say which {what} are alike: fit clicks with "
            "method='personal', or any data with n_clusters=2 or more"
        )
    return posterior


def _by_weights(fit: PersonalFit, code: int) -> Floats:
    """What a click on either adds to the score of the other."""
    return (fit.item_scores.row(code) + fit.item_scores.column(code)) / 2


def _by_scores(fit: PersonalFit, code: int) -> Floats:
    """Correlation of given scores."""
    scores = fit.scores - fit.scores.mean(axis=0)
    lengths = np.sqrt((scores**2).sum(axis=0))
    return np.asarray(scores[:, code] @ scores / np.maximum(lengths[code] * lengths, 1e-300))


def _by_profiles(posterior: Posterior, code: int) -> Floats:
    """How near the mean ranks are in all clusters."""
    means = np.stack([posterior.mean_ranks(each) for each in range(posterior.n_clusters)])
    shares = np.tensordot(posterior.weights, posterior.shares, 2)
    apart = np.abs(means - means[:, [code]]) / (posterior.n_items - 1)
    return np.asarray(1 - shares @ apart / shares.sum())


def _like_user(fit: PersonalFit, one: Users) -> Floats:
    """``[user]``: the cosine of scores, less those of the average user."""
    known = fit.clicks
    assert known is not None
    # of 4,096 users, evenly spread: their mean is known to 1/64 of a standard deviation
    every = np.arange(0, known.n_users, -(-known.n_users // 4096))
    mean = fit.scores_for(known.take(every), slice(0, len(every)), every).mean(axis=0)
    mine = fit.scores_for(one.clicks, slice(0, 1), one.rows)[0] - mean
    mine /= max(float(np.sqrt(mine @ mine)), 1e-300)
    likes, rows = np.empty(known.n_users), np.arange(known.n_users)
    for part in blocks(known.n_users, max(1, BLOCK_CELLS // fit.n_items)):
        away = fit.scores_for(known, part, rows) - mean
        lengths = np.sqrt((away**2).sum(axis=1))
        likes[part] = away @ mine / np.maximum(lengths, 1e-300)
    return likes
