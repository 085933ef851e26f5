import math

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.distributions.scores import share_of_ranks
from pseudomallows.paper.search import rank_divergence


def test_the_divergence_follows_the_definition():
    left = np.array([[0.5, 0.5], [0.5, 0.5]])
    right = np.array([[0.9, 0.1], [0.1, 0.9]])
    exact = 2 * (0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))
    assert rank_divergence(left, right) == pytest.approx(exact)
    draws, reference = [[1, 2], [2, 1]], [[1, 2]] * 9 + [[2, 1]]
    assert pm.marginal_divergence(draws, reference) == pytest.approx(exact)
    assert pm.marginal_divergence([[1, 2], [2, 1]], reference, weights=[9, 1]) == pytest.approx(0)


def test_the_floor_is_the_same_on_both_sides():
    one, other = [[1, 2]], [[2, 1]]
    for floor in (1e-3, 1e-6):
        low, high = floor / (1 + floor), 1 / (1 + floor)
        exact = 2 * (high * math.log(high / low) + low * math.log(low / high))
        assert pm.marginal_divergence(one, other, floor=floor) == pytest.approx(exact)
        assert pm.marginal_divergence(other, one, floor=floor) == pytest.approx(exact)


def test_shares_add_up():
    draws = pm.Mallows(np.arange(1, 9), 2).draw(100, rng=1)
    shares = share_of_ranks(draws)
    assert shares.sum(axis=0) == pytest.approx(np.ones(8))
    assert shares[2, 3] == (draws[:, 2] == 4).mean()


def test_footrule_compares_row_by_row():
    assert pm.footrule([[1, 2, 3], [3, 2, 1]], [[1, 2, 3], [1, 2, 3]]).tolist() == [0, 4]
    assert pm.footrule([1, 2, 3], [2, 3, 1]) == 4
