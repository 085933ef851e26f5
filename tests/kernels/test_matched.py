"""The conditional Bernoulli law: its inclusion probabilities, by enumeration of all sets."""

import itertools
import math

import numpy as np
import pytest

import naive
from helpers import interpreted
from pseudomallows.kernels import matched as kernels
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.footrule.inclusion import inclusion_logits, tagged_walk
from pseudomallows.kernels.streams import Streams

CASES = [(2, 1), (3, 1), (3, 2), (4, 2), (5, 1), (6, 3), (7, 2), (7, 6)]


def wanted_logits(n_items, alpha, size):
    logits = np.empty(n_items)
    inclusion_logits(tagged_walk(n_items, alpha / n_items), size, logits)
    return logits


def match(wanted, size, match_weights=kernels.match_weights):
    """Log weights that give these log odds, and the error that is left."""
    log_weights = wanted.copy()
    log_binomial = math.log(math.comb(len(wanted), size))
    return log_weights, match_weights(wanted, size, log_binomial, log_weights)


def matched(n_items, alpha, size):
    log_weights, worst = match(wanted_logits(n_items, alpha, size), size)
    assert worst < 1e-9
    return log_weights


def log_sets(log_weights, size):
    """{set: log of its weight}."""
    n_items = len(log_weights)
    sets = itertools.combinations(range(n_items), size)
    return {each: math.fsum(log_weights[list(each)]) for each in sets}


def logits_by_enumeration(log_weights, size):
    """Log odds of each item to be drawn."""
    logs = log_sets(log_weights, size)
    return np.array(
        [
            np.logaddexp.reduce([log for each, log in logs.items() if item in each])
            - np.logaddexp.reduce([log for each, log in logs.items() if item not in each])
            for item in range(len(log_weights))
        ]
    )


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0, 15.0])
@pytest.mark.parametrize(("n_items", "size"), CASES)
def test_items_are_drawn_as_often_as_under_the_exact_law(n_items, size, alpha):
    log_weights = matched(n_items, alpha, size)
    wanted = wanted_logits(n_items, alpha, size)
    assert logits_by_enumeration(log_weights, size) == pytest.approx(wanted, abs=1e-9)
    exact = [0.0] * n_items  # by the definition of the model, item by item
    for ranking, probability in naive.mallows(range(1, n_items + 1), alpha).items():
        for item in range(n_items):
            exact[item] += probability * (ranking[item] <= size)
    probabilities = 1 / (1 + np.exp(-logits_by_enumeration(log_weights, size)))
    assert probabilities == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(("n_items", "size"), [(4, 2), (5, 1), (6, 3), (7, 2)])
def test_log_odds_as_weights_would_draw_them_too_often_or_too_rarely(n_items, size):
    wanted = wanted_logits(n_items, 3.0, size)
    assert np.abs(logits_by_enumeration(wanted, size) - wanted).max() > 0.1


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0, 15.0])
@pytest.mark.parametrize(("n_items", "size"), CASES)
def test_the_weights_of_all_sets_sum_to_their_number(n_items, size, alpha):
    total = np.logaddexp.reduce(list(log_sets(matched(n_items, alpha, size), size).values()))
    assert total == pytest.approx(math.log(math.comb(n_items, size)), abs=1e-12)


@pytest.mark.parametrize("rate", [0.1, 1.0, 11.0])
@pytest.mark.parametrize(("n_items", "size"), [*CASES, (50, 7), (51, 25)])
def test_the_items_left_out_follow_the_mirrored_law(n_items, size, rate):
    alpha = rate * n_items
    one, other = matched(n_items, alpha, size), matched(n_items, alpha, n_items - size)
    sums = one + other[::-1]
    assert sums == pytest.approx(np.full(n_items, sums.mean()), abs=1e-9)


@pytest.mark.parametrize(("n_items", "size"), [*CASES, (50, 7), (1000, 500)])
def test_users_without_agreement_have_equal_weights(n_items, size):
    assert matched(n_items, 0.0, size) == pytest.approx(np.zeros(n_items), abs=1e-9)


