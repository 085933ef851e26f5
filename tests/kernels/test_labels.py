"""Labels of users, drawn and accepted, and their memberships."""

import numpy as np
import pytest
from scipy import stats

from helpers import interpreted
from pseudomallows.kernels import labels as kernels
from pseudomallows.kernels.streams import Streams, start_user, uniform
from pseudomallows.laws.law import weigh_logs

pytestmark = pytest.mark.kernel
PROBABILITIES = np.array([0.1, 0.6, 0.3])


def streams_of(n_rows):
    return Streams(7, 3, np.arange(n_rows), np.ones(n_rows, dtype=np.int64))


def p_value_of_labels(probabilities, n_rows=4000):
    """Of labels drawn by these, against `PROBABILITIES`."""
    logs = np.tile(np.log(probabilities) - 800.0, (n_rows, 1))  # nothing underflows
    labels = np.empty(n_rows, np.int32)
    kernels.draw_labels(streams_of(n_rows), logs, labels)
    return stats.chisquare(np.bincount(labels, minlength=3), n_rows * PROBABILITIES).pvalue


def test_labels_are_drawn_by_their_logs():
    assert p_value_of_labels(PROBABILITIES) > 1e-4
    assert p_value_of_labels([0.16, 0.54, 0.3]) < 1e-10


def test_a_label_without_any_probability_is_never_drawn():
    logs = np.tile([-1e300, 0.0, -np.inf], (50, 1))
    labels = np.empty(50, np.int32)
    kernels.draw_labels(streams_of(50), logs, labels)
    assert (labels == 1).all()


def test_compiled_and_interpreted_labels_are_equal():
    logs = 3 * np.random.default_rng(1).normal(size=(60, 4))
    labels, accepted = np.empty((2, 60), np.int32), np.empty((2, 60), np.bool_)
    for kernel, mine in zip(
        (kernels.draw_labels, interpreted(kernels.draw_labels)), labels, strict=True
    ):
        kernel(streams_of(60), logs, mine)
    assert (labels[0] == labels[1]).all()
    accept = kernels.accept_labels
    for kernel, mine in zip((accept, interpreted(accept)), accepted, strict=True):
        kernel(streams_of(60), np.arange(60), logs[:, 0], mine)
    assert (accepted[0] == accepted[1]).all()
    assert 0 < accepted[0].sum() < 60


def test_labels_are_accepted_by_the_second_number_of_the_row():
    rows, log_ratios = np.array([5, 0, 17, 3]), np.log([0.5, 0.3, 0.9, 2.0])
    accepted, stream = np.empty(4, np.bool_), np.empty(1, dtype=np.uint64)
    kernels.accept_labels(streams_of(20), rows, log_ratios, accepted)
    for row, log_ratio, found in zip(rows, log_ratios, accepted, strict=True):
        start_user(streams_of(20), row, 0, stream)
        uniform(stream)  # by this one the label was drawn
        assert found == (log_ratio >= 0 or uniform(stream) < np.exp(log_ratio))


def test_labels_are_accepted_as_often_as_their_ratio_says():
    n_rows, accepted = 4000, np.empty(4000, np.bool_)
    kernels.accept_labels(streams_of(n_rows), np.arange(n_rows), np.full(n_rows, -0.7), accepted)
    exact = np.exp(-0.7)
    expected = [n_rows * exact, n_rows * (1 - exact)]
    found = [accepted.sum(), n_rows - accepted.sum()]
    assert stats.chisquare(found, expected).pvalue > 1e-4
    assert stats.chisquare(found, [0.57 * n_rows, 0.43 * n_rows]).pvalue < 1e-6


def test_memberships_are_the_parts_of_the_sum_of_a_row():
    logs = np.array([[-3.0, -2.0, -800.0], [-1e5, -1e5 - 1, -np.inf], [700.0, 701.0, 702.0]])
    log_sums, memberships = weigh_logs(logs)
    assert log_sums == pytest.approx(np.logaddexp.reduce(logs, axis=1), rel=1e-14)
    exact = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    assert memberships == pytest.approx(exact, rel=1e-6)
