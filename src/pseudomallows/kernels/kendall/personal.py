"""Users with a consensus of their own each, under Kendall's distance, on a grid of alphas.

lam is alpha / n_items; see `clicks` for the closed form of the law, and `next_ranks` for what comes
next.
"""

from numba import njit

from ..click_rows import clicks_of


@njit(cache=True, nogil=True)
def own_kendall_log_likelihoods(clicks, rankings, lams, log_binomials, values):
    """Fill `values[row, g]`: log probability of a user's clicks, given the user's own consensus
    `rankings[row]` and each of the `lams`; `log_binomials[size, g]` are those of so many clicks."""
    for row in range(len(values)):
        mine = clicks_of(clicks, row)
        size, total = len(mine), 0
        for item in mine:
            total += rankings[row, item]
        excess = total - size * (size + 1) // 2
        for g in range(len(lams)):
            values[row, g] = -lams[g] * excess - log_binomials[size, g]