@pytest.mark.kernel
@pytest.mark.parametrize("odds", [0.01, 1.0, 30.0])
def test_two_items_have_half_of_their_log_odds(odds):
    """Plain iteration, without its damping, would go to and fro for ever."""
    log_weights, worst = match(np.array([odds, -odds]), 1)
    assert worst < 1e-9
    assert log_weights[0] - log_weights[1] == pytest.approx(odds)
    assert np.logaddexp(*log_weights) == pytest.approx(math.log(2))


def test_no_matching_is_left_undone():
    """To alpha / n_items of 11: no table is made beyond."""
    for n_items in (2, 3, 10, 50, 200, 1000):
        for rate in (1e-5, 1e-3, 0.1, 1.0, 4.0, 8.0, 11.0):
            for size in sorted({1, max(1, n_items // 3), n_items // 2, n_items - 1}):
                log_weights = matched(n_items, rate * n_items, size)
                assert np.isfinite(log_weights).all()
                assert (np.diff(log_weights) < 0).all()


@pytest.mark.kernel
def test_the_matching_equals_the_interpreted_one():
    """The interpreted kernel calls compiled ones; the suite runs without any compilation too."""
    wanted = wanted_logits(9, 4.0, 3)
    compiled, plain = match(wanted, 3), match(wanted, 3, interpreted(kernels.match_weights))
    assert compiled[0] == pytest.approx(plain[0], abs=1e-12)


@pytest.mark.kernel
def test_the_probabilities_sum_to_the_size_wherever_the_search_begins():
    log_weights, probabilities = np.array([40.0, 3.0, 0.0, -2.0, -50.0]), np.empty(5)
    thetas = []
    for guess in (-1e4, 0.0, 1e4):
        thetas.append(kernels.fill_probabilities(log_weights, 2, guess, probabilities))
        assert probabilities.sum() == pytest.approx(2, abs=1e-8)
        assert probabilities == pytest.approx(1 / (1 + np.exp(-log_weights - thetas[-1])))
    assert thetas == pytest.approx([thetas[0]] * 3, abs=1e-6)


# sums over users


CLICKS = [[0, 2], [1], [2, 3], [2], [0, 1, 3]]
ROWS = ClickRows(
    np.cumsum([0, *map(len, CLICKS)]), np.array(list(itertools.chain(*CLICKS)), dtype=np.int32)
)
PLACES = np.array([len(clicks) - 1 for clicks in CLICKS])
LABELS, WEIGHTS = np.array([0, 1, 1, 0, 1], dtype=np.int32), np.array([1, 4, 2, 1, 3])


def counts_by_definition():
    counts = np.zeros((2, 3, 4), dtype=np.int64)
    for clicks, label, weight in zip(CLICKS, LABELS, WEIGHTS, strict=True):
        for item in clicks:
            counts[label, len(clicks) - 1, item] += weight
    return counts


@pytest.mark.kernel
def test_clicks_are_counted_by_label_and_size():
    counts = np.zeros((2, 3, 4), dtype=np.int64)
    kernels.count_clicks(ROWS, PLACES, LABELS, WEIGHTS, counts)
    assert (counts == counts_by_definition()).all()


@pytest.mark.kernel
def test_costs_and_sums_are_those_of_the_clicks():
    table = np.random.default_rng(1).normal(size=(3, 4))
    consensus, counts = np.array([3, 1, 4, 2], dtype=np.int32), counts_by_definition()[1]
    users = [
        (clicks, weight)
        for clicks, label, weight in zip(CLICKS, LABELS, WEIGHTS, strict=True)
        if label == 1
    ]
    total = sum(
        weight * table[len(clicks) - 1, consensus[item] - 1]
        for clicks, weight in users
        for item in clicks
    )
    cells = np.empty((np.count_nonzero(counts), 3), dtype=np.int64)
    assert kernels.list_cells(counts, cells) == len(cells)
    rebuilt = np.zeros_like(counts)
    rebuilt[cells[:, 0], cells[:, 1]] = cells[:, 2]
    assert (rebuilt == counts).all()
    assert kernels.sum_weights(cells, consensus, table) == pytest.approx(total)
    costs = np.full((4, 4), np.nan)
    kernels.fill_costs(cells, table, costs)
    assert costs[np.arange(4), consensus - 1].sum() == pytest.approx(-total)


@pytest.mark.kernel
def test_the_logs_of_a_row_are_those_of_its_clicks():
    log_weights = np.random.default_rng(1).normal(size=(3, 4, 2))
    logs = np.zeros((5, 2))
    kernels.fill_logs(ROWS, PLACES, log_weights, logs)
    for row, clicks in enumerate(CLICKS):
        assert logs[row] == pytest.approx(log_weights[len(clicks) - 1, clicks].sum(axis=0))


@pytest.mark.kernel
def test_the_log_weights_of_a_cluster_are_those_of_the_ranks_of_its_items():
    tables = np.random.default_rng(1).normal(size=(2, 3, 4))
    consensus, log_weights = np.array([3, 1, 4, 2], dtype=np.int32), np.full((3, 4, 2), np.nan)
    total = np.zeros((3, 4))
    for table, factor in zip(tables, (0.25, -2.0), strict=True):
        kernels.add_table(table, factor, total)
    assert total == pytest.approx(0.25 * tables[0] - 2.0 * tables[1])
    kernels.fill_matched_weights(total, consensus, 1, log_weights)
    assert (log_weights[:, :, 1] == total[:, consensus - 1]).all()
    assert np.isnan(log_weights[:, :, 0]).all()


def drawn_shares(probabilities, n_rows=4000):
    streams = Streams(7, 3, np.arange(n_rows), np.ones(n_rows, dtype=np.int64))
    logs = np.tile(np.log(probabilities) - 800.0, (n_rows, 1))  # nothing underflows
    labels = np.empty(n_rows, np.int32)
    kernels.draw_matched_labels(streams, logs, labels)
    return np.bincount(labels) / n_rows


@pytest.mark.kernel
def test_labels_are_drawn_by_their_logs():
    probabilities, error = np.array([0.1, 0.6, 0.3]), 4 * math.sqrt(0.25 / 4000)
    assert drawn_shares(probabilities) == pytest.approx(probabilities, abs=error)
    assert np.abs(drawn_shares([0.16, 0.54, 0.3]) - probabilities).max() > error


@pytest.mark.kernel
def test_a_label_without_any_probability_is_never_drawn():
    logs = np.tile([-1e300, 0.0, -1e300], (50, 1))
    streams = Streams(7, 3, np.arange(50), np.ones(50, dtype=np.int64))
    labels = np.empty(50, np.int32)
    kernels.draw_matched_labels(streams, logs, labels)
    assert (labels == 1).all()


@pytest.mark.kernel
def test_memberships_are_the_parts_of_the_sum_of_a_row():
    logs = np.array([[-3.0, -2.0, -800.0], [-1e5, -1e5 - 1, -np.inf], [700.0, 701.0, 702.0]])
    log_sums, memberships = np.empty(3), np.empty((3, 3), dtype=np.float32)
    kernels.weigh_logs(logs, log_sums, memberships)
    assert log_sums == pytest.approx(np.logaddexp.reduce(logs, axis=1), rel=1e-14)
    exact = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    assert memberships == pytest.approx(exact, rel=1e-6)
    plain, parts = np.empty(3), np.empty((3, 3), dtype=np.float32)
    interpreted(kernels.weigh_logs)(logs, plain, parts)
    assert (plain == log_sums).all()
    assert (parts == memberships).all()


def test_costs_are_rounded_and_none_is_below_0():
    costs = np.random.default_rng(1).normal(size=(5, 7)) * 10
    expected = np.rint((costs - costs.min(axis=1, keepdims=True)) * 64) / 64
    kernels.round_costs(64.0, costs)
    assert np.array_equal(costs, expected)


@pytest.mark.parametrize("kind", [np.float64, np.int32])
def test_scores_are_sums_over_the_cells(kind):
    rng = np.random.default_rng(1)
    counts, weights = rng.integers(0, 3, 40), rng.integers(1, 9, (40, 4)).astype(kind)
    scores = np.ones(4)
    kernels.add_scores(counts, weights, scores)
    assert np.array_equal(scores, 1 + counts @ weights)
