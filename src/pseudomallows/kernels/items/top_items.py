"""Scores of items by rows of weights and by factors; the best items, and the ranks of clicks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..click_rows import clicks_of
from ..compiled import compiled

CHUNK = 4096  # items scored at a time: 16 KB, which stay in the processor's first cache
WEIGHTS_CHUNK = 256  # the same of all rows of weights: 1 MB with 1,000 items, the second cache
LOOK = 128  # items passed over together, if none is among the best: one loop of wide instructions


class SparseRows(NamedTuple):
    """A click on `item` adds `weights[starts[item]:starts[item + 1]]` to the scores of `items`
    there."""

    starts: NDArray[np.int64]
    items: NDArray[np.int32]
    weights: NDArray[np.float32]


class FactorRows(NamedTuple):
    """A click on `item` adds `left[item] @ right` to the scores of all, less `own[item]` to that of
    the item itself."""

    left: NDArray[np.float32]
    right: NDArray[np.float32]
    own: NDArray[np.float32]


@compiled
def add_weight_rows(clicks, weights, scores):
    """Add to `scores[row]` the rows `weights[item]` of what was clicked, in order, four at a time:
    then each score is read and written once for four."""
    n_items = scores.shape[1]
    for begin in range(0, n_items, WEIGHTS_CHUNK):
        end = min(begin + WEIGHTS_CHUNK, n_items)
        for row in range(len(scores)):
            mine, clicked = scores[row, begin:end], clicks_of(clicks, row)
            n_fours = len(clicked) // 4 * 4
            for first in range(0, n_fours, 4):
                a, b = weights[clicked[first], begin:end], weights[clicked[first + 1], begin:end]
                c, d = (
                    weights[clicked[first + 2], begin:end],
                    weights[clicked[first + 3], begin:end],
                )
                for other in range(len(mine)):
                    mine[other] = mine[other] + a[other] + b[other] + c[other] + d[other]
            for item in clicked[n_fours:]:
                own = weights[item, begin:end]
                for other in range(len(mine)):
                    mine[other] += own[other]


@compiled
def add_sparse_rows(clicks, sparse, scores):
    """The same by rows that are sparse."""
    for row in range(len(scores)):
        mine = scores[row]
        for item in clicks_of(clicks, row):
            for place in range(sparse.starts[item], sparse.starts[item + 1]):
                mine[sparse.items[place]] += sparse.weights[place]


@compiled
def add_factor_rows(clicks, factors, scores):
    """The same by factors, four at a time: an item's click does not count for itself."""
    left, right, own = factors
    n_factors, n_items = right.shape
    n_fours = n_factors // 4 * 4
    vectors = np.zeros((len(scores), n_factors), dtype=left.dtype)
    for row in range(len(scores)):
        for item in clicks_of(clicks, row):
            vectors[row] += left[item]
    for begin in range(0, n_items, CHUNK):
        end = min(begin + CHUNK, n_items)
        for row in range(len(scores)):
            mine = scores[row, begin:end]
            for first in range(0, n_fours, 4):
                p, q = right[first, begin:end], right[first + 1, begin:end]
                r, s = right[first + 2, begin:end], right[first + 3, begin:end]
                a, b = vectors[row, first], vectors[row, first + 1]
                c, d = vectors[row, first + 2], vectors[row, first + 3]
                for place in range(len(mine)):
                    now = mine[place] + a * p[place] + b * q[place]
                    mine[place] = now + c * r[place] + d * s[place]
            for factor in range(n_fours, n_factors):
                share, part = vectors[row, factor], right[factor, begin:end]
                for place in range(len(mine)):
                    mine[place] += share * part[place]
    for row in range(len(scores)):
        for item in clicks_of(clicks, row):
            scores[row, item] -= own[item]


@compiled
def is_before(scores, ties, one, other):
    """Does an item come before another: by its score, or level with it by `ties`?"""
    if scores[one] != scores[other]:
        return scores[one] > scores[other]
    return ties[one] < ties[other]


