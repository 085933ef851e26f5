"""Answers from draws of a ranking of many items, without a table of items and ranks."""

import numpy as np

from .compiled import compiled


@compiled
def comes_first(item, other, shares, means):
    """Is an item the better choice: of the larger share, of ties the better mean rank, else the
    smaller number?"""
    if shares[item] != shares[other]:
        return shares[item] > shares[other]
    if means[item] != means[other]:
        return means[item] < means[other]
    return item < other


@compiled
def rise(node, heap, nodes, shares, means):
    """Let the item of a node rise to where it belongs in a heap."""
    item = heap[node]
    while node > 0:
        parent = (node - 1) // 2
        if not comes_first(item, heap[parent], shares, means):
            break
        heap[node] = heap[parent]
        nodes[heap[node]] = node
        node = parent
    heap[node] = item
    nodes[item] = node


@compiled
def sink(size, heap, nodes, shares, means):
    """Let the item at the top of a heap sink to where it belongs."""
    item, node = heap[0], 0
    while 2 * node + 1 < size:
        child = 2 * node + 1
        if child + 1 < size and comes_first(heap[child + 1], heap[child], shares, means):
            child += 1
        if not comes_first(heap[child], item, shares, means):
            break
        heap[node] = heap[child]
        nodes[heap[node]] = node
        node = child
    heap[node] = item
    nodes[item] = node


@compiled
def cp_of_draws(orderings, weights, means, chosen):
    """Fill `chosen[place]` with the item, among those left, that is most likely there or before;
    of ties the better mean rank. `orderings[draw, place]` is an item.

    A heap holds the items that some draw has had so far.
    """
    n_draws, n_items = orderings.shape
    heap, nodes = np.empty(n_items, np.int32), np.full(n_items, -1, np.int32)
    shares, size = np.zeros(n_items), 0
    for place in range(n_items):
        for draw in range(n_draws):
            item = orderings[draw, place]
            shares[item] += weights[draw]
            if nodes[item] == -1:
                heap[size] = item
                nodes[item] = size
                size += 1
            if nodes[item] >= 0:
                rise(nodes[item], heap, nodes, shares, means)
        best = heap[0]
        chosen[place] = best
        nodes[best] = -2  # it is taken
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            sink(size, heap, nodes, shares, means)


@compiled
def intervals_of_draws(ranks, weights, probability, intervals):
    """Fill `intervals[item]` with the shortest (lowest, highest) that holds `probability` of an
    item's draws `ranks[draw, item]`; of several the likeliest, and of these the first.

    It begins and ends with a drawn rank.
    """
    n_draws, n_items = ranks.shape
    for item in range(n_items):
        order = np.argsort(ranks[:, item])
        best_length, best_mass, first, mass = n_items + 1, 0.0, 0, 0.0
        last = -1
        while first < n_draws:
            low = ranks[order[first], item]
            while last + 1 < n_draws and (
                mass < probability - 1e-9
                or ranks[order[last + 1], item] == ranks[order[last], item]
            ):
                last += 1
                mass += weights[order[last]]
            if mass < probability - 1e-9:
                break
            length = ranks[order[last], item] - low + 1
            if length < best_length or (length == best_length and mass > best_mass + 1e-12):
                best_length, best_mass = length, mass
                intervals[item, 0], intervals[item, 1] = low, ranks[order[last], item]
            while first < n_draws and ranks[order[first], item] == low:
                mass -= weights[order[first]]
                first += 1
