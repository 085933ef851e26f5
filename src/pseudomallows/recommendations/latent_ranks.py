"""Answers from latent rankings of users known by rankings or comparisons, or by clicks where there
are no sums: drawn from their exact law, or those that the chains have kept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Rankings
from ..data.checks import rows_of_names
from ..data.preferences import Preferences
from ..engines.executors import all_cores, blocks
from ..laws.law import Clusters, exact_logs, log_of
from ..laws.registry import find_law, make_law
from ..posterior.latent import draw_latent, latent_law
from ..posterior.posterior import Posterior
from .filter import ItemFilter

Floats = NDArray[np.float64]
# Users at a time: their tables, one for each chain, of 1,000 items are 8 MB, and with so many the
# steps of a draw that are not compiled take a tenth of the time.
BLOCK_OF_USERS = 256


class LatentRanks:
    """Latent rankings of some users of a posterior, all by default."""

    def __init__(self, posterior: Posterior, users: Any = None):
        self._posterior, self._law = posterior, latent_law(posterior)
        rows = np.arange(posterior.n_users)
        if self._law is None:
            kept = posterior.settings["options"].get("keep_latent", [])
            rows = np.array(kept, dtype=np.int64)
            if not kept:
                raise ValueError(
                    "answers for users of this fit come from their latent rankings, which it has "
                    "not kept: fit again with keep_latent=[names of users], or keep_latent=True "
                    "for all"
                )
        names, clicks = posterior.users[rows], posterior.clicks
        self._places = np.arange(len(rows)) if users is None else rows_of_names(names, users)
        self.names, self._rows = names[self._places], rows[self._places]
        self.is_clicked = np.zeros((len(self.names), posterior.n_items), dtype=bool)
        if clicks is not None:
            mine = clicks.take(self._rows)
            self.is_clicked[mine.owners, mine.codes] = True
        self.n_clicks = self.is_clicked.sum(axis=1)

    def draws(self, users: slice = slice(None)) -> Iterator[tuple[int, float, NDArray[np.int32]]]:
        """The chain, the weight and ``ranks[user, item]`` of each draw of the posterior."""
        weights = self._posterior.weights
        for chain, draw in np.ndindex(*weights.shape):
            if self._law is None:
                ranks = self._posterior.latent[chain, draw, self._places[users]]
            else:
                ranks = draw_latent(self._posterior, self._law, self._rows[users], chain, draw)
            yield chain, float(weights[chain, draw]), ranks

    def probabilities(
        self, window: int, users: slice = slice(None)
    ) -> tuple[Floats, Floats, Floats]:
        """``probabilities[user, item]`` to be among the user's first `window` items, after the
        clicks if there are any; the Monte Carlo standard error, from how the chains differ, NaN
        if there is one chain; and the mean rank."""
        n_clicks, shares = self.n_clicks[users, None], self._posterior.weights.sum(axis=1)
        by_chain = np.zeros((len(shares), len(n_clicks), self._posterior.n_items))
        means = np.zeros(by_chain.shape[1:])
        for chain, weight, ranks in self.draws(users):
            by_chain[chain] += weight * ((ranks > n_clicks) & (ranks <= n_clicks + window))
            means += weight * ranks
        probabilities = by_chain.sum(axis=0)
        if len(shares) == 1:
            return probabilities, np.full_like(probabilities, np.nan), means
        by_chain /= shares[:, None, None]
        return probabilities, by_chain.std(axis=0, ddof=1) / np.sqrt(len(shares)), means

    def best(
        self, k: int, window: int, choice: ItemFilter | None = None
    ) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The k items of each user with the best probabilities; ties go to the better mean rank."""

        def work(users: slice) -> tuple[NDArray[np.int64], Floats, Floats]:
            probabilities, errors, means = self.probabilities(window, users)
            hidden: NDArray[Any] = self.is_clicked[users]
            if choice is not None:
                hidden = hidden | choice.mask(users)
            order = np.lexsort((means, -probabilities, hidden), axis=1)[:, :k]
            best, spread, is_out = (
                np.take_along_axis(each, order, axis=1) for each in (probabilities, errors, hidden)
            )
            for table, nothing in ((order, -1), (best, np.nan), (spread, np.nan)):
                table[is_out] = nothing
            return order, best, spread

        parts = list(all_cores().map(work, blocks(len(self.names), BLOCK_OF_USERS)))
        if not parts:
            parts = [work(slice(0, 0))]
        items, probabilities, errors = (np.concatenate(each) for each in zip(*parts, strict=True))
        return items, probabilities, errors

    def rank_probabilities(self) -> Floats:
        """``probabilities[item, rank - 1]`` of the first user."""
        items, n_items = np.arange(self._posterior.n_items), self._posterior.n_items
        table = np.zeros((n_items, n_items))
        for _, weight, ranks in self.draws(slice(0, 1)):
            table[items, ranks[0] - 1] += weight
        return table


def ranking_memberships(posterior: Posterior, rankings: Any) -> Floats:
    """``memberships[user, cluster]`` of new users by their rankings; a draw of the posterior counts
    by how probable these are under it."""
    items, new = posterior.items, rankings
    if not isinstance(rankings, Rankings):
        new = Preferences.from_rankings(rankings, items=items.tolist())
    if new.items.tolist() != items.tolist():
        raise ValueError("the rankings of new users must have the items of the fit, in its order")
    distance, says = posterior.settings["distance"], np.flatnonzero(new.is_informative)
    if len(says) and find_law(new, distance) is None:
        raise ValueError(f"the likelihood of {new.shape_words} by {distance} is not known")
    law = make_law(new, None, distance) if len(says) else None
    sums = np.full((new.n_users, posterior.n_clusters), -np.inf)
    for place in np.ndindex(*posterior.weights.shape):
        log_weights = log_of(posterior.shares[place])
        logs = np.tile(log_weights, (new.n_users, 1))
        if law is not None:
            tables = law.exact_tables(Clusters(posterior.consensus[place], posterior.alpha[place]))
            logs[says] = exact_logs(law.rows_of(says), tables, log_weights)
        sums = np.logaddexp(sums, logs + log_of(posterior.weights[place]))
    return np.asarray(np.exp(sums - np.logaddexp.reduce(sums, axis=1, keepdims=True)))
