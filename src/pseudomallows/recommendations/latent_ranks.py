"""Answers from the latent rankings that a fit has kept: of users known by rankings or comparisons,
or by clicks where there are no sums."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..posteriors.posterior import Posterior
from ..preferences import rows_of_names
from .item_filter import ItemFilter

Floats = NDArray[np.float64]


class LatentRanks:
    """The kept latent rankings of some users of a posterior."""

    def __init__(self, posterior: Posterior, users: Any = None):
        rows = posterior.settings["options"].get("keep_latent", [])
        if not rows:
            raise ValueError(
                "answers for users of this fit come from their latent rankings, which it has not "
                "kept: fit again with keep_latent=[names of users], or keep_latent=True for all"
            )
        self.names = posterior.users[rows]
        chosen = np.arange(len(rows)) if users is None else rows_of_names(self.names, users)
        self.names, self._weights = self.names[chosen], posterior.weights
        self._ranks, clicks = posterior.latent[:, :, chosen], posterior.clicks
        self.n_clicks = np.zeros(len(rows), int) if clicks is None else clicks.n_clicks[rows]
        self.n_clicks = self.n_clicks[chosen]

    @property
    def is_clicked(self) -> NDArray[np.bool_]:
        """``[user, item]``: clicked items have the first ranks in every draw."""
        return np.asarray(self._ranks[0, 0] <= self.n_clicks[:, None])

    def probabilities(self, window: int) -> tuple[Floats, Floats]:
        """``probabilities[user, item]`` to be among the user's first `window` items, after the
        clicks if there are any, and the Monte Carlo standard error, from how the chains differ; NaN
        if there is one chain."""
        ahead = self._ranks - self.n_clicks[:, None]
        by_chain = ((ahead > 0) & (ahead <= window)) * self._weights[:, :, None, None]
        by_chain = by_chain.sum(axis=1) / self._weights.sum(axis=1)[:, None, None]
        shares = self._weights.sum(axis=1)
        probabilities = np.tensordot(shares, by_chain, 1)
        if len(shares) == 1:
            return probabilities, np.full_like(probabilities, np.nan)
        return probabilities, by_chain.std(axis=0, ddof=1) / np.sqrt(len(shares))

    def best(
        self, k: int, window: int, choice: ItemFilter | None = None
    ) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The k items of each user with the best probabilities; ties go to the better mean rank."""
        probabilities, errors = self.probabilities(window)
        means = np.tensordot(self._weights, self._ranks, 2)
        hidden: NDArray[Any] = self.is_clicked
        if choice is not None:
            hidden = hidden | choice.mask(slice(0, len(means)))
        order = np.lexsort((means, -probabilities, hidden), axis=1)[:, :k]
        best, spread, is_out = (
            np.take_along_axis(table, order, axis=1) for table in (probabilities, errors, hidden)
        )
        for table, nothing in ((order, -1), (best, np.nan), (spread, np.nan)):
            table[is_out] = nothing
        return order, best, spread

    def rank_probabilities(self) -> Floats:
        """``probabilities[user, item, rank - 1]``."""
        n_items = self._ranks.shape[-1]
        ranks = np.arange(1, n_items + 1)
        return np.stack(
            [
                np.tensordot(self._weights, self._ranks[:, :, user, :, None] == ranks, 2)
                for user in range(len(self.names))
            ]
        )
