"""Which cluster one's clicks speak for: exact likelihoods by leaps, and bounds that spare most.

The sum over the others of a user, see `log_likelihood_of`, is

    <0| both ... both fall both ... both fall both ... both |0>

with the operators of the gaps: `both`, for a place with an item and a rank, is a symmetric matrix
if states are scaled by the root of their decay. In the basis of its eigenvectors many places are
one leap, a power of each eigenvalue, and `fall` leads from the basis of a gap to that of the next.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..click_rows import clicks_of
from .likelihood import sum_clicked
from .walks import Back, Walks, room_to_go_back, sort_places, sum_back, walk_at

FAR = 14.0  # in log: clusters so far behind the best get no membership
ROUNDING = 1e-15  # relative error of a step between bases, generously
MAX_ERROR = 1e-9  # a sum that leaps may miss by more, relatively, is made step by step
N_FINE = 16  # a leap is one of so many, and a multiple


class Consensuses(NamedTuple):
    """The consensuses that clicks may speak for, g counting clusters fastest.

    `ranks[item, g]`; `priors[g]`, the log of the weight; `law_of[g]`, the law, the number of its
    walk. `log_factorials` are those of whole numbers.
    """

    ranks: NDArray[np.int32]
    priors: NDArray[np.float64]
    law_of: NDArray[np.int64]
    walks: Walks
    log_factorials: NDArray[np.float64]


class LeapRoom(NamedTuple):
    """Room for the sums of one user: by steps, and by leaps, in three `rows`."""

    back: Back
    rows: NDArray[np.float64]


class LeapTables(NamedTuple):
    """What leaps need, for each law, and their bounds.

    `rates[law, gap]` is the log of the norm of `both`, inf of a law without tables;
    `falls[law, gap]` the norm of `fall`; `starts[law, gap, d]` the log of that of state 0 after d
    places. `firsts[law, gap, j]` is the part of state 0 in eigenvector j; `fine[law, gap, d, j]`
    and `coarse[law, gap, d, j]` are powers d, and `N_FINE` times d, of its eigenvalue, relative to
    the largest; `moves[law, gap, i, j]` what `fall` makes of eigenvector i of the gap: a part of
    eigenvector j of the next; `actives[law, gap, d]` how many eigenvectors still count after a leap
    of d: the powers of the others are below `nothings[law]`.
    """

    rates: NDArray[np.float64]
    falls: NDArray[np.float64]
    starts: NDArray[np.float64]
    firsts: NDArray[np.float64]
    fine: NDArray[np.float64]
    coarse: NDArray[np.float64]
    moves: NDArray[np.float64]
    actives: NDArray[np.int16]
    nothings: NDArray[np.float64]


@njit(cache=True, nogil=True)
def bound_others(places, n_clicks, n_first, n_items, rates, falls, starts):
    """A bound, from above, of the log of the sum over the others, by the norms of one law."""
    gap, last, norm = n_clicks - n_first, starts.shape[1] - 1, 1.0
    if gap >= len(rates) or rates[0] == np.inf:
        return np.inf
    at = places[n_first] if gap > 0 else n_items
    ahead = at - n_clicks
    bound = starts[gap, min(ahead, last)] + max(ahead - last, 0) * rates[gap]
    for i in range(n_first, n_clicks):
        norm *= falls[gap]
        gap -= 1
        if i + 1 < n_clicks:
            bound += (places[i + 1] - places[i] - 1) * rates[gap]
        else:
            ahead = n_items - 1 - places[i]
            bound += starts[0, min(ahead, last)] + max(ahead - last, 0) * rates[0]
    return bound + np.log(norm)


@njit(cache=True, nogil=True)
def leap(distance, fine, coarse, n_states, states):
    """Multiply the states by powers of the eigenvalues, relative to the largest; return the norm of
    what comes out."""
    near, far, square = distance % N_FINE, distance // N_FINE, 0.0
    for j in range(n_states):
        states[j] *= fine[near, j] * coarse[far, j]
        square += states[j] * states[j]
    return np.sqrt(square)


@njit(cache=True, nogil=True)
def move(weights, old, n_old, n_new, new):
    """States in the basis of a gap, `old`, make those in the basis of the next."""
    out = new[:n_new]
    out[:] = 0.0
    for i in range(n_old):
        state, line = old[i], weights[i]
        for j in range(n_new):
            out[j] += state * line[j]


@njit(cache=True, nogil=True)
def leap_others(places, n_clicks, n_first, n_items, tables, law, rows):
    """Log of the sum over the others; -inf if rounding may have spoilt it."""
    rates, falls, firsts = tables.rates[law], tables.falls[law], tables.firsts[law]
    fine, coarse, moves = tables.fine[law], tables.coarse[law], tables.moves[law]
    actives, nothings = tables.actives[law], tables.nothings
    gap, at = n_clicks - n_first, n_clicks
    old, new, last = rows[0], rows[1], rows[2]
    distance = (places[n_first] if gap > 0 else n_items) - at
    n_states = actives[gap, distance]
    for j in range(n_states):
        old[j] = firsts[gap, j]
    norm = leap(distance, fine[gap], coarse[gap], n_states, old)
    log_sum, error = distance * rates[gap], ROUNDING * norm + nothings[law]
    for i in range(n_first, n_clicks):
        distance = (places[i + 1] if i + 1 < n_clicks else n_items) - places[i] - 1
        n_next = actives[gap - 1, distance]
        move(moves[gap], old, n_states, n_next, new)
        error = falls[gap] * (error + ROUNDING * norm)
        gap -= 1
        n_states = n_next
        log_sum += distance * rates[gap]
        old, new = new, old
        if i + 1 < n_clicks:
            norm = leap(distance, fine[gap], coarse[gap], n_states, old)
    for j in range(n_states):
        last[j] = firsts[0, j]
    if n_first < n_clicks:  # the last leap is that of state 0, backwards
        error *= leap(distance, fine[0], coarse[0], n_states, last)
        error += falls[1] * norm * nothings[law]
    total = 0.0
    for j in range(n_states):
        total += old[j] * last[j]
    return log_sum + np.log(total) if total * MAX_ERROR > error else -np.inf


@njit(cache=True, nogil=True)
def fill_parts(mine, consensuses, tables, room, parts, highest):
    """Fill `parts[g]`, all of the log likelihood but the sum over the others, and `highest[g]`, a
    bound of the whole."""
    ranks, priors, law_of, walks, log_factorials = consensuses
    rates, falls, starts = tables.rates, tables.falls, tables.starts
    n_items, n_clicks, places = len(ranks), len(mine), room.places
    for g in range(len(parts)):
        law = law_of[g]
        walk = walk_at(walks, law)
        n_first, gaps = sort_places(mine, ranks[:, g], places)
        part = log_factorials[n_clicks - n_first] - 2.0 * walk.lam * gaps
        part += sum_clicked(n_clicks, n_first, walk, room)
        parts[g] = part + priors[g] - walk.log_partition
        highest[g] = parts[g] + bound_others(
            places, n_clicks, n_first, n_items, rates[law], falls[law], starts[law]
        )


@njit(cache=True, nogil=True)
def sum_others(mine, g, consensuses, tables, room):
    """Log of the sum over the others, by leaps or by steps."""
    ranks, law = consensuses.ranks, consensuses.law_of[g]
    n_clicks, n_items, places = len(mine), len(ranks), room.back.places
    n_first, _ = sort_places(mine, ranks[:, g], places)
    rates = tables.rates[law]
    if n_clicks - n_first < len(rates) and rates[0] < np.inf:
        value = leap_others(places, n_clicks, n_first, n_items, tables, law, room.rows)
        if value > -np.inf:
            return value
    walk = walk_at(consensuses.walks, law)
    return sum_back(n_clicks, n_first, n_clicks, walk, room.back)


@njit(cache=True, nogil=True)
def room_to_leap(consensuses):
    """Make room for the sums of a user."""
    return LeapRoom(
        room_to_go_back(consensuses.walks, 2), np.empty((3, len(consensuses.ranks) + 4))
    )


@njit(cache=True, nogil=True)
def fill_log_weights(clicks, consensuses, tables, n_clusters, logs):
    """Fill `logs[row, g]`: log of the weight of consensus g, times the probability of the clicks of
    the row's user under it; return how many exact sums it took.

    Of the clusters of one draw, those with the highest bounds are taken first, until the bound is
    `FAR` below the best so far: the others together have less than n_clusters * exp(-FAR) of the
    user's membership, and get -inf.
    """
    n_all, n_sums = consensuses.ranks.shape[1], 0
    room = room_to_leap(consensuses)
    parts, highest = np.empty((2, n_all))
    for row in range(len(clicks.starts) - 1):
        mine, values = clicks_of(clicks, row), logs[row]
        fill_parts(mine, consensuses, tables, room.back, parts, highest)
        values[:] = -np.inf
        for first in range(0, n_all, n_clusters):
            best = -np.inf
            for _ in range(n_clusters):
                g = first
                for other in range(first + 1, first + n_clusters):
                    g = other if highest[other] > highest[g] else g
                if highest[g] < best - FAR:
                    break
                values[g] = parts[g] + sum_others(mine, g, consensuses, tables, room)
                highest[g] = -np.inf
                best = max(best, values[g])
                n_sums += 1
    return n_sums


@njit(cache=True, nogil=True)
def share_out(found, chain_weights, left_out, shares, means):
    """Fill `shares[row, source]`, a source being a cluster of a chain, and `means[row, cluster]`.

    Of the shares, the smallest are left out, as many as make up less than `left_out` together.
    """
    n_chains, n_rows, n_clusters = found.shape
    order = np.empty(n_chains * n_clusters, dtype=np.int64)
    for row in range(n_rows):
        mine = shares[row]
        means[row] = 0.0
        for chain in range(n_chains):
            for cluster in range(n_clusters):
                share = chain_weights[chain] * found[chain, row, cluster]
                mine[chain * n_clusters + cluster] = share
                means[row, cluster] += share
        for source in range(len(mine)):  # sort, the least first
            place = source
            while place > 0 and mine[order[place - 1]] > mine[source]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = source
        below, kept = 0.0, 0.0
        for source in order:
            below += mine[source]
            if below < left_out:
                mine[source] = 0.0
            kept += mine[source]
        for source in range(len(mine)):
            mine[source] /= kept
