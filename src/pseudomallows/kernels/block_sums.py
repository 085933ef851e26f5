"""Users known by blocks, items that share ranks, where a sum over full rankings has a closed form.

`ranks[item]` is what is known of a user: equal ranks are a tie, whose items share the ranks from
there on, and items of rank 0 share the ranks that are left. rate is alpha / n_items.

Kendall: pairs in different blocks are known, and within a block of m items the sum over their
orders is that of a Mallows law of m items, so the likelihood needs the known pairs and the sizes.

Hamming: an item costs rate unless it has its consensus rank, so its weight is q + (1 - q) [it has],
q = exp(-rate). Multiplied out, k of the f items that can have their consensus rank are fixed there,
and the m - k others go anywhere: the sum is that over k of C(f, k) (1 - q)^k q^(m - k) (m - k)!.
"""

import math

import numpy as np

from .compiled import compiled
from .kendall.inversions import count_inversions, draw_jump, take_nth
from .streams import below, start_user, uniform


@compiled
def bucket_log_likelihoods(rankings, ordering, rate, log_factorials, values):
    """Fill `values[user]` under Kendall, where no rank is 0.

    `log_factorials[m]` is the log partition function of m items, at this rate.
    """
    n_items = len(ordering)
    tree, sizes = np.empty(n_items + 1, np.int64), np.empty(n_items + 1, np.int64)
    for user in range(len(rankings)):
        ranks = rankings[user]
        value = -rate * count_inversions(ranks, ordering, tree) - log_factorials[n_items]
        sizes[:] = 0
        for item in range(n_items):
            sizes[ranks[item]] += 1
        for rank in range(1, n_items + 1):
            value += log_factorials[sizes[rank]]
        values[user] = value


@compiled
def draw_bucket_latent(streams, rankings, ordering, rate, latent):
    """Fill `latent[user, item]` with full rankings, drawn given what is known, under Kendall, where
    no rank is 0: each rank of a tie goes to one of its items left, v of them passed over."""
    n_items = len(ordering)
    tree, mine = np.empty(n_items + 1, np.int64), np.empty(n_items, np.int64)
    starts, stream = np.empty(n_items + 2, np.int64), np.empty(1, dtype=np.uint64)
    for user in range(len(rankings)):
        start_user(streams, user, 0, stream)
        ranks = rankings[user]
        # mine[starts[rank] : starts[rank + 1]] are the items of a tie, in the consensus order
        starts[:] = 0
        for item in range(n_items):
            starts[ranks[item] + 1] += 1
        for rank in range(1, n_items + 2):
            starts[rank] += starts[rank - 1]
        for place in range(n_items):
            rank = ranks[ordering[place]]
            mine[starts[rank]] = ordering[place]
            starts[rank] += 1
        first = 0
        for rank in range(1, n_items + 1):
            size = starts[rank] - first  # the starts have moved to the ends
            for node in range(size + 1):
                tree[node] = node & -node
            for behind in range(size):
                n_left = size - behind
                passed = draw_jump(stream, rate, np.expm1(-rate * n_left), n_left)
                latent[user, mine[first + take_nth(tree, size, passed)]] = rank + behind
            first += size


@compiled
def fixed_log_weights(n_fit, size, rate, log_weights):
    """Fill `log_weights[k]` with the term of k fixed items; return the log of the sum."""
    log_free = np.log(-np.expm1(-rate)) if rate > 0.0 else -np.inf
    highest = -np.inf
    for k in range(n_fit + 1):
        value = math.lgamma(n_fit + 1) - math.lgamma(k + 1) - math.lgamma(n_fit - k + 1)
        value += math.lgamma(size - k + 1) - (size - k) * rate
        if k > 0:
            value += k * log_free
        log_weights[k] = value
        highest = max(highest, value)
    total = 0.0
    for k in range(n_fit + 1):
        total += np.exp(log_weights[k] - highest)
    return highest + np.log(total)