@compiled
def sift_down(scores, ties, heap, size, place):
    """Let the item at a place of a heap, whose first is the last of all, sink to where it fits."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and is_before(scores, ties, heap[child], heap[child + 1]):
            child += 1
        if not is_before(scores, ties, heap[place], heap[child]):
            break
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@compiled
def has_as_much(scores, least):
    """Is there a score of `least` or more?"""
    number = np.int32(0)
    for item in range(len(scores)):  # counted to the end, which takes many at a time
        number = np.int32(number + np.int32(scores[item] >= least))
    return number > 0


@compiled
def fill_best(scores, ties, clicked, best):
    """Fill the items of the best scores, best first, that are not `clicked`; -1 if there are no
    more. Of equal scores the lower of `ties` is first."""
    room, size = len(best), 0
    for begin in range(0, len(scores), LOOK):
        end = min(begin + LOOK, len(scores))
        if size == room and not has_as_much(scores[begin:end], scores[best[0]]):
            continue
        for item in range(begin, end):
            if size == room:
                if scores[item] < scores[best[0]] or clicked[item]:
                    continue
                if is_before(scores, ties, item, best[0]):
                    best[0] = item
                    sift_down(scores, ties, best, size, 0)
            elif not clicked[item]:
                best[size] = item
                size += 1
                if size == room:
                    for place in range(size // 2 - 1, -1, -1):
                        sift_down(scores, ties, best, size, place)
    if size < room:
        best[size:] = -1
        for place in range(size // 2 - 1, -1, -1):
            sift_down(scores, ties, best, size, place)
    for last in range(size - 1, 0, -1):
        best[0], best[last] = best[last], best[0]
        sift_down(scores, ties, best, last, 0)


@compiled
def rank_of(scores, ties, item):
    """The rank of an item by these scores."""
    n_above, n_level, score, tie = np.int32(0), np.int32(0), scores[item], ties[item]
    for other in range(len(scores)):  # in numbers as short as the scores, for many at a time
        n_above = np.int32(n_above + np.int32(scores[other] > score))
        n_level = np.int32(n_level + np.int32(scores[other] == score))
    if n_level > 1:
        for other in range(len(scores)):
            is_before_it = (scores[other] == score) & (ties[other] < tie)
            n_above = np.int32(n_above + np.int32(is_before_it))
    return n_above + 1


@compiled
def fill_tops(clicks, scores, ties, best):
    """Fill `best[row]`: the best items that the row has not clicked, best first."""
    clicked = np.zeros(scores.shape[1], dtype=np.bool_)
    for row in range(len(scores)):
        mine = clicks_of(clicks, row)
        for item in mine:
            clicked[item] = True
        fill_best(scores[row], ties, clicked, best[row])
        for item in mine:
            clicked[item] = False


@compiled
def rank_clicks(clicks, scores, ties, ranks):
    """Fill `ranks`, one place for each click: the rank of the item in the order of all."""
    place = 0
    for row in range(len(scores)):
        for item in clicks_of(clicks, row):
            ranks[place] = rank_of(scores[row], ties, item)
            place += 1


@compiled
def fill_rankings(values, order, ties, rankings):
    """Fill `rankings[row, ties[number]]`, from 1: the numbers by `values[row, number]`, least
    first, of equal ones the lower number first. `order[row]` has them in order, but for ties."""
    n_items = values.shape[1]
    begins, sizes = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    for row in range(len(values)):
        begin = 0  # where those begin that are equal to the one at this place
        for place in range(n_items):
            number = order[row, place]
            if values[row, number] != values[row, order[row, begin]]:
                begin = place
            begins[number] = begin
        sizes[:] = 0
        for number in range(n_items):
            sizes[begins[number]] += 1
            rankings[row, ties[number]] = begins[number] + sizes[begins[number]]
