"""A scorer for LensKit's pipelines (2025 or later); `pip install 'pseudomallows[lenskit]'`."""

from typing import Any

import numpy as np
from lenskit.data import Dataset, ItemList, QueryInput, RecQuery, Vocabulary
from lenskit.pipeline import Component
from lenskit.training import Trainable, TrainingOptions
from pydantic import BaseModel, PositiveInt

from ..data.preferences import Preferences
from ..engines.executors import Threads
from ..personal.personal_fit import Fit
from ..recommendations.choose_recommender import recommender_of
from ..recommendations.recommender import MAX_ERROR, Users
from ..recommendations.users import clicks_of_one
from ..sampling.fit import fit

ONE_USER, ONE = slice(0, 1), Threads(1)


class MallowsConfig(BaseModel):  # type: ignore[misc]
    """How to fit, and what a score is."""

    method: str = "personal"
    """That of `pseudomallows.fit`."""
    k: PositiveInt = 10
    """A score is the probability that an item is among the user's next `k`."""
    options: dict[str, Any] = {}
    """More for `pseudomallows.fit`, such as ``{"n_clusters": 5}``."""


class MallowsScorer(Component[ItemList], Trainable):  # type: ignore[misc]
    """Score items by the probability that they are among the user's next `k`.

    The items of the query's history are the user's clicks, so users who were not in the training
    data are scored too; users without a history are scored by what all users did. Items that the
    training data do not have, and those that the user has clicked, get no score (NaN).

    Attributes
    ----------
    posterior : Posterior or PersonalFit
        The fit.
    """

    config: MallowsConfig
    posterior: Fit
    items: Vocabulary

    def train(self, data: Dataset, options: TrainingOptions | None = None) -> None:
        """Fit the interactions: whatever a user has done with an item is a click."""
        options = TrainingOptions() if options is None else options
        if hasattr(self, "posterior") and not options.retrain:
            return
        matrix = data.interactions().matrix().scipy()
        clicks = Preferences.from_clicks(matrix > 0 if matrix.nnz else matrix)
        fitting = {"rng": options.random_generator()} | self.config.options
        self.posterior = fit(clicks, self.config.method, **fitting)
        self.items = data.items

    def __call__(self, query: QueryInput, items: ItemList) -> ItemList:
        """The items with scores."""
        probabilities = self._probabilities(RecQuery.create(query))
        codes = items.numbers(vocabulary=self.items, missing="negative")
        is_known = codes >= 0
        scores = np.full(len(items), np.nan)
        scores[is_known] = probabilities[codes[is_known]]
        return ItemList(items, scores=scores)

    def _probabilities(self, query: RecQuery) -> Any:
        """``[item]``; NaN for what is clicked."""
        history = query.query_items
        codes = np.empty(0, dtype=np.int32)
        if history is not None:
            numbers = history.numbers(vocabulary=self.items, missing="negative")
            codes = np.unique(numbers[numbers >= 0]).astype(np.int32)
        users = Users(clicks_of_one(codes, self.posterior.items), None)
        k = min(self.config.k, self.posterior.n_items)
        next_items = recommender_of(self.posterior).probabilities(users, k, k, MAX_ERROR, ONE)
        probabilities = next_items.table(ONE_USER)[0][0].copy()
        probabilities[codes] = np.nan
        return probabilities
