import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.scores import share_of_ranks


def test_shares_add_up():
    draws = pm.Mallows(np.arange(1, 9), 2).draw(100, rng=1)
    shares = share_of_ranks(draws)
    assert shares.sum(axis=0) == pytest.approx(np.ones(8))
    assert shares[2, 3] == (draws[:, 2] == 4).mean()


def test_footrule_compares_row_by_row():
    assert pm.footrule([[1, 2, 3], [3, 2, 1]], [[1, 2, 3], [1, 2, 3]]).tolist() == [0, 4]
    assert pm.footrule([1, 2, 3], [2, 3, 1]) == 4


def test_equal_weights_are_worth_all_draws():
    assert pm.scores.weighted_effective_size(np.full(50, 0.02)) == pytest.approx(50)
