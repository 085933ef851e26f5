"""The footrule Mallows distribution around 1..n: partition function, mean distance, marginals.

The recursion of `matching` with an item and a rank at every place: from k open pairs to k + 1 with
weight k + 1, to k with 2 k + 1, to k - 1 with k; then exp(-2 rate k), rate being alpha / n_items.
"""

import numpy as np

from ..compiled import compiled
from ..streams import below, start_stream, uniform
from .matching import TINY, gap_decay, scale


@compiled
def partition_and_distance(n_items, rate):
    """Log partition function and expected distance, the second as the derivative of the first.

    It is the same forwards and backwards, so two recursions meet in the middle: half the work,
    and the states that matter stay far from underflow up to ten thousand items.
    """
    half = n_items // 2
    width = n_items - half + 3
    decay, free = gap_decay(rate, width), np.empty(width)
    free[:] = 1.0
    # sums of the weights of the paths to each state, and the same, each path times its distance
    old, new, other = np.zeros(width), np.zeros(width), np.zeros(width)
    old_d, new_d, other_d = np.zeros(width), np.zeros(width), np.zeros(width)
    old[0] = 1.0
    log_sum, log_scale = 0.0, 0.0
    for t in range(1, half + 1):
        log_scale = step_sums(old, old_d, decay, 2.0, t, new, new_d)
        log_sum += log_scale
        old, new = new, old
        old_d, new_d = new_d, old_d
    # The other recursion ends in the same state, and must not pay for the gap there a second time.
    if n_items % 2:
        log_other = log_sum + step_sums(old, old_d, free, 0.0, half + 1, other, other_d)
    else:
        log_other = log_sum - log_scale + step_sums(new, new_d, free, 0.0, half, other, other_d)
    total, total_d = 0.0, 0.0
    for k in range(half + 1):
        total += old[k] * other[k]
        total_d += old_d[k] * other[k] + old[k] * other_d[k]
    return log_sum + log_other + np.log(total), total_d / total


@compiled
def step_sums(old, old_d, decay, gap, top, new, new_d):
    """One step of all paths, and of their distances, scaled to unit sum; return the log scale."""
    total = 0.0
    for k in range(top + 1):
        up, up_d = (old[k - 1] * k, old_d[k - 1] * k) if k > 0 else (0.0, 0.0)
        weight = (up + old[k] * (2 * k + 1) + old[k + 1] * (k + 1)) * decay[k]
        distance = (up_d + old_d[k] * (2 * k + 1) + old_d[k + 1] * (k + 1)) * decay[k]
        alive = weight > TINY
        new[k] = weight if alive else 0.0
        new_d[k] = distance + gap * k * weight if alive else 0.0
        total += new[k]
    for k in range(top + 1):
        new[k] /= total
        new_d[k] /= total
    return np.log(total)


@compiled
def sum_paths(decay, sums):
    """Fill `sums[t, k]`: all paths from k open pairs, just before they pay for their gap, to the
    end, which is t steps away. The table is 0 before; states beyond its last but two are left out.
    """
    n_items, most = len(sums) - 1, sums.shape[1] - 3
    sums[0, 0] = 1.0
    for t in range(1, n_items + 1):
        before, now = sums[t - 1], sums[t]
        top = min(min(t, n_items - t), most) + 1
        for k in range(top):
            weight = before[k] * decay[k] * (2 * k + 1) + before[k + 1] * decay[k + 1] * (k + 1)
            if k > 0:
                weight += before[k - 1] * decay[k - 1] * k
            now[k] = weight if weight > TINY else 0.0
        scale(now, top)


@compiled
def draw_mallows(seed, n_items, rate, draws):
    """Fill `draws[draw, item]` with rankings of the distribution around 1..n, from place n on.

    Where a path closes a pair, the item here takes the rank of any open pair, and the rank here
    goes to any open item; where it stays, one of the two, or the item takes the rank here.
    """
    width = n_items // 2 + 3
    decay, sums = gap_decay(rate, width), np.zeros((n_items + 1, width))
    sum_paths(decay, sums)
    items, ranks = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)  # open ones
    stream, user = np.empty(1, dtype=np.uint64), np.int64(0)  # a type, not a literal
    for draw in range(len(draws)):
        start_stream(seed, draw, user, stream)
        mine, k = draws[draw], 0
        for p in range(n_items - 1, -1, -1):
            ahead = sums[p]
            up = ahead[k + 1] * decay[k + 1] * (k + 1)
            stay = ahead[k] * decay[k] * (2 * k + 1)
            down = ahead[k - 1] * decay[k - 1] * k if k > 0 else 0.0
            u = uniform(stream) * (stay + down + up)
            takes_rank = takes_item = u < down
            if down <= u < down + up:
                items[k] = ranks[k] = p
                k += 1
            elif u >= down:
                way = below(stream, 2 * k + 1)
                if way == 0:
                    mine[p] = p + 1
                takes_item, takes_rank = 0 < way <= k, way > k
            last = k - 1
            if takes_rank:
                one = below(stream, k)
                mine[p] = ranks[one] + 1
                ranks[one] = ranks[last]
                ranks[last] = p  # waits, if the item here takes none
            if takes_item:
                one = below(stream, k)
                mine[items[one]] = p + 1
                items[one] = items[last]
                items[last] = p
            if takes_rank and takes_item:
                k = last


