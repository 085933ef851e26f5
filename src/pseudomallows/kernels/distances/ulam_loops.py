"""Ulam's distance: the fewest items that must move, n_items less the longest rise.

rate is alpha / n_items. Robinson-Schensted makes of a ranking two tableaux of one shape, whose
first row is as long as the longest rise. So there are f^2 rankings of a shape, f being the number
of its tableaux: n! over the product of its hooks. Shapes are partitions of n_items; they are
numbered in the order of `next_shape`, which begins with one row and shortens the first row last of
all.
"""

import numpy as np

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..streams import below, start_stream, uniform

ONE = np.int64(1)
MOST_BITS = 62  # items whose ranks are bits of a whole number: 64 less the sign and a carry


@compiled
def grow(tails, bit):
    """Let a rank, a bit, join those before it; return the tails, and whether a rise is longer now.

    `tails` lacks the bits of the ranks that are the lowest end of a rise of some length, one for
    each. The new one takes the place of the next above it, to which the sum carries, or, if there
    is none, ends a longer rise: then the sum carries through the sign (Crochemore et al. 2001).
    A bit of 0 is nobody.
    """
    total = tails + bit
    return total | (tails ^ bit), total >= 0


@compiled
def longest_rise(ranks, ordering, tails):
    """Length of the longest rise of the ranks along `ordering`; `tails` is room for as many."""
    if len(ordering) > MOST_BITS:
        return longest_rise_of_many(ranks, ordering, tails)
    length, missing = 0, -ONE
    for place in range(len(ordering)):
        missing, is_longer = grow(missing, ONE << ranks[ordering[place]])
        length += is_longer
    return length


@compiled
def longest_rise_of_many(ranks, ordering, tails):
    """The same for any number of items; `tails[k]` ends a rise of k + 1."""
    length = 0
    for place in range(len(ordering)):
        rank = ranks[ordering[place]]
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if tails[middle] < rank:
                low = middle + 1
            else:
                high = middle
        tails[low] = rank
        length = max(length, low + 1)
    return length


@compiled
def ulam_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    n_items = rankings.shape[1]
    ordering, tails = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    for row in range(len(rankings)):
        if row < len(others):
            order_by_rank(others[row], ordering)
        distances[row] = n_items - longest_rise(rankings[row], ordering, tails)


@compiled
def next_permutation(values):
    """Turn `values` into the next of all their orders; return False after the last."""
    head = len(values) - 2
    while head >= 0 and values[head] >= values[head + 1]:
        head -= 1
    if head < 0:
        return False
    other = len(values) - 1
    while values[other] <= values[head]:
        other -= 1
    values[head], values[other] = values[other], values[head]
    values[head + 1 :] = values[head + 1 :][::-1].copy()
    return True


@compiled
def count_ranks_by_rise(n_items, counts):
    """Fill `counts[distance, item, rank - 1]` by going through all rankings."""
    ranks, ordering = np.arange(1, n_items + 1), np.arange(n_items)
    tails = np.empty(n_items, np.int64)
    counts[:] = 0
    while True:
        distance = n_items - longest_rise(ranks, ordering, tails)
        for item in range(n_items):
            counts[distance, item, ranks[item] - 1] += 1
        if not next_permutation(ranks):
            return


@compiled
def next_shape(rows, n_rows):
    """Turn a shape into the next; return its number of rows, 0 after the last.

    The last row longer than 1 gives up a box, which goes, with all rows below, into rows of at most
    that new length.
    """
    row, left = n_rows - 1, 0
    while row >= 0 and rows[row] == 1:
        row -= 1
        left += 1
    if row < 0:
        return 0
    rows[row] -= 1
    left += 1
    width = rows[row]
    while left > 0:
        row += 1
        rows[row] = min(width, left)
        left -= rows[row]
    return row + 1


@compiled
def log_tableaux(rows, n_rows, logs):
    """Log of the number of tableaux of a shape: `logs[i]` is log i!.

    By the lengths l of the first hooks of each row: n! times the product of the differences of any
    two, over the product of the l!.
    """
    n_items, value = 0, 0.0
    for row in range(n_rows):
        n_items += rows[row]
        hook = rows[row] + n_rows - 1 - row
        value -= logs[hook]
        for lower in range(row + 1, n_rows):
            difference = hook - (rows[lower] + n_rows - 1 - lower)
            value += logs[difference] - logs[difference - 1]
    return value + logs[n_items]


