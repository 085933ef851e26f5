"""Can a fit be trusted? The answer in words follows the numbers."""

from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.posteriors.verdict import judge, judge_hits


@pytest.fixture(scope="module")
def chain():
    prefs = pm.simulate_rankings(10, 5, 1, rng=1).preferences  # few who agree little: it moves
    return pm.fit(prefs, "mcmc", alpha=1.0, n_draws=200, rng=1)


@pytest.fixture(scope="module")
def independent():
    return pm.fit(pm.simulate_rankings(30, 5, 2, rng=1).preferences, "pseudo", alpha=2, rng=1)


def test_settled_chains_are_trusted(chain):
    verdict = judge(chain)
    assert (verdict.answer, verdict.advice) == ("yes", "")
    found = chain.diagnostics()
    assert verdict.checks[0][1] == f"{found.worst_rhat:.3f}"
    assert verdict.checks[1][1] == f"{found.least_effective_size:.0f}"


def test_chains_that_disagree_are_not(chain):
    consensus = chain.consensus.copy()
    consensus[2:] = 6 - consensus[2:]
    verdict = judge(replace(chain, consensus=consensus))
    assert verdict.answer == "no"
    assert "not settled" in verdict.words
    assert verdict.advice == "Raise n_draws, warmup or thin."


def test_chains_that_stand_still_or_are_short_tell_nothing(chain):
    still = np.broadcast_to(chain.consensus[:, :1], chain.consensus.shape).copy()
    still[1:] = 6 - still[1:]
    short = replace(
        chain,
        consensus=chain.consensus[:, :3],
        alpha=chain.alpha[:, :3],
        weights=np.ones((4, 3)) / 12,
    )
    for posterior in (replace(chain, consensus=still), short):
        verdict = judge(posterior)
        assert verdict.answer == "no"
        assert "cannot be judged" in verdict.words
        assert verdict.checks[0][1] == "not available"


def test_a_slow_chain_is_to_be_used_with_care(chain):
    slow = np.repeat(chain.consensus[:1, :25], 8, axis=1)
    few = replace(
        chain,
        consensus=slow,
        alpha=np.full((1, 200, 1), 2.0),
        weights=np.full((1, 200), 1 / 200),
    )
    found = few.diagnostics()
    assert found.worst_rhat < 1.2  # or the test tests nothing
    assert 10 < found.least_effective_size < 40
    verdict = judge(few)
    assert verdict.answer == "with care"
    assert "only one chain" in verdict.words
    assert verdict.advice


def test_independent_draws_have_no_r_hat(independent):
    verdict = judge(independent)
    assert verdict.answer == "yes"
    assert "R-hat has no meaning" in verdict.note
    assert not any("R-hat" in row[0] for row in verdict.checks)


def test_few_draws_with_all_the_weight_are_told(independent):
    for share, answer in ((0.2, "with care"), (0.9, "no")):
        weights = np.full((1, 200), (1 - share) / 199)
        weights[0, 0] = share
        verdict = judge(replace(independent, weights=weights))
        assert verdict.answer == answer
        assert "mcmc" in verdict.advice


def test_no_agreement_is_no_order(independent):
    verdict = judge(replace(independent, alpha=np.zeros_like(independent.alpha)))
    assert verdict.answer == "no"
    assert "no more than by chance" in verdict.words


def test_a_personal_fit_is_judged_by_its_probabilities():
    prefs = pm.simulate_clicks(60, 10, 5, rng=1).preferences
    fit = pm.fit(prefs, "personal", calibrate=False, rng=1)
    assert judge(fit).answer == "with care"
    for error, answer in ((0.01, "yes"), (0.05, "with care"), (0.3, "no")):
        measured = judge_hits("later clicks", 0.3, error, (0.3, 0.01), 0.1)
        assert judge(fit, measured) is measured
        assert measured.answer == answer
        assert f"off by {100 * error:.1f} points" in measured.words
    alike = judge_hits("later clicks", 0.3, 0.01, (0.3, 0.01), 0.305)
    assert alike.answer == "with care"
    assert alike.words.startswith("No better than popularity")


@pytest.mark.parametrize(("share", "answer"), [(0.9, "yes"), (0.4, "with care")])
def test_the_matched_law_is_judged_by_the_exact_one(chain, share, answer):
    settings = chain.settings | {"matched": {"differences": [0.1], "effective_share": share}}
    found = judge(replace(chain, settings=settings))
    assert found.answer == answer
    assert ("draws by their exact weights", f"{share:.0%}", "50% or more") in found.checks
    assert ("mcmc" in found.advice) == (answer != "yes")


@pytest.mark.parametrize("share", [0.9, 0.4])
def test_the_verdict_speaks_of_the_other_starts(chain, share):
    starts = {"n_starts": 4, "gap": 3.0, "rand_index": 0.7, "same_users": 0.81}
    settings = {"matched": {"differences": [0.1], "effective_share": share}, "starts": starts}
    words = judge(replace(chain, settings=chain.settings | settings)).words
    assert "best of 4 starts; the runner-up divides 81% of the users the same way" in words
    assert "runner-up" not in judge(chain).words
