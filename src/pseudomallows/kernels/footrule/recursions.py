"""The recursion behind the clicks of users: tables that all users of a law share, and the way back.

A user with c clicks gave them the first c ranks, and the other items share the rest. Along the line
of these others (see `matching`), from place c on: `gap` items wait there, those of the places
before it, and one fewer behind each click, where a rank stands alone. State k has k open ranks and
k + gap open items. States are scaled by the root of their decay, exp(-rate k), so that the step
over an item and a rank is a symmetric matrix, forwards as backwards. rate is alpha / n_items.

Behind the last click nothing depends on the user any more: `tails` holds these sums for all. And
i places behind place c no more than i ranks can be open, and few of the states count.

State k is stored in column k + 1, with zeros around the states. A step takes about ten
nanoseconds, less than it costs to pass a row to a function, or to give it a name: so the inner
loops stand where they are used, and read whole tables.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from .matching import N_GAPS, NEGLIGIBLE, RESCALE, gap_decay, largest_state, scale, square_roots

DECAY, BESIDE = range(2)  # rows of `base`
STAY, LOW, TAKE = range(3)  # rows of `steps`
BELOW, ABOVE, BOTH_SIDES = range(3)  # from which states a step comes
# Of the tails of all laws, above which they are kept for some places only. Those of the eight laws
# of users' own orders, with the 500 items up to which the footrule is the default, take up to 5.7
# MB (500 places of 177 numbers), and are kept whole; half of this would not hold them.
TAIL_BYTES = 2**23


class Laws(NamedTuple):
    """Laws of users: `ranks[law, item]` of the consensus, and `numbers[law]`, its rate."""

    ranks: NDArray[np.int32]
    numbers: NDArray[np.int64]


class Recursion(NamedTuple):
    """What the recursions of one rate share.

    `base[DECAY, k]` is exp(-2 rate k), and `base[BESIDE, k]` leads from state k - 1 to k over a
    rank alone; `steps[gap, TAKE, k]` leads there from state k to itself. Over an item and a rank,
    `steps[gap, STAY, k]` leads from state k to itself, `steps[gap, LOW, k]` from k - 1 to k, or
    back. `roots[i]` is the square root of i.

    With an item and a rank at place p and all that follow, and no gap before it, `tails[line, k +
    1]` is the weight of all paths from state k, divided by a number whose log is `logs[line]`; p is
    `stride` times the line, and of the last line the number of items. `widths[i]` states count i
    places behind place c.
    """

    rate: float
    log_partition: float
    base: NDArray[np.float64]
    steps: NDArray[np.float64]
    roots: NDArray[np.float64]
    tails: NDArray[np.float64]
    logs: NDArray[np.float64]
    stride: int
    widths: NDArray[np.int64]


class Recursions(NamedTuple):
    """The same of several rates, number g of each, but for `roots` and `stride`, which all
    share."""

    rates: NDArray[np.float64]
    log_partitions: NDArray[np.float64]
    bases: NDArray[np.float64]
    steps: NDArray[np.float64]
    roots: NDArray[np.float64]
    tails: NDArray[np.float64]
    logs: NDArray[np.float64]
    stride: int
    widths: NDArray[np.int64]


class Back(NamedTuple):
    """Room for the way back: `places` of the clicks, rising; `sums[p]` of all paths from each place
    p, divided by the `scales` from p on. With two rows of sums, when only the whole sum is wanted,
    they are used in turn."""

    places: NDArray[np.int64]
    sums: NDArray[np.float64]
    scales: NDArray[np.float64]


def make_recursions(rates: NDArray[np.float64], n_items: int) -> Recursions:
    """The `Recursions` of some rates. A kernel returns a plain tuple to Python: Ctrl-C while it
    makes one with names would crash the process."""
    return Recursions(*recursion_tables(rates, n_items))


@compiled
def recursion_tables(rates, n_items):
    """The tables of `Recursions`, in its order."""
    n_laws, n_gaps, most = len(rates), min(n_items, N_GAPS) + 1, 0
    roots = square_roots(n_items + n_items // 2 + n_gaps + 8)
    sizes = np.empty(n_laws, dtype=np.int64)
    for g in range(n_laws):
        sizes[g] = largest_state(gap_decay(rates[g], n_items // 2 + 3), roots, n_items) + 1
        most = max(most, sizes[g])
    stride = 1
    while n_laws * (n_items // stride) * (most + 3) * 8 > TAIL_BYTES and stride < n_items:
        stride *= 2
    n_lines = -(-n_items // stride) + 1
    bases, steps = np.zeros((n_laws, 2, most + 1)), np.zeros((n_laws, n_gaps, 3, most + 1))
    tails, logs = np.zeros((n_laws, n_lines, most + 3)), np.zeros((n_laws, n_lines))
    widths, log_partitions = np.empty((n_laws, n_items + 1), dtype=np.int64), np.empty(n_laws)
    for g in range(n_laws):
        for k in range(sizes[g]):
            bases[g, DECAY, k] = np.exp(-2.0 * rates[g] * k)
            bases[g, BESIDE, k] = np.exp(-rates[g] * (2 * k - 1)) * roots[k] if k > 0 else 0.0
        for gap in range(n_gaps):
            fill_gap_steps(bases[g], roots, gap, steps[g, gap])
        fill_tails(steps[g, 0], sizes[g], stride, tails[g], logs[g], widths[g])
        log_partitions[g] = logs[g, 0] + np.log(tails[g, 0, 1])
    return rates, log_partitions, bases, steps, roots, tails, logs, stride, widths


@compiled
def recursion_at(recursions, g):
    """The recursion of one law."""
    rates, log_partitions, bases, steps, roots, tails, logs, stride, widths = recursions
    mine = (bases[g], steps[g], roots, tails[g], logs[g], stride, widths[g])
    return Recursion(rates[g], log_partitions[g], *mine)


@compiled
def fill_gap_steps(base, roots, gap, steps):
    """The steps of one gap; see `Recursion`."""
    for k in range(base.shape[1]):
        steps[STAY, k] = base[DECAY, k] * (1.0 + 2.0 * k + gap)
        steps[LOW, k] = base[BESIDE, k] * roots[k + gap]
        steps[TAKE, k] = base[DECAY, k] * roots[k + gap]


@compiled
def step_far(sums, i, j, gap, side, recursion, size):
    """From row i to row j at a gap without a table: over an item and a rank, or over a rank alone,
    to the states from those below (`BELOW`) or above (`ABOVE`)."""
    base, roots = recursion.base, recursion.roots
    for k in range(size):
        if side == BOTH_SIDES:
            weight = base[DECAY, k] * (1.0 + 2.0 * k + gap) * sums[i, k + 1]
            weight += base[BESIDE, k] * roots[k + gap] * sums[i, k]
            weight += base[BESIDE, k + 1] * roots[k + 1 + gap] * sums[i, k + 2]
        else:
            weight = base[DECAY, k] * roots[k + gap] * sums[i, k + 1]
            weight += base[BESIDE, k + side] * sums[i, k + 2 * side]
        sums[j, k + 1] = weight


@compiled
def fill_tails(step, size, stride, tails, logs, widths):
    """Fill the tails of one law, from the end of the line on, and the widths.

    It is the same from both ends. So what counts at a place, of the paths through a state, is
    known once the middle is reached; on a line with clicks there is less.
    """
    n_items, n_lines = len(widths) - 1, len(tails)
    rows, log_sum = np.zeros((n_items // 2 + 1, tails.shape[1])), 0.0
    width = tails.shape[1]
    old, new = np.zeros(width), np.zeros(width)
    old[1] = rows[0, 1] = tails[n_lines - 1, 1] = 1.0
    for p in range(n_items - 1, -1, -1):
        top = min(min(p, n_items - p) + 1, size)
        for k in range(top):
            beside = step[LOW, k] * old[k] + step[LOW, k + 1] * old[k + 2]
            new[k + 1] = step[STAY, k] * old[k + 1] + beside
        new[top + 1 :] = 0.0
        if p % RESCALE == 0:
            log_sum += np.log(scale(new[1:], top))
        if p % stride == 0:
            copy_row(new, tails[p // stride])
            logs[p // stride] = log_sum
        if n_items - p < len(rows):
            copy_row(new, rows[n_items - p])
        if p < len(rows):
            widths[p] = count_states(rows[p], new, size)
        old, new = new, old
    for p in range(1, n_items + 1):
        widths[p] = max(widths[p], widths[p - 1]) if p < len(rows) else widths[p - 1]


@compiled
def copy_row(row, other):
    """Copy a row. To give a slice an array instead costs seconds of compiling."""
    for k in range(len(row)):
        other[k] = row[k]


@compiled
def count_states(there, back, size):
    """How many states count, of the paths that go there and back."""
    total, n_states = 0.0, 1
    for k in range(size):
        total += there[k + 1] * back[k + 1]
    for k in range(size):
        if there[k + 1] * back[k + 1] > NEGLIGIBLE * total:
            n_states = k + 1
    return n_states


@compiled
def room_to_go_back(recursions, n_rows):
    """Make room, with so many rows of sums."""
    n_items, width = recursions.widths.shape[1] - 1, recursions.tails.shape[2]
    places = np.empty(n_items, dtype=np.int64)
    sums, scales = np.zeros((n_rows, width)), np.empty(n_items + 1)
    scales[:] = 1.0
    return Back(places, sums, scales)


@compiled
def sort_places(codes, ranks, places):
    """Fill `places` with those of the clicks, rising; return how many are before place c, and the
    sum of the gaps."""
    n_clicks, n_first, gaps = len(codes), 0, 0
    for i in range(n_clicks):
        place = ranks[codes[i]] - 1
        n_first += place < n_clicks
        gaps += place - i
        j = i
        while j > 0 and places[j - 1] > place:
            places[j] = places[j - 1]
            j -= 1
        places[j] = place
    return n_first, gaps


@compiled
def sum_back(n_clicks, n_first, last, recursion, room):
    """Fill the sums and scales from `last`, or the last click, back to place c; return the log of
    the sum over all rankings of the others, but for the steps of the gap."""
    _, _, base, steps, _, tails, logs, stride, widths = recursion
    places, sums, scales = room
    mask, n_gaps = 1 if len(sums) == 2 else -1, len(steps)
    if n_clicks > 0:
        last = max(max(last, places[n_clicks - 1] + 1), n_clicks)
    line = -(-last // stride)
    if tails[line, 1] < 1e-100:  # sums that begin there may lose their digits
        line = len(tails) - 1
    p, log_sum = min(line * stride, len(widths) - 1), logs[line]
    copy_row(tails[line], sums[p & mask])
    met, gap = n_clicks - 1, 0
    while p > n_clicks:
        p -= 1
        i, j, size = (p + 1) & mask, p & mask, widths[p - n_clicks]
        is_click = met >= n_first and places[met] == p
        met -= is_click
        gap += is_click
        if gap >= n_gaps:
            step_far(sums, i, j, gap, ABOVE if is_click else BOTH_SIDES, recursion, size)
        elif is_click:
            for k in range(size):
                taken = steps[gap, TAKE, k] * sums[i, k + 1]
                sums[j, k + 1] = taken + base[BESIDE, k + 1] * sums[i, k + 2]
        else:
            for k in range(size):
                beside = steps[gap, LOW, k] * sums[i, k] + steps[gap, LOW, k + 1] * sums[i, k + 2]
                sums[j, k + 1] = steps[gap, STAY, k] * sums[i, k + 1] + beside
        sums[j, size + 1] = 0.0
        scales[p] = 1.0
        if p % RESCALE == 0:
            scales[p] = scale(sums[j, 1:], size)
            log_sum += np.log(scales[p])
    return log_sum + np.log(sums[n_clicks & mask, 1])