@compiled
def count_shapes(n_items, counts):
    """Fill `counts[total, width]`: the partitions of `total` into rows of at most `width`."""
    counts[:] = 0
    counts[0, :] = 1
    for total in range(1, n_items + 1):
        for width in range(1, n_items + 1):
            counts[total, width] = counts[total, width - 1]
            if width <= total:
                counts[total, width] += counts[total - width, width]


@compiled
def weigh_shapes(n_items, log_shares, log_counts):
    """Fill `log_counts[distance]`, the log of the number of rankings at each distance, and
    `log_shares[shape]`, the log of the number of rankings of each shape."""
    logs = np.zeros(2 * n_items + 1)
    for i in range(1, 2 * n_items + 1):
        logs[i] = logs[i - 1] + np.log(i)
    rows = np.zeros(n_items, np.int64)
    rows[0] = n_items
    n_rows, number = 1, 0
    log_counts[:] = -np.inf
    while n_rows > 0:
        distance, log_share = n_items - rows[0], 2.0 * log_tableaux(rows, n_rows, logs)
        log_shares[number] = log_share
        log_counts[distance] = np.logaddexp(log_counts[distance], log_share)
        n_rows, number = next_shape(rows, n_rows), number + 1


@compiled
def shape_of(number, n_shapes, n_items, rows):
    """Fill `rows` with the shape of that number; return how many there are.

    `n_shapes` is the table of `count_shapes`; the widest first row comes first.
    """
    left, width, n_rows = n_items, n_items, 0
    while left > 0:
        width = min(width, left)
        while number >= n_shapes[left - width, width]:
            number -= n_shapes[left - width, width]
            width -= 1
        rows[n_rows] = width
        left -= width
        n_rows += 1
    return n_rows


@compiled
def draw_tableau(stream, shape, n_rows, rows, tableau):
    """Fill `tableau[row, column]` with 1..n, uniform among those of the shape, by hook walks.

    From any box walk to a random box of its hook, until there is no other: there goes the largest
    number (Greene, Nijenhuis and Wilf 1979).
    """
    n_items = 0
    for row in range(n_rows):
        rows[row] = shape[row]
        n_items += shape[row]
    for number in range(n_items, 0, -1):
        start, row = below(stream, number), 0
        while start >= rows[row]:
            start -= rows[row]
            row += 1
        column = start
        while True:
            arm, leg = rows[row] - 1 - column, 0
            while row + leg + 1 < n_rows and rows[row + leg + 1] > column:
                leg += 1
            if arm + leg == 0:
                break
            step = below(stream, arm + leg)
            if step < arm:
                column += step + 1
            else:
                row += step - arm + 1
        tableau[row, column] = number
        rows[row] -= 1


@compiled
def schensted_backwards(shape, n_rows, values, times, ranks):
    """Fill `ranks` with the ranking whose tableaux are `values` and `times`; both are used up."""
    n_items = len(ranks)
    for time in range(n_items, 0, -1):
        row = 0
        while shape[row] == 0 or times[row, shape[row] - 1] != time:
            row += 1
        shape[row] -= 1
        value = values[row, shape[row]]
        for upper in range(row - 1, -1, -1):
            column = shape[upper] - 1
            while values[upper, column] > value:
                column -= 1
            values[upper, column], value = value, values[upper, column]
        ranks[time - 1] = value


@compiled
def draw_ulam(seed, distances, sums, starts, n_shapes, draws):
    """Fill `draws[draw, item]` with rankings around 1..n.

    `distances` are the running sums of the probabilities of each distance, `sums[shape]` those of
    the shapes of one distance, which begin at `starts[distance]`.
    """
    n_items = draws.shape[1]
    stream, shape = np.empty(1, np.uint64), np.empty(n_items, np.int64)
    rows = np.empty(n_items, np.int64)
    values, times = np.zeros((2, n_items, n_items), np.int64)
    for draw in range(len(draws)):
        start_stream(seed, draw, 0, stream)
        u = uniform(stream) * distances[-1]
        distance = min(np.searchsorted(distances, u, side="right"), n_items - 1)
        mine = sums[starts[distance] : starts[distance + 1]]
        u = uniform(stream) * mine[-1]
        number = starts[distance] + min(np.searchsorted(mine, u, side="right"), len(mine) - 1)
        n_rows = shape_of(number, n_shapes, n_items, shape)
        draw_tableau(stream, shape, n_rows, rows, values)
        draw_tableau(stream, shape, n_rows, rows, times)
        schensted_backwards(shape, n_rows, values, times, draws[draw])