@compiled
def block_of_ranks(ranks, owners):
    """Fill `owners[rank - 1]` with the block of each rank: the first rank of its tie, or 0."""
    owners[:] = 0
    n_items = len(ranks)
    counts = np.zeros(n_items + 1, dtype=np.int64)
    for item in range(n_items):
        counts[ranks[item]] += 1
    for rank in range(1, n_items + 1):
        for place in range(rank - 1, rank - 1 + counts[rank]):
            owners[place] = rank
    return counts


@compiled
def count_fitting(ranks, consensus, owners, n_fit):
    """Fill `n_fit[block]`: items whose consensus rank is one of their block's."""
    n_fit[:] = 0
    for item in range(len(ranks)):
        if owners[consensus[item] - 1] == ranks[item]:
            n_fit[ranks[item]] += 1


@compiled
def hamming_log_likelihoods(rankings, consensus, rate, log_partition, values):
    """Fill `values[user]` under Hamming."""
    n_items = len(consensus)
    owners, n_fit = np.empty(n_items, np.int64), np.empty(n_items + 1, np.int64)
    log_weights = np.empty(n_items + 1)
    for user in range(len(rankings)):
        sizes = block_of_ranks(rankings[user], owners)
        count_fitting(rankings[user], consensus, owners, n_fit)
        value = -log_partition
        for block in range(n_items + 1):
            if sizes[block] > 0:
                value += fixed_log_weights(n_fit[block], sizes[block], rate, log_weights)
        values[user] = value


@compiled
def draw_hamming_latent(streams, rankings, consensus, rate, latent):
    """Fill `latent[user, item]` with full rankings, drawn given what is known, under Hamming."""
    n_items = len(consensus)
    owners, n_fit = np.empty(n_items, np.int64), np.empty(n_items + 1, np.int64)
    log_weights, stream = np.empty(n_items + 1), np.empty(1, dtype=np.uint64)
    free = np.empty(n_items, np.int64)
    for user in range(len(rankings)):
        start_user(streams, user, 0, stream)
        sizes = block_of_ranks(rankings[user], owners)
        count_fitting(rankings[user], consensus, owners, n_fit)
        for block in range(n_items + 1):
            if sizes[block] > 0:
                log_sum = fixed_log_weights(n_fit[block], sizes[block], rate, log_weights)
                n_fixed = draw_term(stream, log_weights, log_sum, n_fit[block])
                ranks, mine, numbers = rankings[user], latent[user], (n_fit[block], n_fixed)
                fix_items(stream, ranks, block, consensus, numbers, owners, mine)
                fill_others(stream, ranks, block, owners, free, mine)


@compiled
def draw_term(stream, log_weights, log_sum, last):
    """Draw a number 0..last by its weight."""
    left = uniform(stream)
    for k in range(last):
        left -= np.exp(log_weights[k] - log_sum)
        if left < 0.0:
            return k
    return last


@compiled
def fix_items(stream, ranks, block, consensus, numbers, owners, latent):
    """With `n_fit, n_fixed = numbers`, give so many of the items that can have it their consensus
    rank, which is then nobody's; the other items of the block have rank 0."""
    n_fit, n_fixed = numbers
    for item in range(len(ranks)):
        if ranks[item] != block:
            continue
        latent[item] = 0
        if owners[consensus[item] - 1] == block:
            if below(stream, n_fit) < n_fixed:
                latent[item] = consensus[item]
                n_fixed -= 1
            n_fit -= 1
    for item in range(len(ranks)):
        if ranks[item] == block and latent[item] > 0:
            owners[latent[item] - 1] = -1


@compiled
def fill_others(stream, ranks, block, owners, free, latent):
    """Give the items of the block without a rank those that are left of it, at random."""
    n_free = 0
    for place in range(len(ranks)):
        if owners[place] == block:
            free[n_free] = place + 1
            n_free += 1
    for item in range(len(ranks)):
        if ranks[item] == block and latent[item] == 0:
            chosen = below(stream, n_free)
            n_free -= 1
            latent[item] = free[chosen]
            free[chosen] = free[n_free]
