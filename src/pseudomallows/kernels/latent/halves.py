"""Users known by clicks, under distances that see only which items have their own rank or go round
in cycles: Cayley's and Hamming's.

The c clicked items have the first c ranks, the m = n_items - c others the last m. An item is at
home if its consensus rank is on its own side. Let b be the clicked items that are not: then there
are b others that are not, a = c - b clicked ones at home, and e = m - b others at home. All that
follows depends on b alone; q = exp(-lam), and lam is alpha / n_items.

Cayley: q^distance is (1 / q)^(cycles - n_items). Each half is a way from its items to its ranks. An
item at home may be put last into the others' ways, alone (1 / q) or before any of those on its side
(1 each): so the items at home add factors 1 / q + b, 1 / q + b + 1, ... on each side. What is left
are b! ways of one half, and for each of them all b! of the other, whose cycles add 1 / q, 1 / q +
1, ..., 1 / q + b - 1. The item that comes last has its own rank by 1 / q in 1 / q + m - 1, and each
other rank of its side by 1; what comes last may as well be a rank.

Hamming: q^distance of m items of which f may have their own rank sums to the S(f, m) of
`blocks.fixed_log_weights`; a rank given to an item leaves S of what is left.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..click_rows import clicks_of
from ..streams import below, start_user, uniform

CAYLEY, HAMMING = 0, 1
N_VALUES = 6
LOG_LIKELIHOOD, OWN, HOME_HOME, HOME_LEFT, AWAY_HOME, AWAY_LEFT = range(N_VALUES)
NEGLIGIBLE, HIGH = 1e-20, 1e200  # share of a sum that ends it; a sum that is scaled down


class HalfLaws(NamedTuple):
    """Some laws: `ranks[g, item]` of the consensus, and for users with a number of clicks
    `tables[g, b]`: see `fill_half_table`."""

    ranks: NDArray[np.int32]
    tables: NDArray[np.float64]


@njit(cache=True, nogil=True)
def log_fitting_sum(n_fit, size, lam):
    """Log of S(n_fit, size): a sum over how many items are put at their own ranks, from 0 on or, if
    all terms rise, from the end. Terms rise and then fall, so that it ends early."""
    if n_fit < 0:
        return -np.inf
    odds = np.expm1(lam)
    from_end = odds > size * size
    log_first = math.lgamma(size + 1) - size * lam
    if from_end:
        left = size - n_fit
        log_first = math.lgamma(left + 1) - left * lam + n_fit * np.log(-np.expm1(-lam))
    term, total = 1.0, 1.0
    for step in range(n_fit):
        k = n_fit - 1 - step if from_end else step
        ratio = odds * (n_fit - k) / ((k + 1.0) * (size - k))
        term = term / ratio if from_end else term * ratio
        total += term
        if term < NEGLIGIBLE * total:
            break
        if total > HIGH:
            log_first += np.log(total)
            term, total = term / total, 1.0
    return log_first + np.log(total)


@njit(cache=True, nogil=True)
def fill_log_products(kind, lam, logs):
    """Fill `logs[m]` of the products of 1 + j q over j < m; by Hamming's distance, which has none,
    0. The last is the log partition function of all items."""
    logs[:] = 0.0
    n_items = len(logs) - 1
    if kind == CAYLEY:
        q = np.exp(-lam)
        for j in range(n_items):
            logs[j + 1] = logs[j] + np.log1p(j * q)
    else:
        logs[n_items] = log_fitting_sum(n_items, n_items, lam)


@njit(cache=True, nogil=True)
def fill_click_logs(kind, lam, n_clicks, logs, values):
    """Fill `values[b]`: the log probability of clicks with b items away from home; see
    `fill_log_products` for `logs`."""
    n_items = len(logs) - 1
    size = n_items - n_clicks
    both = logs[n_clicks] + logs[size] - logs[n_items]
    for b in range(len(values)):
        if kind == CAYLEY:
            values[b] = math.lgamma(b + 1) - b * lam + both - logs[b]
        else:
            clicked = log_fitting_sum(n_clicks - b, n_clicks, lam)
            values[b] = clicked + log_fitting_sum(size - b, size, lam) - logs[n_items]


@njit(cache=True, nogil=True)
def fill_half_table(kind, lam, n_items, n_clicks, table):
    """Fill `table[b]`: the log probability of clicks with b items away from home, and the chances
    of an unclicked item to have one rank of its side.

    At home: its own rank; another item's who is at home; one whose own item was clicked. Away: the
    rank of one at home; one whose own item was clicked.
    """
    table[:] = 0.0
    size, logs = n_items - n_clicks, np.empty(n_items + 1)
    if size == 0:
        return
    fill_log_products(kind, lam, logs)
    fill_click_logs(kind, lam, n_clicks, logs, table[:, LOG_LIKELIHOOD])
    if kind == CAYLEY:
        fill_cayley_chances(lam, size, table)
        return
    for b in range(len(table)):
        home = size - b
        whole = log_fitting_sum(home, size, lam)
        one_less = log_fitting_sum(home - 1, size - 1, lam) - whole
        table[b, OWN] = np.exp(one_less)
        table[b, HOME_HOME] = np.exp(log_fitting_sum(home - 2, size - 1, lam) - whole - lam)
        table[b, HOME_LEFT] = table[b, AWAY_HOME] = np.exp(one_less - lam)
        if b > 0:
            table[b, AWAY_LEFT] = np.exp(log_fitting_sum(home, size - 1, lam) - whole - lam)


@njit(cache=True, nogil=True)
def fill_cayley_chances(lam, size, table):
    """The chances by Cayley's distance, `size` items not clicked."""
    q = np.exp(-lam)
    total = 1.0 + (size - 1) * q
    for b in range(len(table)):
        table[b, OWN] = 1.0 / total
        table[b, HOME_HOME] = table[b, HOME_LEFT] = table[b, AWAY_HOME] = q / total
        if b > 0:
            table[b, AWAY_LEFT] = (1.0 + (b - 1) * q) / (b * total)


