"""A few more clicks: draws that weigh by what is new, against their definition and fits anew."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.sampling.reweigh import changed_rows
from pseudomallows.sampling.update import fit_again

N_ITEMS = 5


def table(n_users, seed=1):
    return pm.simulate_clicks(n_users, N_ITEMS, 6.0, 2, rng=seed).preferences


@pytest.fixture(scope="module", params=["footrule", "kendall"])
def old(request):
    return pm.fit(table(80), "mcmc", n_draws=120, rng=1, distance=request.param)


def probabilities(posterior, clicked):
    """``[chain, draw]``: probability of a user's clicks under each draw, by enumeration."""
    distance = posterior.settings["distance"]
    found = np.empty(posterior.weights.shape)
    for place in np.ndindex(found.shape):
        consensus, alpha = posterior.consensus[place][0].tolist(), posterior.alpha[place][0]
        found[place] = naive.click_likelihood(clicked, consensus, float(alpha), distance)
    return found


def test_draws_weigh_by_the_probabilities_of_what_is_new(old):
    row = old.clicks.clicks_of(3).tolist()
    extra = next(item for item in range(N_ITEMS) if item not in row)
    newer = old.update({"zoe": [1, 2], 3: [extra]}, rng=2)
    assert np.array_equal(newer.consensus, old.consensus)
    expected = (
        probabilities(old, {1, 2})
        * probabilities(old, {*row, extra})
        / probabilities(old, set(row))
    )
    assert newer.weights == pytest.approx(expected / expected.sum(), rel=1e-8)
    wrong = probabilities(old, {1, 2}) * probabilities(
        old, {*row, extra}
    )  # the old clicks counted twice
    assert newer.weights != pytest.approx(wrong / wrong.sum(), rel=1e-2)
    assert newer.settings["reweighed"]["effective_share"] > 0.5
    assert newer.settings["updates"] == 1
    assert newer.settings["n_users"] == old.settings["n_users"] + 1
    assert newer.users.tolist()[-1] == "zoe"
    assert newer.log_posterior - old.log_posterior == pytest.approx(np.log(expected), abs=1e-7)


def test_weighed_draws_recommend_and_are_saved(old, tmp_path):
    newer = old.update({"zoe": [1, 2]}, rng=2)
    assert set(pm.recommend(newer, 2, users="zoe").items[0].tolist()) <= {0, 3, 4}
    newer.save(tmp_path / "newer.pm")
    assert np.array_equal(pm.load(tmp_path / "newer.pm").weights, newer.weights)
    best = int(old.best[0].argmin())
    twice = newer.update({"yan": [best]}, rng=3)
    expected = newer.weights * probabilities(old, {best})
    assert twice.weights == pytest.approx(expected / expected.sum(), rel=1e-8)
    assert twice.settings["updates"] == 2


def test_clicks_that_are_no_more_weigh_the_other_way(old):
    newer = old.update({"zoe": [1, 2]}, rng=2)
    again = fit_again(newer, old.clicks.take(range(80)), rng=3)
    assert "reweighed" not in again.settings  # a user is gone: chains go on
    less = old.clicks.clicks_of(3)[:-1]
    clicks = {user: old.clicks.clicks_of(user).tolist() for user in range(80)} | {3: less.tolist()}
    fewer = pm.Preferences.from_clicks(clicks, items=range(N_ITEMS), users=range(80))
    found = fit_again(old, fewer, rng=3)
    row = set(old.clicks.clicks_of(3).tolist())
    expected = probabilities(old, set(less.tolist())) / probabilities(old, row)
    assert found.weights == pytest.approx(expected / expected.sum(), rel=1e-8)


def test_where_much_is_new_chains_go_on(old):
    assert "reweighed" not in old.update(table(110, seed=4), rng=2).settings
    assert "reweighed" not in old.update({"zoe": [1]}, n_draws=60, rng=2).settings
    strange = {f"new {user}": [4] for user in range(15)}  # who make the draws worth little
    newer = old.update(strange, rng=2)
    assert "reweighed" not in newer.settings
    assert not np.array_equal(newer.consensus, old.consensus)


def test_users_in_another_order_are_no_change_of_some():
    one = table(6)
    assert changed_rows(one, one.take([1, 0, 2, 3, 4, 5]))[0] is None
    assert [rows.tolist() for rows in changed_rows(one, one)] == [[], []]
