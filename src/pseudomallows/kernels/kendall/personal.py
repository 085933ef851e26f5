"""Users with a consensus of their own each, under Kendall's distance, on a grid of alphas.

lam is alpha / n_items; see `clicks` for the closed form of the law, and `next_ranks` for what comes
next.
"""

import numpy as np
from numba import njit

from ..click_rows import clicks_of
from ..footrule.personal import draw_alpha
from ..streams import start_stream
from .rankings import draw_jump


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


@njit(cache=True, nogil=True)
def draw_last_kendall_clicks(seed, first, clicks, own_laws, lams, n_last, last):
    """Mark in `last`, one place for each click, those of the `n_last` last ranks of a draw.

    The clicked items have a Mallows ranking of their own, and read from its end it is one again: of
    those left, the one that v others follow in the consensus is the last by q^v. An alpha is drawn
    from the user's shares first; users are numbered from `first`.
    """
    rankings, shares = own_laws
    stream, starts = np.empty(1, dtype=np.uint64), clicks.starts
    for row in range(len(rankings)):
        start_stream(seed, 0, first + row, stream)
        lam = lams[draw_alpha(stream, shares[row])]
        mine = clicks_of(clicks, row)
        left, marks = np.argsort(rankings[row][mine]), last[starts[row] - starts[0] :]
        marks[: len(mine)] = False
        for n_left in range(len(mine), max(len(mine) - n_last, 0), -1):
            place = n_left - 1 - draw_jump(stream, lam, np.expm1(-lam * n_left), n_left)
            marks[left[place]] = True
            left[place : n_left - 1] = left[place + 1 : n_left].copy()
