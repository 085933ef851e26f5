"""Lists of rankings with counts: what Cayley's and Ulam's distances need of the users.

`ordering[rank - 1]` is the item of a consensus at that rank; rate is alpha / n_items.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..moves import accepts, make_move, propose
from .cayley_loops import count_cycles
from .ulam_loops import longest_rise, next_permutation

CAYLEY, ULAM = range(2)


class RankingList(NamedTuple):
    """`counts[row]` users have the ranking `rankings[row]`; `kind` is the code of the distance."""

    kind: int
    rankings: NDArray[np.int32]
    counts: NDArray[np.int64]


@compiled
def list_distance(users, ordering, scratch):
    """Distance between all users and a consensus."""
    kind, rankings, counts = users
    total = 0
    if kind == CAYLEY:
        for row in range(len(rankings)):
            total += counts[row] * (len(ordering) - count_cycles(rankings[row], ordering, scratch))
    else:
        for row in range(len(rankings)):
            total += counts[row] * (len(ordering) - longest_rise(rankings[row], ordering, scratch))
    return total


@compiled
def move_by_list(stream, users, rate, move, leap, n_moves, consensus):
    """Make `n_moves` proposals, each of which looks at every user's ranking as a whole; return how
    many were accepted. Exchanges under Cayley's distance have a faster way: see `cycles`."""
    n_items = len(consensus)
    ordering, scratch = np.empty((2, n_items), dtype=np.int64)
    order_by_rank(consensus, ordering)
    log_reach, n_accepted = np.log(n_items), 0
    distance = list_distance(users, ordering, scratch)
    for _ in range(n_moves):
        here, there, log_way = propose(stream, move, leap, log_reach, consensus)
        if there < 0:
            continue
        make_move(move, here, there, consensus, ordering)
        proposed = list_distance(users, ordering, scratch)
        if accepts(stream, -rate * (proposed - distance) + log_way):
            distance = proposed
            n_accepted += 1
        else:
            make_move(move, there, here, consensus, ordering)
    return n_accepted


@compiled
def best_of_all(users, consensus):
    """Fill the consensus of the smallest distance, the first of them, by trying all."""
    ordering, scratch = np.empty((2, len(consensus)), dtype=np.int64)
    for place in range(len(ordering)):
        ordering[place] = place
    best = list_distance(users, ordering, scratch)
    chosen = ordering.copy()
    while next_permutation(ordering):
        distance = list_distance(users, ordering, scratch)
        if distance < best:
            best = distance
            chosen[:] = ordering
    for place in range(len(chosen)):
        consensus[chosen[place]] = place + 1
