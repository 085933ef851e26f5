"""Memberships of one new user, quickly: the numbers of `_Recommender.memberships_of`, to the bit.

What depends on the model alone is made once: the tables of the walks and the partition functions.
"""

import numpy as np
from numpy.typing import NDArray

from ..kernels.matching import N_GAPS, walk_weights
from ..kernels.members import member_log_likelihoods
from ..latent import log_partition
from ..recommend import _Recommender, _softmax

MAX_BYTES = 256 * 2**20  # of the tables of walks; a larger model does without


class Members:
    """For one recommender with several clusters."""

    def __init__(self, recommender: _Recommender):
        self._shape = recommender.centers.shape  # chain, place, cluster, item
        n_items = self._shape[-1]
        self._centers = np.ascontiguousarray(recommender.centers.reshape(-1, n_items))
        alphas, self._laws = np.unique(recommender.center_alphas, return_inverse=True)
        self._laws = self._laws.reshape(-1)
        self._lams = alphas / n_items
        self._constants = np.array([log_partition(n_items, alpha) for alpha in alphas.tolist()])
        lines = [walk_weights(lam, n_items) for lam in self._lams]
        decays, steps = np.array([line[0] for line in lines]), np.array([line[2] for line in lines])
        self._walks = (decays, lines[0][1], steps)
        self._shares = recommender.center_shares

    @staticmethod
    def bytes_for(recommender: _Recommender) -> int:
        """Memory that the tables would take."""
        n_laws = len(np.unique(recommender.center_alphas))
        return n_laws * N_GAPS * 3 * (recommender.n_items // 2 + 3) * 8

    def of(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """``[chain, 0, cluster]``."""
        n_chains, n_places, n_clusters, _ = self._shape
        values = np.empty(len(self._centers))
        laws = (self._laws, self._lams, self._constants, self._walks)
        member_log_likelihoods(codes, self._centers, *laws, values)
        logs = values.reshape(n_chains, n_places, n_clusters)
        found = np.empty((n_chains, 1, n_clusters))
        for chain in range(n_chains):
            parts = [
                _softmax(logs[chain, place][None] + self._shares[chain, place])
                for place in range(n_places)
            ]
            found[chain] = np.mean(parts, axis=0)
        return found
