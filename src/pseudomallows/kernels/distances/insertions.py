"""Insertions under Ulam's distance: an item is taken out of the consensus, and put in elsewhere.

Of a user, let the longest rise without the item be `base`. With it there is one longer by 1 where
the longest rise of lower ranks before the place and that of higher ranks behind it add up to
`base`. So one way there and one back tell the distance of every place, and the place is drawn by
its exact probabilities given the order of the others: nothing is rejected.

Rises are counted on bits, for up to 62 items: see `grow`. The users are in blocks, in which each
item has a line of ranks: a step is one short loop over a line, which compiles to wide instructions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..moves import INSERT, make_move
from ..streams import below, uniform
from .ulam_loops import ONE, grow

BLOCK = 128  # users at most: their ranks of 100 items, 50 KB, stay near the processor


class Blocks(NamedTuple):
    """`counts[block, row]` users have the ranking `ranks[block, item, row]`. Then room for what is
    known of each row of a block, for `lows[place, row]`, and for the items that stay."""

    ranks: NDArray[np.int32]
    counts: NDArray[np.int64]
    tails: NDArray[np.int64]
    limits: NDArray[np.int64]
    highs: NDArray[np.int64]
    bases: NDArray[np.int64]
    lows: NDArray[np.int64]
    others: NDArray[np.int64]


@compiled
def make_blocks(rankings, counts):
    """The users in blocks; the rows that are left at the end count 0.

    Each array is made on its own: lines of one array would not compile to wide instructions.
    """
    n_rows, n_items = rankings.shape
    n_blocks = max(1, (n_rows + BLOCK - 1) // BLOCK)
    width = (n_rows + n_blocks - 1) // n_blocks
    ranks = np.zeros((n_blocks, n_items, width), np.int32)
    heads = np.zeros((n_blocks, width), np.int64)
    for row in range(n_rows):
        block, place = row // width, row % width
        ranks[block, :, place], heads[block, place] = rankings[row], counts[row]
    tails, limits = np.empty(width, np.int64), np.empty(width, np.int64)
    highs, bases = np.empty(width, np.int64), np.empty(width, np.int64)
    lows, others = np.empty((n_items, width), np.int64), np.empty(n_items - 1, np.int64)
    return Blocks(ranks, heads, tails, limits, highs, bases, lows, others)


@compiled
def grow_all(ranks, tails, lengths):
    """Let the rank of an item join the rises of each row."""
    for row in range(len(ranks)):
        tails[row], is_longer = grow(tails[row], ONE << ranks[row])
        lengths[row] += is_longer


@compiled
def grow_lower(ranks, limits, tails, before, after):
    """The same if the rank is below that of `limits`; fill the lengths after it."""
    for row in range(len(ranks)):
        bit = (ONE << ranks[row]) & (limits[row] - 1)
        tails[row], is_longer = grow(tails[row], bit)
        after[row] = before[row] + is_longer


@compiled
def grow_higher(n_items, ranks, limits, tails, lengths):
    """The same from the last item on, with ranks counted from the last."""
    for row in range(len(ranks)):
        bit = (ONE << (n_items - ranks[row])) & (limits[row] - 1)
        tails[row], is_longer = grow(tails[row], bit)
        lengths[row] += is_longer


@compiled
def sum_equal(counts, lows, highs, bases):
    """Users of whom two lengths add up to the third."""
    total = 0
    for row in range(len(counts)):
        total += counts[row] * (lows[row] + highs[row] == bases[row])
    return total


@compiled
def count_gains(users, ordering, here, gains):
    """Fill `gains[place]`: how much smaller the distance to all users is if the item at `here` goes
    there, against having it nowhere."""
    others = users.others
    others[:here], others[here:] = ordering[:here], ordering[here + 1 :]
    gains[:] = 0
    for block in range(len(users.ranks)):
        add_gains(users, block, ordering[here], gains)


@compiled
def add_gains(users, block, item, gains):
    """Add those of a block."""
    ranks, counts = users.ranks[block], users.counts[block]
    tails, limits, highs, bases = users.tails, users.limits, users.highs, users.bases
    n_items, others, lows = len(ranks), users.others, users.lows
    tails[:], bases[:] = -1, 0
    for place in range(n_items - 1):
        grow_all(ranks[others[place]], tails, bases)
    tails[:], lows[0] = -1, 0
    for row in range(len(counts)):
        limits[row] = ONE << ranks[item, row]
    for place in range(n_items - 1):
        grow_lower(ranks[others[place]], limits, tails, lows[place], lows[place + 1])
    tails[:], highs[:] = -1, 0
    for row in range(len(counts)):
        limits[row] = ONE << (n_items - ranks[item, row])
    for place in range(n_items - 1, 0, -1):
        gains[place] += sum_equal(counts, lows[place], highs, bases)
        grow_higher(n_items, ranks[others[place - 1]], limits, tails, highs)
    gains[0] += sum_equal(counts, lows[0], highs, bases)


@compiled
def draw_place(stream, rate, gains, weights):
    """Draw a place of probability proportional to exp(rate gain)."""
    most, total = gains.max(), 0.0
    for place in range(len(gains)):
        log_weight = rate * (gains[place] - most)
        total += np.exp(log_weight) if log_weight > -40.0 else 0.0
        weights[place] = total
    u, place = uniform(stream) * total, 0
    while weights[place] <= u:
        place += 1
    return place


@compiled
def move_by_insertions(stream, rankings, counts, rate, n_moves, consensus):
    """Take out an item and draw its place, `n_moves` times."""
    n_items = len(consensus)
    ordering, gains = np.empty((2, n_items), dtype=np.int64)
    weights, users = np.empty(n_items), make_blocks(rankings, counts)
    order_by_rank(consensus, ordering)
    for _ in range(n_moves):
        here = below(stream, n_items)
        count_gains(users, ordering, here, gains)
        make_move(INSERT, here, draw_place(stream, rate, gains, weights), consensus, ordering)


@compiled
def improve_by_places(rankings, counts, consensus):
    """Put items where they are best, until no insertion makes the distance smaller."""
    n_items, item, since = len(consensus), 0, 0  # how many items have stayed in turn
    ordering, gains = np.empty((2, n_items), dtype=np.int64)
    users = make_blocks(rankings, counts)
    order_by_rank(consensus, ordering)
    while since < n_items:
        here = consensus[item] - 1
        count_gains(users, ordering, here, gains)
        since += 1
        if gains.max() > gains[here]:
            make_move(INSERT, here, gains.argmax(), consensus, ordering)
            since = 0
        item = (item + 1) % n_items
