import itertools
import math

import numpy as np
import pytest
from scipy import optimize

import naive
import pseudomallows as pm
from pseudomallows.distances.tallies import best_assignment


@pytest.mark.parametrize("method", ["similarity", "likelihood"])
@pytest.mark.parametrize("value", [0.5, 3, 12])
def test_alpha_is_recovered_from_full_rankings(method, value):
    prefs = pm.simulate_rankings(4000, 15, value, rng=1).preferences
    assert pm.estimate_alpha(prefs, method, rng=1) == pytest.approx(value, rel=0.03, abs=0.05)


@pytest.mark.parametrize("value", [1.5, 6])
def test_alpha_is_recovered_from_partial_rankings(value):
    prefs = pm.simulate_rankings(2000, 15, value, top=5, rng=1).preferences
    assert pm.estimate_alpha(prefs, "likelihood", rng=1) == pytest.approx(value, rel=0.06)


def make_data(kind, n_users, n_items, value, rng):
    if kind == "clicks":
        return pm.simulate_clicks(n_users, n_items, value, 3, max_clicks=n_items - 1, rng=rng)
    top = 2 if kind == "top" else None
    return pm.simulate_rankings(n_users, n_items, value, top=top, rng=rng)


def joint_maximum(rankings):
    """The alpha of the highest likelihood over alpha and the consensus; full rankings."""
    costs = np.abs(rankings[:, :, None] - np.arange(1, rankings.shape[1] + 1)).sum(axis=0)
    return pm.maximum_likelihood_alpha(rankings, best_assignment(costs))


@pytest.mark.parametrize(
    ("kind", "n_users", "value"),
    [("full", 5, 1.5), ("full", 12, 0.5), ("clicks", 5, 1.5), ("clicks", 30, 4), ("top", 30, 4)],
)
def test_the_likelihood_of_alpha_is_summed_over_all_consensuses(kind, n_users, value):
    prefs = make_data(kind, n_users, 4, value, rng=n_users).preferences
    each = pm.click_log_likelihood if kind == "clicks" else pm.log_likelihood

    def height(alpha):
        logs = [each(prefs, consensus, alpha).sum() for consensus in naive.all_rankings(4)]
        return np.logaddexp.reduce(logs)

    best = highest(height, np.append(0, np.geomspace(0.1, 40, 10)))
    found = pm.estimate_alpha(prefs, "likelihood", rng=1)
    assert height(found) > height(best) - 0.02
    assert found < 1 or found == pytest.approx(best, rel=0.1)


def highest(height, grid):
    """Where a function is highest: at the best of a grid, then between its neighbours."""
    place = int(np.argmax([height(alpha) for alpha in grid]))
    bounds = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    options = {"xatol": 0.01 * bounds[1]}
    return optimize.minimize_scalar(
        lambda alpha: -height(alpha), bounds=bounds, method="bounded", options=options
    ).x


@pytest.mark.slow
def test_a_weak_signal_is_not_overstated():
    found, joint, similar = [], [], []
    for seed in range(30):
        data = pm.simulate_rankings(15, 8, 0.5, rng=seed)
        found.append(pm.estimate_alpha(data.preferences, "likelihood", rng=seed))
        similar.append(pm.estimate_alpha(data.preferences))
        joint.append(joint_maximum(data.rankings))
    error = np.std(found) / math.sqrt(30)
    assert abs(np.mean(found) - 0.5) < 2.5 * error
    assert np.mean(joint) - 0.5 > 4 * error  # the consensus that fits best fits the noise too
    zeros = [np.mean(np.array(values) == 0) for values in (found, similar)]
    assert abs(zeros[0] - zeros[1]) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clicks", "top"])
def test_a_weak_signal_of_partial_data_is_not_overstated(kind):
    found = [
        pm.estimate_alpha(make_data(kind, 60, 6, 0.5, rng=seed).preferences, "likelihood", rng=1)
        for seed in range(12)
    ]
    assert abs(np.mean(found) - 0.5) < 2.5 * np.std(found) / math.sqrt(12)


