"""Latent rankings after a fit: exact draws, given each draw of the posterior, from its data.

Where the sum over the rankings that agree with a user is known, so are draws from it: the label of
a user with its exact probability, then the ranking given the cluster. Where it is not, a chain
keeps latent rankings (`keep_latent`). A user's draws depend on the seed, the draw of the posterior
and the user alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.blocks import Clicks, Rankings
from ..distances.tallies import Counts, Ranking
from ..kernels.labels import draw_labels
from ..kernels.streams import Streams
from ..laws.law import Clusters, Law, exact_logs, log_of
from ..laws.registry import find_law, make_law

if TYPE_CHECKING:
    from .posterior import Posterior


def latent_law(posterior: Posterior) -> Law | None:
    """The law of the users of a fit, if it can draw their rankings."""
    data, distance = posterior.data, posterior.settings["distance"]
    if not isinstance(data, Clicks | Rankings) or not data.is_informative.any():
        return None
    return None if find_law(data, distance) is None else make_law(data, None, distance)


def draw_latent(
    posterior: Posterior, law: Law, rows: Counts, chain: int, draw: int, seed: int = 0
) -> Ranking:
    """``ranks[user, item]``: a ranking of each of these users of the fit, given one draw."""
    clusters = Clusters(posterior.consensus[chain, draw], posterior.alpha[chain, draw])
    number = 2 * (chain * posterior.weights.shape[1] + draw)
    labels = np.zeros(len(rows), dtype=np.int32)
    if clusters.n_clusters > 1:
        assert posterior.data is not None
        log_weights = log_of(posterior.shares[chain, draw])
        logs, says = np.tile(log_weights, (len(rows), 1)), posterior.data.is_informative[rows]
        users = law.rows_of(rows[says])
        logs[says] = exact_logs(users, law.exact_tables(clusters), log_weights)
        streams = Streams(seed, number, rows, np.ones(len(rows), dtype=np.int64))
        draw_labels(streams, logs, labels)
    return law.draw_latent(rows, labels, clusters, seed, number + 1)


def all_latent(posterior: Posterior, rows: Counts) -> Ranking:
    """``latent[chain, draw, place, item]`` of some users of a fit, for all of its draws."""
    law = latent_law(posterior)
    assert law is not None
    n_chains, n_draws = posterior.weights.shape
    latent = np.empty((n_chains, n_draws, len(rows), posterior.n_items), dtype=np.int32)
    for chain, draw in np.ndindex(n_chains, n_draws):
        latent[chain, draw] = draw_latent(posterior, law, rows, chain, draw)
    return latent
