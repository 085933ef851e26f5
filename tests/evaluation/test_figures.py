"""Figures of recommendations against their definitions."""

import math

import numpy as np
import pytest
from scipy import stats

import pseudomallows as pm
from pseudomallows.evaluation.figures import Calibration, hits_of, scores_of


def by_definition(items, right):
    """Accuracy, recall, NDCG and MRR of one list."""
    hits = [item in right for item in items]
    dcg = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(right), len(items))))
    first = next((1 / (place + 1) for place, hit in enumerate(hits) if hit), 0.0)
    return [sum(hits) / len(items), sum(hits) / len(right), dcg / ideal, first]


def test_figures_are_those_of_their_definitions():
    rng = np.random.default_rng(1)
    clicked = rng.random((40, 12)) < 0.3
    clicked[:, 0] = True  # everybody has something
    right = pm.Preferences.from_clicks(clicked)
    items = np.array([rng.permutation(12)[:5] for _ in range(40)])
    items[3, 3:] = -1
    rows = [
        by_definition(items[row].tolist(), set(right.clicks_of(row).tolist())) for row in range(40)
    ]
    found = scores_of(items, right)
    for figure, values in zip(
        (found.accuracy, found.recall, found.ndcg, found.mrr), np.array(rows).T, strict=True
    ):
        assert figure.value == pytest.approx(values.mean())
        assert figure.error == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    assert np.isnan(hits_of(items, right)[3]).tolist() == [False] * 3 + [True] * 2


def test_coverage_and_its_error_by_leaving_out_one_user_at_a_time():
    items = np.array([[0, 1], [0, 2], [0, 1], [3, -1]])
    found = scores_of(items, pm.Preferences.from_clicks(np.ones((4, 8)))).coverage
    assert found.value == 4 / 8
    left = [len({i for i in np.delete(items, row, 0).ravel() if i >= 0}) / 8 for row in range(4)]
    assert found.error == pytest.approx(math.sqrt(3 / 4 * ((left - np.mean(left)) ** 2).sum()))


def coverage(share, count, errors):
    """The probability that an interval around the observed share holds the true one."""
    hits = np.arange(count + 1)
    holds = np.abs(hits / count - share) <= errors
    return stats.binom.pmf(hits, count, share)[holds].sum()


@pytest.mark.parametrize("count", [1, 2, 5, 30, 400])
def test_the_bars_of_a_calibration_hold_the_true_share(count):
    observed = np.arange(count + 1) / count
    table = Calibration(observed, observed, np.full(count + 1, count))
    errors = np.array([error for _, _, error, _ in table.points()])
    plain = 2 * np.sqrt(observed * (1 - observed) / count)  # says that all or none are certain
    shares = np.linspace(0.02, 0.98, 49)
    means = [
        np.mean([coverage(share, count, each) for share in shares]) for each in (errors, plain)
    ]
    assert means[0] > 0.95
    assert means[1] < 0.95
    assert errors.max() < 4 / math.sqrt(count)