def test_the_same_seed_gives_the_same_alpha():
    for kind in ("full", "clicks", "top"):
        prefs = make_data(kind, 20, 6, 2, rng=1).preferences
        found = {pm.estimate_alpha(prefs, "likelihood", rng=3) for _ in range(2)}
        assert len(found) == 1


def test_weights_count_as_repeated_rows():
    rows, weights = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 4, 3, 2]], [3, 2, 1]
    for method in ("similarity", "likelihood"):
        weighted = pm.Preferences.from_rankings(rows, weights=weights)
        repeated = pm.Preferences.from_rankings(np.repeat(rows, weights, axis=0))
        assert pm.estimate_alpha(weighted, method, rng=1) == pytest.approx(
            pm.estimate_alpha(repeated, method, rng=1)
        )


def test_rankings_without_agreement_have_alpha_zero():
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [3, 2, 1]])
    assert pm.estimate_alpha(prefs) == 0


@pytest.mark.parametrize(
    "rows", [[[1, 2, 3]], [[1, 2, 3], [1, 2, 3]], [[1, 2, 0, 0], [1, 2, 0, 0]]]
)
def test_no_finite_alpha_is_said(rows):
    prefs = pm.Preferences.from_rankings(rows)
    with pytest.raises(ValueError, match="no finite alpha is best: give alpha"):
        pm.estimate_alpha(prefs, "likelihood")


def test_no_finite_alpha_is_said_exactly_where_some_consensus_suits_all_users():
    suited = []
    for seed in range(16):
        prefs = pm.simulate_clicks(15, 8, 12, 3, rng=seed).preferences
        clicks = sorted((set(prefs.clicks_of(user)) for user in range(15)), key=len)
        suited.append(all(few <= many for few, many in itertools.pairwise(clicks)))
        if suited[-1]:
            with pytest.raises(ValueError, match="no finite alpha is best"):
                pm.estimate_alpha(prefs, "likelihood", rng=seed)
        else:
            assert pm.estimate_alpha(prefs, "likelihood", rng=seed) < 100
    assert 3 < sum(suited) < 13


def test_one_user_has_no_similarity():
    with pytest.raises(ValueError, match="only one user"):
        pm.estimate_alpha(pm.Preferences.from_rankings([[1, 2, 3]]))


# clicks by Kendall's distance


def kendall_clicks(n_users, n_items, alpha, rng):
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha, distance="kendall").draw(n_users, rng)
    sizes = rng.integers(1, n_items // 2 + 1, n_users)
    return pm.Preferences.from_clicks(rankings <= sizes[:, None])


def test_the_alpha_of_clicks_by_kendall_is_that_of_the_summed_likelihood():
    prefs = kendall_clicks(12, 4, 4.0, np.random.default_rng(3))

    def value(alpha, distance="kendall"):
        every = map(np.array, naive.all_rankings(4))
        logs = [pm.log_likelihood(prefs, each, alpha, distance).sum() for each in every]
        return np.logaddexp.reduce(logs)

    best = highest(value, np.geomspace(0.5, 16, 6))
    found = pm.estimate_alpha(prefs, "likelihood", distance="kendall", rng=1)
    assert found == pytest.approx(best, rel=0.08)
    other = highest(lambda alpha: value(alpha, "footrule"), np.geomspace(0.5, 16, 6))
    assert found != pytest.approx(other, rel=0.12)  # the footrule's would be found out


@pytest.mark.parametrize("value", [10.0, 40.0])
def test_the_alpha_of_clicks_by_kendall_is_recovered(value):
    prefs = kendall_clicks(2000, 40, value, np.random.default_rng(4))
    found = pm.estimate_alpha(prefs, "likelihood", distance="kendall", rng=1)
    assert found == pytest.approx(value, rel=0.06)


def test_the_similarity_of_other_distances_says_what_to_give():
    prefs = kendall_clicks(20, 6, 5.0, np.random.default_rng(5))
    with pytest.raises(ValueError, match="distance='kendall' give method='likelihood'"):
        pm.estimate_alpha(prefs, distance="kendall")