@compiled
def step_probabilities(n_items, rate, ups, stays, downs):
    """Probabilities of the steps of a path: `ups[t, k]` from k open pairs before place t.

    States beyond the last but two columns are left out.
    """
    most = ups.shape[1] - 3
    decay, sums = gap_decay(rate, most + 2), np.zeros((n_items + 1, most + 3))
    sum_paths(decay, sums)
    for t in range(n_items):
        here, ahead = sums[n_items - t], sums[n_items - t - 1]
        for k in range(min(min(t, n_items - t), most) + 1):
            up = ahead[k + 1] * decay[k + 1] * (k + 1)
            stay = ahead[k] * decay[k] * (2 * k + 1)
            down = ahead[k - 1] * decay[k - 1] * k if k > 0 else 0.0
            total = up + stay + down
            if total > 0.0 and here[k] > 0.0:
                ups[t, k], stays[t, k], downs[t, k] = up / total, stay / total, down / total


@compiled
def rank_probabilities(n_items, rate, probabilities):
    """Fill `probabilities[item, rank - 1]`: the probability that the item ranked item + 1 in the
    consensus takes that rank.

    One recursion with a tagged item for each: tagged[k] is the probability that k pairs are open
    and the item is among them. Two mirror symmetries leave a quarter of the table to compute.
    """
    width = n_items // 2 + 3
    shape = (n_items + 1, width)
    ups, stays, downs = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    step_probabilities(n_items, rate, ups, stays, downs)
    ends = np.zeros(shape)  # the rank here goes to one given open item
    given_away = np.zeros(shape)  # the rank here goes to any open item, ours opens
    tagged_stays, tagged_downs, closed = np.zeros(shape), np.zeros(shape), np.zeros(width)
    for t in range(n_items):
        for k in range(width):
            ends[t, k] = stays[t, k] / (2 * k + 1)
            given_away[t, k] = stays[t, k] * k / (2 * k + 1)
            tagged_stays[t, k] = stays[t, k] * 2 * k / (2 * k + 1)
            if k > 0:
                ends[t, k] += downs[t, k] / k
                tagged_downs[t, k] = downs[t, k] * (k - 1) / k
    state, next_state = np.zeros(width), np.zeros(width)
    tagged, next_tagged = np.zeros(width), np.zeros(width)
    state[0] = 1.0
    for item in range((n_items + 1) // 2):
        together = 0.0
        for j in range(width):
            together += state[j] * stays[item, j] / (2 * j + 1)
        fill_symmetric(probabilities, item, item, together)
        step_states(state, ups[item], given_away[item], closed, tagged)
        for rank in range(item + 1, n_items - item):
            taken = 0.0
            for j in range(width):
                taken += tagged[j] * ends[rank, j]
            fill_symmetric(probabilities, item, rank, taken)
            step_states(tagged, ups[rank], tagged_stays[rank], tagged_downs[rank], next_tagged)
            tagged, next_tagged = next_tagged, tagged
        step_states(state, ups[item], stays[item], downs[item], next_state)
        state, next_state = next_state, state


@compiled
def step_states(state, up, stay, down, new):
    """One step of the recursion for all states at once."""
    last = len(state) - 1
    new[0] = state[0] * stay[0] + state[1] * down[1]
    for k in range(1, last):
        new[k] = state[k - 1] * up[k - 1] + state[k] * stay[k] + state[k + 1] * down[k + 1]
    new[last] = 0.0


@compiled
def fill_symmetric(probabilities, item, rank, value):
    """Set the four cells that are equal: mirror the diagonal, mirror the whole line."""
    last = len(probabilities) - 1
    probabilities[item, rank] = value
    probabilities[rank, item] = value
    probabilities[last - item, last - rank] = value
    probabilities[last - rank, last - item] = value


@compiled
def expected_ranks(n_items, rate, means):
    """Fill `means[item]` with the expected rank of the item ranked item + 1 in the consensus.

    waits[k] is the mean number of steps that an open item, among k, still has to wait: one
    recursion backwards gives it for all items at once. Ranks before an item mirror those behind it.
    """
    width = n_items // 2 + 3
    shape = (n_items + 1, width)
    ups, stays, downs = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    step_probabilities(n_items, rate, ups, stays, downs)
    waits = np.zeros(shape)
    for t in range(n_items - 1, 0, -1):
        for k in range(1, min(t, n_items - t) + 1):
            on = ups[t, k] * waits[t + 1, k + 1]
            on += stays[t, k] * 2 * k / (2 * k + 1) * waits[t + 1, k]
            on += downs[t, k] * (k - 1) / k * waits[t + 1, k - 1]
            waits[t, k] = 1.0 + on
    late = np.zeros(n_items)  # expected places behind the consensus rank, 0 if before it
    state, next_state = np.zeros(width), np.zeros(width)
    state[0] = 1.0
    for item in range(n_items):
        for k in range(width - 1):
            opened = ups[item, k] * waits[item + 1, k + 1]
            opened += stays[item, k] * k / (2 * k + 1) * waits[item + 1, k]
            late[item] += state[k] * opened
        step_states(state, ups[item], stays[item], downs[item], next_state)
        state, next_state = next_state, state
    for item in range(n_items):
        means[item] = item + 1 + late[item] - late[n_items - 1 - item]
