"""The likelihoods behind the memberships of one user, for a service that asks again and again."""

import numpy as np
from numba import njit

from .clicks import mark_clicks
from .matching import sum_matchings


@njit(cache=True, nogil=True)
def member_log_likelihoods(codes, centers, laws, lams, log_partitions, walks, values):
    """Fill `values[g]`: log probability of one user's clicks under the consensus `centers[g]`.

    The same numbers as `click_log_likelihoods`, one consensus after the other. Its concentration is
    `lams[law]` with `law = laws[g]`, and `walks` holds what `walk_weights` makes of it:
    `decays[law]`, `roots`, `steps[law]`.
    """
    n_items = centers.shape[1]
    decays, roots, steps = walks
    table = np.empty((2, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places, others = np.empty((2, n_items), dtype=np.int64)
    for g in range(len(values)):
        law = laws[g]
        lam, line = lams[law], (decays[law], roots, steps[law])
        mark_clicks(codes, centers[g], places, others)
        values[g] = sum_matchings(places, lam, line, table, tops) - log_partitions[law]
        values[g] += sum_matchings(others, lam, line, table, tops)
