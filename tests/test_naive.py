"""The definitions themselves, by what is known of them."""

import itertools
import math

import pytest

import naive

RANKINGS = naive.all_rankings(4)


@pytest.mark.parametrize(
    ("distance", "farthest"),
    [("footrule", 8), ("spearman", 20), ("hamming", 4), ("kendall", 6), ("cayley", 3), ("ulam", 3)],
)
def test_a_distance_is_one_and_does_not_see_names(distance, farthest):
    between = naive.DISTANCES[distance]
    found = {(r, s): between(r, s) for r in RANKINGS for s in RANKINGS}
    assert max(found.values()) == farthest
    for (r, s), value in found.items():
        assert value == found[s, r]
        assert (value == 0) == (r == s)
        items = (2, 0, 3, 1)  # the same items, in another order
        assert value == found[tuple(r[i] for i in items), tuple(s[i] for i in items)]


def test_cayley_counts_cycles_and_ulam_the_longest_rise():
    start = (1, 2, 3, 4)
    for r in RANKINGS:
        cycles = {min(_cycle(r, item)) for item in range(4)}
        assert naive.cayley(r, start) == 4 - len(cycles)
        rises = [
            len(part)
            for size in range(1, 5)
            for part in itertools.combinations(r, size)
            if list(part) == sorted(part)
        ]
        assert naive.ulam(r, start) == 4 - max(rises)


def _cycle(ranking, item):
    seen = []
    while item not in seen:
        seen.append(item)
        item = ranking[item] - 1
    return seen


def test_blocks_and_pairs_share_out_all_rankings():
    assert sorted(naive.completions([1, 2, 2, 0])) == [(1, 2, 3, 4), (1, 3, 2, 4)]
    assert len(naive.completions([2, 2, 0, 0])) == 4
    both = [
        naive.pair_likelihood([pair], (1, 2, 3, 4), 2.0, "kendall") for pair in ((0, 3), (3, 0))
    ]
    assert math.fsum(both) == pytest.approx(1)
    assert both[0] > both[1]
