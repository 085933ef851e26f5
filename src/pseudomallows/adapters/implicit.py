"""A recommender with the signatures of `implicit`, so that code written for it runs with our fits.

The library itself is not needed.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks
from ..data.preferences import Preferences
from ..engines.executors import Executor, Threads
from ..personal.personal_fit import Fit
from ..personal.save_personal import load
from ..recommendations.choose_recommender import recommender_of
from ..recommendations.explain import explain
from ..recommendations.recommend import recommend
from ..recommendations.similar import Similar, similar_items, similar_users
from ..sampling.fit import fit

NOTHING = -float(np.finfo(np.float32).max)  # the score where there is no item, as in implicit
Answer = tuple[NDArray[np.int32], NDArray[np.float64]]


class MallowsRecommender:
    """Recommend like the models of `implicit`, with probabilities as scores.

    Parameters
    ----------
    method : str
        That of :func:`pseudomallows.fit`.
    random_state : Generator or seed, optional
        Source of randomness.
    num_threads : int
        0 for all cores.
    **options
        More for :func:`pseudomallows.fit`, such as ``n_clusters=5``.

    Attributes
    ----------
    posterior : Posterior, PersonalFit or None
        The fit, for all that `implicit` has no name for.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> import pseudomallows as pm
    >>> clicks = pm.simulate_clicks(200, 12, 6, 4, rng=1).preferences
    >>> ones = np.ones(len(clicks.codes))
    >>> user_items = csr_matrix((ones, clicks.codes, clicks.starts), shape=(200, 12))
    >>> model = MallowsRecommender(random_state=1)
    >>> model.fit(user_items)
    >>> ids, scores = model.recommend([0, 1, 2], user_items[[0, 1, 2]], N=4)
    >>> ids.shape, bool((scores > 0).all())
    ((3, 4), True)
    """

    def __init__(
        self,
        method: str = "personal",
        *,
        random_state: np.random.Generator | int | None = None,
        num_threads: int = 0,
        **options: Any,
    ):
        self.method, self.random_state, self.num_threads = method, random_state, num_threads
        self.options = options
        self.posterior: Fit | None = None

    @property
    def _executor(self) -> Executor:
        return Threads(self.num_threads or None)

    @property
    def _fitted(self) -> Fit:
        if self.posterior is None:
            raise ValueError("the model is not fitted: call fit(user_items) first")
        return self.posterior

    def fit(self, user_items: Any, show_progress: bool = True, callback: Any = None) -> None:
        """Learn from a sparse matrix (users x items): every number above 0 is a click.

        Unless `show_progress` is False, work of more than two seconds shows a bar on a terminal.
        """
        if callback is not None:
            raise NotImplementedError("callback is not there: there are no epochs")
        options = {"rng": self.random_state, "executor": self._executor} | self.options
        options |= {} if show_progress else {"progress": False}
        self.posterior = fit(Preferences.from_clicks(user_items), self.method, **options)

    def recommend(
        self,
        userid: ArrayLike,
        user_items: Any = None,
        N: int = 10,  # noqa: N803
        filter_already_liked_items: bool = True,
        filter_items: ArrayLike | None = None,
        recalculate_user: bool = False,
        items: ArrayLike | None = None,
    ) -> Answer:
        """Ids of the best items, and the probability that each is among the user's next N.

        The rows of `user_items` count, also for users who were not in the fit (`recalculate_user`
        changes nothing); without it, what the users had clicked in the fit. A row that is what
        the user had clicked then gets the answer to a user of the fit. One userid gives
        arrays with one dimension, several give two, padded with -1.

        Items that a user liked already have probability 1: without `filter_already_liked_items`
        they come first.
        """
        if filter_items is not None and items is not None:
            raise ValueError("Can't specify both filter_items and items")
        fitted, numbers = self._fitted, np.atleast_1d(userid)
        clicks, n_items = self._clicks_of(numbers, user_items), fitted.n_items
        hidden = np.zeros(n_items, dtype=bool)
        if items is not None:
            chosen = np.atleast_1d(items)
            if chosen.max(initial=0) >= n_items or chosen.min(initial=0) < 0:
                raise IndexError("Some of selected itemids are not in the model")
            hidden[:] = True
            hidden[chosen] = False
        if filter_items is not None:
            hidden |= np.isin(np.arange(n_items), filter_items)
        if hidden.all():
            return self._one_or_many(userid, *self._nothing(len(numbers), N))
        ids, scores = self._nothing(len(numbers), N)
        own, new = self._own_and_new(numbers, clicks)
        given = [(own, {"users": fitted.users[numbers[own]]}), (new, {"clicks": clicks.take(new)})]
        for rows, who in given:
            if len(rows):
                best = recommend(fitted, N, exclude=hidden, executor=self._executor, **who)
                width, is_filled = best.items.shape[1], best.items >= 0
                ids[rows, :width] = best.items
                scores[rows, :width] = np.where(is_filled, best.probabilities, NOTHING)
        if not filter_already_liked_items:
            self._put_liked_first(clicks, hidden, ids, scores)
        return self._one_or_many(userid, ids, scores)

    def _clicks_of(self, numbers: NDArray[Any], user_items: Any) -> Clicks:
        """The clicks of the users, in the order in which they are asked for."""
        fitted = self._fitted
        if user_items is None:
            known = fitted.clicks
            if known is None or numbers.max(initial=0) >= known.n_users:
                raise IndexError(f"the model has users 0 to {fitted.n_users - 1}: give user_items")
            return known.take(numbers).rename(users=range(len(numbers)))
        if user_items.shape[0] != len(numbers):
            raise ValueError("user_items must contain 1 row for every user in userids")
        return Preferences.from_clicks(user_items, items=fitted.items.tolist())

    def _own_and_new(
        self, numbers: NDArray[Any], clicks: Clicks
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that are what a user of the fit had clicked, and the others."""
        known = self._fitted.clicks
        is_own = np.zeros(len(numbers), dtype=bool)
        if known is not None:
            for row in np.flatnonzero(numbers < known.n_users).tolist():
                mine = known.clicks_of(int(numbers[row]))
                is_own[row] = np.array_equal(mine, clicks.clicks_of(row))
        return np.flatnonzero(is_own), np.flatnonzero(~is_own)

    @staticmethod
    def _nothing(n_rows: int, n_places: int) -> Answer:
        return np.full((n_rows, n_places), -1, np.int32), np.full((n_rows, n_places), NOTHING)

    def _put_liked_first(
        self, clicks: Clicks, hidden: NDArray[np.bool_], ids: Any, scores: Any
    ) -> None:
        """Liked items, the most popular first, before the others."""
        ranks, n_places = recommender_of(self._fitted).consensus, ids.shape[1]
        for row in range(len(ids)):
            liked = clicks.clicks_of(row)
            liked = liked[~hidden[liked]]
            liked = liked[np.argsort(ranks[liked])]
            ids[row] = np.append(liked, ids[row])[:n_places]
            scores[row] = np.append(np.ones(len(liked)), scores[row])[:n_places]

    @staticmethod
    def _one_or_many(
        asked: ArrayLike, ids: NDArray[np.int32], scores: NDArray[np.float64]
    ) -> Answer:
        """One answer without empty places, or all of them."""
        if np.ndim(asked):
            return ids, scores
        is_filled = ids[0] >= 0
        return ids[0][is_filled], scores[0][is_filled]

    # What is alike, and why

    def similar_items(
        self,
        itemid: ArrayLike,
        N: int = 10,  # noqa: N803
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> Answer:
        """Ids of the most similar items, the item itself first, with 1; see
        :func:`pseudomallows.similar_items`."""
        if recalculate_item:
            raise NotImplementedError("Recalculate_item isn't implemented")
        fitted = self._fitted
        alike = [similar_items(fitted, int(each), fitted.n_items) for each in np.atleast_1d(itemid)]
        return self._similar(itemid, alike, N, filter_items, items)

    def similar_users(
        self,
        userid: ArrayLike,
        N: int = 10,  # noqa: N803
        filter_users: ArrayLike | None = None,
        users: ArrayLike | None = None,
    ) -> Answer:
        """Ids of the most similar users, the user first, with 1; see
        :func:`pseudomallows.similar_users`."""
        fitted = self._fitted
        alike = [similar_users(fitted, int(each), fitted.n_users) for each in np.atleast_1d(userid)]
        return self._similar(userid, alike, N, filter_users, users)

    def _similar(
        self,
        asked: ArrayLike,
        alike: list[Similar],
        n_places: int,
        without: ArrayLike | None,
        among: ArrayLike | None,
    ) -> Answer:
        if without is not None and among is not None:
            raise ValueError("give what to leave out or what to choose from, not both")
        ids, scores = self._nothing(len(alike), n_places)
        for row, similar in enumerate(alike):
            codes = np.append(int(similar.name), similar.codes)
            values = np.append(1.0, similar.similarities)
            is_in = np.ones(len(codes), dtype=bool)
            if without is not None:
                is_in = ~np.isin(codes, without)
            elif among is not None:
                is_in = np.isin(codes, among)
            chosen = codes[is_in][:n_places]
            ids[row, : len(chosen)], scores[row, : len(chosen)] = chosen, values[is_in][:n_places]
        return self._one_or_many(asked, ids, scores)

    def explain(
        self,
        userid: int,
        user_items: Any,
        itemid: int,
        user_weights: Any = None,
        N: int = 10,  # noqa: N803
    ) -> tuple[float, list[tuple[int, float]], None]:
        """The score of an item, and the N clicks that add most to it; see
        :func:`pseudomallows.explain`."""
        clicks = self._clicks_of(np.atleast_1d(userid), user_items)
        why = explain(self._fitted, item=int(itemid), clicks=clicks)
        rows = zip(why.kinds, why.names, why.amounts.tolist(), strict=True)
        parts = [(int(name), amount) for kind, name, amount in rows if kind == "click"]
        return why.value, sorted(parts, key=lambda part: -part[1])[:N], None

    # Files

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the fit to a file; see :func:`pseudomallows.load`."""
        self._fitted.save(file)

    @classmethod
    def load(cls, fileobj_or_path: str | os.PathLike[str]) -> "MallowsRecommender":
        """A model from such a file."""
        posterior = load(fileobj_or_path)
        model = cls(posterior.method)
        model.posterior = posterior
        return model
