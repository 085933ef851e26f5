"""The exact probability of a user's clicks: that the clicked items have the first ranks."""

import numpy as np

from ..click_rows import clicks_of
from ..compiled import compiled
from .matching import RESCALE, scale
from .recursions import (
    BELOW,
    BESIDE,
    BOTH_SIDES,
    LOW,
    STAY,
    TAKE,
    recursion_at,
    room_to_go_back,
    sort_places,
    step_far,
    sum_back,
)


@compiled
def logs_of_factorials(n):
    """logs[i] is the log of i!, for i up to n."""
    logs = np.zeros(n + 1)
    for i in range(2, n + 1):
        logs[i] = logs[i - 1] + np.log(i)
    return logs


@compiled
def sum_clicked(n_clicks, n_first, recursion, room):
    """Log of the sum over all orders of the clicks before place c, but for the steps of the gap.

    Their line, taken from place c to the first, is like that of the others: items wait for ranks,
    and one fewer at each place without a click. No more ranks open than clicks are to come.
    """
    places, sums, _ = room
    base, steps = recursion.base, recursion.steps
    most, n_gaps, log_sum = base.shape[1] - 2, len(steps), 0.0
    met, gap, top, start = n_first - 1, n_clicks - n_first, 0, n_clicks & 1
    sums[start, 1] = 1.0
    sums[start, 2] = sums[start, 3] = 0.0
    for p in range(n_clicks - 1, -1, -1):
        i, j, is_click = (p + 1) & 1, p & 1, met >= 0 and places[met] == p
        met -= is_click
        top = min(min(top, met) + 1, most)
        if gap >= n_gaps:
            step_far(sums, i, j, gap, BOTH_SIDES if is_click else BELOW, recursion, top + 1)
        elif is_click:
            for k in range(top + 1):
                beside = steps[gap, LOW, k] * sums[i, k] + steps[gap, LOW, k + 1] * sums[i, k + 2]
                sums[j, k + 1] = steps[gap, STAY, k] * sums[i, k + 1] + beside
        else:
            for k in range(top + 1):
                taken = steps[gap, TAKE, k] * sums[i, k + 1]
                sums[j, k + 1] = taken + base[BESIDE, k] * sums[i, k]
        gap -= not is_click
        sums[j, top + 2] = sums[j, top + 3] = 0.0
        if p % RESCALE == RESCALE - 1:
            log_sum += np.log(scale(sums[j, 1:], top + 1))
    return log_sum + np.log(sums[0, 1])


@compiled
def log_likelihood_of(mine, ranks, recursion, log_factorials, room):
    """Log probability that a user's first ranks are the clicked items, under the consensus `ranks`.

    Places are those of the consensus, from 0. On the line of the c clicked items (see `matching`) a
    rank stands at each of the first c places, so all after place c is known, and only the clicks
    before it make sums. The line of the others begins with items alone, as many as there are clicks
    behind place c; this gap falls by one at each of those clicks, where a rank stands alone, and
    everywhere else an item and a rank stand together. The sum of the gaps, of either line, costs
    exp(-rate) each. The sum over all rankings is that of a user without clicks.
    """
    n_clicks = len(mine)
    n_first, gaps = sort_places(mine, ranks, room.places)
    value = (
        log_factorials[n_clicks - n_first] - 2.0 * recursion.rate * gaps - recursion.log_partition
    )
    value += sum_clicked(n_clicks, n_first, recursion, room)
    return value + sum_back(n_clicks, n_first, n_clicks, recursion, room)


@compiled
def own_log_likelihoods(clicks, rows, labels, laws, recursions, values):
    """Fill `values[place]`: log probability of the clicks of `rows[place]` under the law
    `labels[place]`. Equal labels in a row are quicker."""
    ranks, numbers = laws
    room = room_to_go_back(recursions, np.int64(2))  # a type, not a literal: compiled once
    log_factorials = logs_of_factorials(ranks.shape[1])
    label = 0
    recursion = recursion_at(recursions, numbers[0])
    for place in range(len(rows)):
        if labels[place] != label:
            label = labels[place]
            recursion = recursion_at(recursions, numbers[label])
        mine = clicks_of(clicks, rows[place])
        values[place] = log_likelihood_of(mine, ranks[label], recursion, log_factorials, room)
