"""Recommendations from draws of the exact posterior: which draws count, and how many it takes."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.posterior.posterior import Posterior
from pseudomallows.recommendations.average import spread

N_ITEMS = 4
RANKINGS = list(itertools.permutations(range(1, N_ITEMS + 1)))


def posterior_of(draws, alphas, shares, rows=((0,), (1,)), weights=None):
    """A posterior with these draws: ``draws[chain][draw][cluster]`` is a ranking."""
    draws, alphas, shares = np.array(draws, np.int32), np.array(alphas), np.array(shares)
    n_chains, n_draws, n_clusters, n_items = draws.shape
    clicks = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(n_items))
    return Posterior(
        consensus=draws,
        alpha=alphas,
        weights=np.full((n_chains, n_draws), 1 / (n_chains * n_draws))
        if weights is None
        else weights,
        log_posterior=np.zeros((n_chains, n_draws)),
        best=draws[0, 0].astype(np.int32),
        items=np.arange(n_items),
        settings={"method": "mcmc", "options": {"order": None}},
        data=clicks,
        users=clicks.users,
        shares=shares,
        chain_memberships=np.full((n_chains, len(rows), n_clusters), 1 / n_clusters, np.float32),
    )


def next_probabilities(clicked, consensus, alpha, window):
    """Probability of each item to be among the next, by enumeration."""
    law = naive.mallows(consensus, alpha)
    law = {r: p for r, p in law.items() if all(r[i] <= len(clicked) for i in clicked)}
    probabilities = np.zeros(len(consensus))
    for ranking, probability in naive.normalise(law).items():
        for item, rank in enumerate(ranking):
            probabilities[item] += probability * (len(clicked) < rank <= len(clicked) + window)
    return probabilities


def some_draws(n_chains, n_draws, n_clusters, seed):
    rng = np.random.default_rng(seed)
    draws = [
        [[RANKINGS[rng.integers(24)] for _ in range(n_clusters)] for _ in range(n_draws)]
        for _ in range(n_chains)
    ]
    shape = (n_chains, n_draws)
    shares = rng.dirichlet(np.ones(n_clusters), shape)
    return draws, rng.uniform(1, 8, (*shape, n_clusters)), shares


def weights_by_definition(clicked, draws, alphas, shares, is_new, draw_weights=1.0):
    """``[chain, draw, cluster]``: how much each consensus counts for a user."""
    weights = np.empty(alphas.shape)
    for place in np.ndindex(alphas.shape):
        chain, draw, cluster = place
        likelihood = naive.click_likelihood(clicked, draws[chain][draw][cluster], alphas[place])
        weights[place] = shares[place] * likelihood
    if not is_new:
        weights /= weights.sum(axis=2, keepdims=True)
    weights *= draw_weights
    return weights / weights.sum()


def table_of(found):
    table = np.zeros(N_ITEMS)
    known = found.items[0] >= 0
    table[found.items[0, known]] = found.probabilities[0, known]
    return table


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("clicked", [(0,), (3, 1), ()])
def test_draws_count_by_the_clicks_of_a_new_user(clicked, n_clusters, is_new):
    """36 draws of unequal weight, one of none: more than one round."""
    draws, alphas, shares = some_draws(3, 12, n_clusters, seed=1)
    of_draws = np.random.default_rng(2).dirichlet(np.ones(36)).reshape(3, 12)
    of_draws[1, 4] = 0.0
    posterior = posterior_of(draws, alphas, shares, (clicked, (1,)), of_draws / of_draws.sum())
    how = (is_new, of_draws[:, :, None])
    weights = weights_by_definition(clicked, draws, alphas, shares, *how)
    expected = sum(
        weight * next_probabilities(clicked, draws[place[0]][place[1]][place[2]], alphas[place], 2)
        for place, weight in np.ndenumerate(weights)
    )
    who = {"clicks": {"new": list(clicked)}} if is_new else {"users": [0]}
    found = table_of(pm.recommend(posterior, 4, window=2, max_error=0, **who))
    for item in set(range(N_ITEMS)) - set(clicked):
        assert found[item] == pytest.approx(expected[item], abs=1e-9)
    if is_new:
        members = weights.sum(axis=(0, 1))
        found = pm.recommendations.memberships(posterior, {"new": list(clicked)})[0]
        assert found == pytest.approx(members, abs=1e-2)


def test_equal_weights_would_be_wrong():
    """The twin: on these draws the plain mean is far from what the clicks say."""
    draws, alphas, shares = some_draws(3, 12, 1, seed=1)
    weights = weights_by_definition((0,), draws, alphas, shares, is_new=True)
    plain, right = np.zeros(N_ITEMS), np.zeros(N_ITEMS)
    for place, weight in np.ndenumerate(weights):
        probabilities = next_probabilities(
            (0,), draws[place[0]][place[1]][place[2]], alphas[place], 2
        )
        plain += probabilities / weights.size
        right += weight * probabilities
    assert np.abs(plain - right)[1:].max() > 0.03


def test_a_new_user_gets_what_a_fit_with_that_user_says():
    """By enumeration: four users, one more whose clicks contradict them."""
    rows, alpha, clicked = [[0], [0, 1], [1], [0, 2]], 3.0, [3]

    def law_of(users):
        values = {
            r: np.prod([naive.click_likelihood(u, r, alpha) for u in users]) for r in RANKINGS
        }
        return naive.normalise(values)

    expected = sum(
        p * next_probabilities(clicked, r, alpha, 1) for r, p in law_of([*rows, clicked]).items()
    )
    plain = sum(p * next_probabilities(clicked, r, alpha, 1) for r, p in law_of(rows).items())
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(N_ITEMS))
    posterior = pm.fit(prefs, "mcmc", alpha, n_draws=4000, rng=1)
    answer = pm.recommend(posterior, 3, window=1, clicks={"new": clicked}, max_error=0)
    found, unseen = table_of(answer), [0, 1, 2]
    assert np.abs(found - expected)[unseen].max() < 0.01
    assert np.abs(plain - expected)[unseen].max() > 0.02  # what equal weights would say
    z = (found - expected)[answer.items[0, :3]] / answer.errors[0]
    assert np.abs(z).max() < 4


@pytest.mark.slow
def test_errors_are_those_of_fits_with_other_seeds():
    """Many fits: their spread is what each of them states, and it falls with the draws."""
    prefs = pm.Preferences.from_clicks({0: [0], 1: [0, 1], 2: [1], 3: [3]}, items=range(N_ITEMS))
    stated = []
    for n_draws in (50, 800):
        found, errors = [], []
        for seed in range(40):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
                posterior = pm.fit(prefs, "mcmc", 3.0, n_draws=n_draws, n_chains=2, rng=seed)
            answer = pm.recommend(posterior, 4, window=1, users=[0], max_error=0)
            order = np.argsort(answer.items[0, :3])
            found.append(answer.probabilities[0, order])
            errors.append(answer.errors[0, order])
        spread_of_fits = np.std(found, axis=0)
        typical = np.sqrt(np.mean(np.square(errors), axis=0))
        assert (np.abs(np.log(typical / spread_of_fits)) < np.log(1.7)).all()
        stated.append(typical.max())
    assert stated[1] < stated[0] / 2


def far_draws(alphas, n_items=60):
    """One draw agrees with the clicks on the last items, the others are its reverse."""
    there, back = np.arange(1, n_items + 1), np.arange(n_items, 0, -1)
    draws = np.tile(there, (1, len(alphas), 1, 1))
    draws[0, 1, 0] = back  # not in the first round, see `spread`
    shares = np.ones((1, len(alphas), 1))
    return posterior_of(draws, np.array(alphas)[None, :, None], shares), np.arange(45, 60)


def test_a_draw_that_suits_a_user_far_better_than_all_before_counts_alone():
    """By more than any number has room for."""
    posterior, clicked = far_draws([60.0 * 60] * 64)
    found = pm.recommend(posterior, 3, clicks={"new": clicked.tolist()}, max_error=0)
    assert sorted(found.items[0].tolist()) == [42, 43, 44]
    assert found.probabilities[0] == pytest.approx([1.0] * 3)


def test_an_error_is_not_small_because_one_draw_carries_all_the_weight():
    posterior, clicked = far_draws([20.0] * 64)
    found = pm.recommend(posterior, 3, clicks={"new": clicked.tolist()}, max_error=0)
    probabilities = found.probabilities[0]
    assert found.errors[0] == pytest.approx(np.sqrt(probabilities * (1 - probabilities)), rel=0.05)
    known = pm.recommend(posterior, 3, users=[0])
    assert (known.errors < 0.1).all()


@pytest.mark.parametrize("given", [{"users": [0]}, {"clicks": {"new": [0]}}])
def test_draws_without_weight_say_nothing(given):
    """All the weight is in a draw that is not in the first round."""
    draws, alphas, shares = some_draws(1, 64, 1, seed=3)
    weights = np.zeros((1, 64))
    weights[0, 1] = 1.0
    posterior = posterior_of(draws, alphas, shares, weights=weights)
    found = table_of(pm.recommend(posterior, 4, window=2, **given))
    expected = next_probabilities((0,), draws[0][1][0], alphas[0, 1, 0], 2)
    assert found[1:] == pytest.approx(expected[1:])


def test_an_empty_cluster_has_no_members():
    there, back = np.arange(1, 61), np.arange(60, 0, -1)
    draws, shares = np.array([[[there, back]] * 2]), np.array([[[1.0, 0.0]] * 2])
    posterior = posterior_of(draws, np.full((1, 2, 2), 3600.0), shares)
    clicked = list(range(45, 60))
    assert pm.recommendations.memberships(posterior, {"new": clicked})[0].tolist() == [1.0, 0.0]
    found = pm.recommend(posterior, 3, clicks={"new": clicked})
    assert found.items[0].tolist() == [0, 1, 2]


def test_draws_are_taken_until_the_error_is_small():
    prefs = pm.simulate_clicks(60, 8, 4, 3, rng=1).preferences
    posterior = pm.fit(prefs, "mcmc", 4.0, n_draws=2000, rng=1)
    rough, fine, all_draws = (
        pm.recommend(posterior, 3, max_error=error) for error in (0.03, 0.005, 0)
    )
    assert np.nanmax(rough.errors) <= 0.03
    assert np.nanmax(fine.errors) <= 0.005
    assert np.nanmean(all_draws.errors) < np.nanmean(fine.errors) < np.nanmean(rough.errors)
    far = np.abs(fine.probabilities.sum(axis=1) - all_draws.probabilities.sum(axis=1))
    assert far.max() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1, 3, 5, 10])
def test_stated_probabilities_come_true(alpha):
    """Calibration on simulated clicks, with the true next three of each user."""
    data = pm.simulate_clicks(500, 50, alpha, 5, rng=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        posterior = pm.fit(data.preferences, "mcmc", n_draws=100, n_chains=2, warmup=100, rng=1)
    found = pm.recommend(posterior, 3)
    n_clicks = data.preferences.n_clicks[:, None]
    ranks = np.take_along_axis(data.rankings, found.items, axis=1)
    hits = ((ranks > n_clicks) & (ranks <= n_clicks + 3)).ravel()
    stated = found.probabilities.ravel()
    bins = np.minimum((10 * stated).astype(int), 9)
    gaps = np.bincount(bins, weights=stated - hits, minlength=10)
    assert np.abs(gaps).sum() / len(stated) <= 0.02
    wrong = np.bincount(bins, weights=np.minimum(1.25 * stated, 1) - hits, minlength=10)
    assert np.abs(wrong).sum() / len(stated) > 0.02  # the twin: a quarter too much


def test_one_user_gets_the_bits_of_many():
    data = pm.simulate_clicks(40, 8, [4, 6], 3, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(data.preferences, "mcmc", n_clusters=2, n_draws=60, rng=1)
    for given in ({"clicks": data.preferences}, {}):
        together = pm.recommend(posterior, 3, **given)
        for row in (0, 17, 39):
            alone = (
                {"clicks": data.preferences.take([row])}
                if given
                else {"users": data.preferences.users[[row]].tolist()}
            )
            one = pm.recommend(posterior, 3, **alone)
            assert np.array_equal(one.items[0], together.items[row])
            assert np.array_equal(one.probabilities[0], together.probabilities[row], equal_nan=True)
            assert np.array_equal(one.errors[0], together.errors[row], equal_nan=True)


def test_methods_without_such_errors_say_so():
    prefs = pm.simulate_clicks(60, 8, 4, 3, rng=1).preferences
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(prefs, "personal", calibrate=False, rng=1)
    assert np.isnan(pm.recommend(posterior, 2).errors).all()


@pytest.mark.parametrize("wrong", [-0.1, float("nan")])
def test_an_error_below_0_is_refused(wrong):
    draws, alphas, shares = some_draws(1, 2, 1, seed=1)
    with pytest.raises(ValueError, match="max_error must be a finite number, 0 or more"):
        pm.recommend(posterior_of(draws, alphas, shares), 2, max_error=wrong)


@pytest.mark.parametrize("number", [1, 2, 7, 64, 200])
def test_beginnings_of_a_spread_are_even(number):
    order = spread(number)
    assert sorted(order.tolist()) == list(range(number))
    for first in (number // 8, number // 2):
        if first:
            gaps = np.diff(np.sort(order[:first]), prepend=0, append=number)
            assert gaps.max() <= 4 * number / first


def draws_alike(n_draws, n_items=30):
    """Draws of one consensus, at alphas that hardly differ, and two users of the fit."""
    draws = np.tile(np.arange(1, n_items + 1), (2, n_draws, 1, 1))
    alphas = np.random.default_rng(1).normal(8.0, 0.02, (2, n_draws, 1))
    return posterior_of(draws, alphas, np.ones((2, n_draws, 1)), ((0, 3), (2,)))


@pytest.mark.parametrize(
    "clicks", [None, {"near": [0, 1, 4], "far": [29, 28, 5], "one": [17]}], ids=["fit", "new"]
)
def test_the_first_draws_do_where_draws_hardly_differ(clicks):
    """Their answers are those of all draws, within the errors that are stated; also for users far
    from the consensus, whose clicks weigh the draws most unevenly."""
    posterior = draws_alike(40)
    quick, full = (pm.recommend(posterior, 5, clicks=clicks, max_error=e) for e in (0.005, 0))
    assert (quick.items == full.items).all()
    assert (quick.errors > 0).all()
    assert quick.errors.max() < 0.0025
    assert (quick.errors > full.errors).any()  # from fewer draws
    assert np.abs(quick.probabilities - full.probabilities).max() < 3 * quick.errors.max()


def test_new_users_are_answered_alike_whichever_users_a_posterior_keeps():
    posterior, new = draws_alike(40), {"near": [0, 1, 4], "far": [29, 28, 5]}
    other = replace(posterior, data=posterior.clicks.take([1]), users=posterior.users[[1]])
    answers = [pm.recommend(each, 5, clicks=new).to_rows() for each in (posterior, other)]
    assert answers[0] == answers[1]


def test_the_clicks_of_new_users_choose_between_draws():
    """Two consensuses: some users' clicks speak for one of them alone."""
    draws, n_draws = np.tile(np.arange(1, 31), (2, 40, 1, 1)), 40
    draws[1] = draws[1, ..., ::-1]
    posterior = posterior_of(draws, np.full((2, n_draws, 1), 8.0), np.ones((2, n_draws, 1)))
    found = pm.recommend(posterior, 5, clicks={"ann": [0, 1, 2], "bob": [29, 28, 27]})
    assert sorted(found.items[0]) == [3, 4, 5, 6, 7]
    assert sorted(found.items[1]) == [22, 23, 24, 25, 26]
