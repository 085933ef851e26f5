"""One list of checks: warning, verdict, report and service say the same of a fit."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.figures import check_calibration, check_hits
from pseudomallows.posterior.diagnose import (
    Verdict,
    check_mixing,
    check_size,
    diagnose,
    rhat_limit,
    thinning_needed,
)


@pytest.fixture(scope="module")
def chain():
    prefs = pm.simulate_rankings(10, 5, 1, rng=1).preferences  # few who agree little: it moves
    return pm.fit(prefs, "mcmc", alpha=1.0, n_draws=200, rng=1)


@pytest.fixture(scope="module")
def independent():
    return pm.fit(pm.simulate_rankings(30, 5, 2, rng=1).preferences, "pseudo", alpha=2, rng=1)


def check_of(posterior, name):
    return next(check for check in diagnose(posterior) if check.name == name)


def caught_in(fit):
    """The fit, and the warnings of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = fit()
    return posterior, [each.message for each in caught]


# Draws


def drawn(n_draws, n_clusters=1, n_items=200, shift=0, alpha_shift=0.0, seed=1):
    """Independent draws of four chains; in the first, one item stands elsewhere."""
    rng, shape = np.random.default_rng(seed), (4, n_draws, n_clusters)
    scores = np.arange(n_items) + rng.exponential(n_items / 40, (*shape, n_items))
    scores[0, :, 0, n_items // 2] -= shift
    draws = (np.argsort(np.argsort(scores, axis=-1), axis=-1) + 1).astype(np.int32)
    alpha = rng.normal(20, 1, shape)
    alpha[0] += alpha_shift
    return pm.Posterior(
        consensus=draws,
        alpha=alpha,
        weights=np.full(shape[:2], 1 / (4 * n_draws)),
        log_posterior=np.zeros(shape[:2]),
        best=draws[0, 0],
        items=np.arange(n_items),
        settings={"method": "mcmc", "distance": "kendall"},
    )


def test_good_chains_are_trusted(chain):
    verdict, found = chain.verdict(), chain.diagnostics()
    assert (verdict.answer, verdict.advice) == ("yes", "")
    assert "use the order and its intervals" in verdict.words
    assert {check.answer for check in verdict.checks} == {"yes"}
    assert check_mixing(chain).found == f"{found.worst_rhat:.3f}"
    assert check_size(chain).found == f"{found.least_effective_size:.0f}"


def test_chains_that_disagree_are_not(chain):
    consensus = chain.consensus.copy()
    consensus[2:] = 6 - consensus[2:]
    verdict = replace(chain, consensus=consensus).verdict()
    assert verdict.answer == "no"
    assert "have not converged" in verdict.words
    assert verdict.advice.startswith("Raise n_draws, warmup or thin.")


def test_chains_that_do_not_move_and_too_few_draws_are_no(chain):
    still = np.broadcast_to(chain.consensus[:, :1], chain.consensus.shape).copy()
    still[1:] = 6 - still[1:]
    assert check_mixing(replace(chain, consensus=still)).found == "above 100"
    short = drawn(3)
    assert check_mixing(short).found == check_size(short).found == "not available"
    assert short.verdict().answer == replace(chain, consensus=still).verdict().answer == "no"


@pytest.mark.parametrize(
    ("n_draws", "n_clusters", "answer"),
    [(10, 1, "no"), (40, 1, "with care"), (100, 1, "yes"), (50, 17, "with care"), (100, 17, "yes")],
)
def test_the_effective_size_has_one_limit_with_clusters_and_without(n_draws, n_clusters, answer):
    found = drawn(n_draws, n_clusters, n_items=50)
    check = check_size(found)
    assert check.answer == answer
    assert check.limit == 200
    assert (check.value >= 50) == (answer != "no")
    assert found.verdict().answer == answer


def test_a_number_of_draws_that_was_asked_for_gets_a_verdict_and_no_warning():
    prefs = pm.simulate_rankings(30, 5, 2, rng=1).preferences
    few, caught = caught_in(lambda: pm.fit(prefs, n_draws=30, rng=1))
    assert not caught
    assert few.verdict().answer == "with care"
    assert few.verdict().advice.startswith("Raise n_draws to ")


@pytest.mark.parametrize(("n_clusters", "n_items"), [(1, 10), (1, 200), (17, 200)])
def test_independent_draws_worth_200_pass(n_clusters, n_items):
    passed = [
        check_mixing(drawn(60, n_clusters, n_items, seed=seed)).answer == "yes" for seed in range(5)
    ]
    assert all(passed)


@pytest.mark.parametrize("how", [{"shift": 40}, {"alpha_shift": 1.5}])
def test_one_number_of_thousands_that_differs_by_chain_is_caught(how):
    assert check_mixing(drawn(100, 17, **how)).answer != "yes"
    assert drawn(100, 17, **how).verdict().answer != "yes"


def test_the_limit_of_r_hat_is_what_200_independent_draws_stay_below():
    limits = [rhat_limit(n_numbers, 4) for n_numbers in (1, 10, 1000, 10**6)]
    assert (np.diff(limits) > 0).all()
    worst = pm.diagnostics.rhat(np.random.default_rng(4).normal(size=(4, 50, 2000, 10))).max(axis=1)
    limit = rhat_limit(10, 4)
    assert (worst > limit).mean() < 0.005  # in 2,000 fits
    assert (worst > 1 + 0.7 * (limit - 1)).any()  # so it is not far too large


def test_chains_go_on_by_as_much_as_they_need():
    assert thinning_needed(drawn(100), 1) == 1
    assert thinning_needed(drawn(45), 1) == 1  # they are independent
    once = drawn(40)
    draws, alpha = np.repeat(once.consensus, 5, axis=1), np.repeat(once.alpha, 5, axis=1)
    slow = replace(once, consensus=draws, alpha=alpha, weights=np.full((4, 200), 1 / 800))
    assert 50 < check_size(slow).value < 100  # so four times are needed
    assert [thinning_needed(slow, thinning) for thinning in (1, 4, 16)] == [4, 4, 1]
    assert thinning_needed(slow, 8) == 1  # twice, up to the limit of 16, would be too few
    stuck = replace(slow, consensus=np.repeat(once.consensus[:, :4], 50, axis=1))
    stuck = replace(stuck, alpha=np.repeat(once.alpha[:, :4], 50, axis=1))
    assert [thinning_needed(stuck, thinning) for thinning in (1, 2)] == [2, 1]  # 16 are too few
    apart = drawn(100, shift=150, alpha_shift=9)
    assert [thinning_needed(apart, thinning) for thinning in (1, 2)] == [2, 1]


def test_one_chain_alone_is_said(chain):
    one = replace(chain, consensus=chain.consensus[:1], alpha=chain.alpha[:1])
    one = replace(one, weights=np.full((1, 200), 1 / 200))
    assert "only one chain" in one.verdict().words


def test_independent_draws_have_no_r_hat(independent):
    assert independent.verdict().answer == "yes"
    assert not any("R-hat" in check.name for check in independent.verdict().checks)


def test_few_draws_with_all_the_weight_are_told(independent):
    for share, answer in ((0.05, "with care"), (0.9, "no")):
        weights = np.full((1, 200), (1 - share) / 199)
        weights[0, 0] = share
        verdict = replace(independent, weights=weights).verdict()
        assert verdict.answer == answer
    assert "mcmc" in verdict.advice
    assert "carry nearly all the weight" in verdict.words


def test_no_agreement_is_no_order(independent):
    verdict = replace(independent, alpha=np.zeros_like(independent.alpha)).verdict()
    assert verdict.answer == "no"
    assert "no more than by chance" in verdict.words


# What else a fit knows of itself


@pytest.mark.parametrize(
    ("settings", "name", "answer"),
    [
        ({"matched": {"differences": [0.1], "effective_share": 0.9}}, "draws by", "yes"),
        ({"matched": {"differences": [0.1], "effective_share": 0.4}}, "draws by", "with care"),
        ({"unbounded": [0]}, "clusters without", "with care"),
        ({"stuck": [1]}, "stuck", "no"),
        ({"votes": {"gaps": "equal", "p_value": 0.2}}, "p-value", "yes"),
        ({"votes": {"gaps": "equal", "p_value": 1e-5}}, "p-value", "with care"),
        ({"votes": {"gaps": "free", "p_value": 1e-5, "widened": 1.3}}, "p-value", "yes"),
        ({"contradictions": "1 of 60 users gives"}, "contradictory", "with care"),
        ({"curve": {"doubt": "nothing was compared"}}, "clusters", "with care"),
        ({"model_check": {"split": 0.9, "z": 2.0}}, "split", "yes"),
        ({"model_check": {"split": 0.1, "z": 20.0}}, "split", "yes"),
        ({"model_check": {"split": 0.3, "z": 20.0}}, "split", "with care"),
        ({"model_check": {"split": 0.9, "z": 20.0}}, "split", "no"),
    ],
)
def test_a_check_gives_its_answer_to_the_verdict(chain, settings, name, answer):
    found = replace(chain, settings=chain.settings | settings)
    check = next(check for check in diagnose(found) if check.name.startswith(name))
    assert (check.answer, found.verdict().answer) == (answer, answer)
    assert (check.words in found.verdict().words) or answer == "yes"
    if answer != "yes":
        warning = check.warning(check)
        assert str(warning) == str(check)
        assert all(getattr(warning, name) == value for name, value in check.figures.items())


def test_the_verdict_speaks_of_the_other_starts(chain):
    starts = {"n_starts": 4, "gap": 3.0, "same_users": 0.81}
    for more in ({}, {"unbounded": [0]}):
        words = replace(chain, settings=chain.settings | {"starts": starts} | more).verdict().words
        assert "best of 4 starts; the next, 3.0 log units behind, divides 81% of the users" in words


def test_the_order_of_a_cluster_without_users_is_not_called_sound():
    some = pm.Mallows(range(1, 7), 12).draw(20, rng=1)
    with pytest.warns(pm.diagnostics.AlphaWarning, match="in cluster 2, so ignore its order"):
        posterior = pm.fit(pm.Preferences.from_rankings(some), n_clusters=2, rng=1)
    assert (posterior.labels == 0).all()
    with pytest.warns(pm.diagnostics.AlphaWarning) as found:
        pm.fit(pm.Preferences.from_rankings([[1, 2, 3, 4]] * 30), rng=1)
    assert "the order is sound" in str(found[0].message)
    assert "ignore" not in str(found[0].message)


def test_the_worst_answer_comes_first_and_advice_is_given_once(chain):
    settings = chain.settings | {"unbounded": [0], "model_check": {"split": 0.9, "z": 9.0}}
    verdict = replace(chain, settings=settings).verdict()
    assert verdict.answer == "no"
    assert verdict.words.startswith("People do not share one order")
    assert verdict.words.index("no upper limit") > 0
    assert verdict.advice == "Look for groups with n_clusters='auto'. Give alpha."


def test_settings_keep_the_list_and_a_file_does_too(tmp_path):
    posterior = pm.fit(pm.simulate_rankings(30, 5, 3, rng=1).preferences, rng=1)
    rows = [check.row() for check in diagnose(posterior)]
    assert posterior.settings["checks"] == rows
    posterior.save(tmp_path / "fit.pm")
    again = pm.load(tmp_path / "fit.pm")
    assert again.settings == json.loads(json.dumps(posterior.settings))
    assert again.verdict() == posterior.verdict()


ODD = {
    "one user": lambda: pm.Preferences.from_rankings([[1, 2, 3, 4]]),
    "all alike": lambda: pm.Preferences.from_rankings([[2, 1, 3, 4]] * 20),
    "all but one clicked": lambda: pm.Preferences.from_clicks([[1, 1, 1, 0]] * 9 + [[0, 1, 1, 1]]),
    "two groups": lambda: pm.Preferences.from_pairs([("a", "b"), ("x", "y"), ("b", "a")] * 9),
    "a cycle": lambda: pm.Preferences.from_pairs(
        {user: [("a", "b"), ("b", "c"), ("c", "a")] for user in range(9)}
    ),
    "camps": lambda: pm.Preferences.from_rankings([[1, 2, 3, 4, 5]] * 15 + [[5, 4, 3, 2, 1]] * 15),
    "ties and gaps": lambda: pm.Preferences.from_rankings([[1, 1, 3, 0], [2, 0, 1, 0]] * 4),
    "lists": lambda: pm.Preferences.from_orderings([["a", "b"], ["b", "a"], ["c", "a"]] * 4),
    "pairs": lambda: pm.Preferences.from_pairs(
        {user: [("a", "b"), ("b", "c"), ("c", "d")[:: 1 - user % 3]] for user in (0, 2, 3, 5)}
    ),
    "two modes": lambda: pm.Preferences.from_rankings(
        [[3, 2, 5, 4, 1], [3, 4, 1, 2, 5], [1, 4, 2, 5, 3]], weights=[55, 23, 40]
    ),
    "ordinary": lambda: pm.simulate_rankings(40, 6, 3, rng=1).preferences,
}


@pytest.mark.parametrize("name", ODD)
def test_a_yes_never_stands_beside_a_warning(name):
    posterior, caught = caught_in(lambda: pm.fit(ODD[name](), "mcmc", rng=1))
    verdict = posterior.verdict()
    assert (verdict.answer == "yes") == (not caught)
    flagged = [check.row() for check in verdict.checks if check.answer != "yes"]
    assert all(message.check.row() in flagged for message in caught)


def test_a_personal_fit_is_evaluated_by_its_probabilities():
    fit = pm.fit(pm.simulate_clicks(60, 10, 5, rng=1).preferences, "personal", calibrate=False)
    assert fit.verdict().answer == "with care"
    assert "pm.evaluate" in fit.verdict().advice


@pytest.mark.parametrize(
    ("hits", "error", "answer", "first"),
    [
        (0.3, 0.01, "yes", "The fit that pm.fit gives"),
        (0.3, 0.05, "with care", "The fit that pm.fit gives"),
        (0.3, 0.3, "no", "The fit that pm.fit gives"),
        (0.095, 0.01, "with care", "No better than popularity, which had 10.0% hits."),
        (0.05, 0.01, "no", "Below popularity, which had 10.0% hits."),
    ],
)
def test_recommendations_are_evaluated_by_hits_and_calibration(hits, error, answer, first):
    checks = [
        check_hits(hits, 0.01, 0.1),
        check_calibration("later clicks", hits, 0.01, 0.3, error),
    ]
    verdict = Verdict.of(checks)
    assert verdict.answer == answer
    assert verdict.words.startswith(first)
    assert f"off by {100 * error:.1f} points" in verdict.words
