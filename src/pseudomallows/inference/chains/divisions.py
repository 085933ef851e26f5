"""Chains that divide the users each in its own way: how far they agree, which is the likeliest."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .matched_starts import compare


def compare_divisions(
    memberships: NDArray[np.floating], log_posteriors: NDArray[np.float64]
) -> dict[str, Any]:
    """For the settings of a posterior, from ``memberships[chain, row, cluster]`` and the mean log
    posterior of each chain: the likeliest `chain`; the adjusted Rand index of two chains, and the
    share of users whom both put in the same cluster, each the mean over all pairs of chains."""
    pairs = [compare(*pair, 0.0) for pair in itertools.combinations(memberships, 2)]
    return {
        "chain": int(log_posteriors.argmax()),
        "rand_index": float(np.mean([each.rand_index for each in pairs])),
        "same_users": float(np.mean([each.same_users for each in pairs])),
        "log_posteriors": log_posteriors.tolist(),
    }