@njit(cache=True, nogil=True)
def half_chances(clicks, rows, laws, window, logs, chances):
    """Fill `logs[row, g]`, the log probability of the clicks of some rows, all with as many, and
    `chances[row, g, item]` to be among the next `window`; of what is clicked it has no meaning."""
    n_laws, n_items = laws.ranks.shape
    for row in rows:
        mine = clicks_of(clicks, row)
        n_clicks = len(mine)
        last = min(n_clicks + window, n_items)
        for g in range(n_laws):
            ranks, b, n_left = laws.ranks[g], 0, 0
            for item in mine:
                b += ranks[item] > n_clicks
                n_left += n_clicks < ranks[item] <= last
            n_home = last - n_clicks - n_left
            table = laws.tables[g, b]
            logs[row, g] = table[LOG_LIKELIHOOD]
            away = n_home * table[AWAY_HOME] + n_left * table[AWAY_LEFT]
            behind = n_home * table[HOME_HOME] + n_left * table[HOME_LEFT]
            ahead = behind + table[OWN] - table[HOME_HOME]
            for item in range(n_items):
                rank = ranks[item]
                if rank <= n_clicks:
                    chances[row, g, item] = away
                else:
                    chances[row, g, item] = ahead if rank <= last else behind


@njit(cache=True, nogil=True)
def draw_cayley_latent(streams, clicks, consensus, lam, latent):
    """Fill `latent[row, item]` with full rankings, drawn given the clicks, by Cayley's distance.

    A cycle through both sides goes back and forth between items that are away from home: the b ways
    of one side are drawn, then the cycles, which say the ways of the other. Those at home join.
    """
    n_items, q = len(consensus), np.exp(-lam)
    stream, is_clicked = np.empty(1, dtype=np.uint64), np.zeros(n_items, dtype=np.bool_)
    cycles, clicked, others = np.empty((3, n_items), dtype=np.int64)
    n_joined = np.empty(2, dtype=np.int64)
    for row in range(len(latent)):
        start_user(streams, row, 0, stream)
        mine, ranks = clicks_of(clicks, row), latent[row]
        is_clicked[:] = False
        is_clicked[mine] = True
        n_away = list_away(is_clicked, True, consensus, len(mine), clicked)
        list_away(is_clicked, False, consensus, len(mine), others)
        for i in range(n_away - 1, 0, -1):
            j = below(stream, i + 1)
            others[i], others[j] = others[j], others[i]
        draw_cycles(stream, q, n_away, cycles)
        n_joined[:] = n_away
        for i in range(n_away):
            ranks[clicked[i]] = consensus[others[i]]
            ranks[others[i]] = consensus[clicked[cycles[i]]]
        for item in range(n_items):
            is_first = consensus[item] <= len(mine)
            if is_first == is_clicked[item]:
                side = clicked if is_first else others
                n_side = n_joined[int(is_first)]
                join_side(stream, q, item, consensus, side[:n_side], ranks)
                side[n_side] = item
                n_joined[int(is_first)] += 1


@njit(cache=True, nogil=True)
def list_away(is_clicked, is_first, consensus, n_clicks, side):
    """Fill `side` with the items of a side that are away from home; return how many."""
    n_away = 0
    for item in range(len(consensus)):
        if is_clicked[item] == is_first and (consensus[item] <= n_clicks) != is_first:
            side[n_away] = item
            n_away += 1
    return n_away


@njit(cache=True, nogil=True)
def join_side(stream, q, item, consensus, side, ranks):
    """Let an item have its own rank, or that of one on its side, who then has it."""
    ranks[item] = consensus[item]
    if uniform(stream) * (1.0 + len(side) * q) >= 1.0:
        other = side[below(stream, len(side))]
        ranks[item], ranks[other] = ranks[other], consensus[item]


@njit(cache=True, nogil=True)
def draw_cycles(stream, q, size, cycles):
    """Fill `cycles[:size]` with what follows each in cycles, each of which counts 1 / q."""
    for i in range(size):
        cycles[i] = i
        if uniform(stream) * (1.0 + i * q) >= 1.0:
            other = below(stream, i)
            cycles[i], cycles[other] = cycles[other], i
