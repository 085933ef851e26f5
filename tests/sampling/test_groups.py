"""Comparisons of groups of items that never met say nothing of the order across them."""

import numpy as np
import pytest

import pseudomallows as pm


def votes(groups, n_votes=60, across=()):
    """Votes on pairs of each group, by the alphabet but for one in five."""
    rng, said = np.random.default_rng(1), list(across)
    for _ in range(n_votes):
        for group in groups:
            pair = sorted(rng.permutation(list(group))[:2].tolist(), reverse=rng.random() < 0.2)
            said.append(tuple(pair))
    return said


def test_votes_on_groups_that_never_met_are_named_and_not_trusted():
    prefs = pm.Preferences.from_pairs(votes(["abcd", "wxyz"]))
    assert prefs.groups() == [list("abcd"), list("wxyz")]
    with pytest.warns(pm.diagnostics.UnconnectedWarning, match="2 groups") as caught:
        fit = pm.fit(prefs, rng=1)
    assert "'a', 'b', 'c', ... (4 items); 'w', 'x', 'y', ... (4 items)" in str(caught[0].message)
    assert caught[0].message.groups == prefs.groups()
    verdict = fit.verdict()
    assert verdict.answer == "with care"
    assert "2 groups" in verdict.words


def test_one_vote_across_joins_the_groups():
    prefs = pm.Preferences.from_pairs(votes(["abcd", "wxyz"], across=[("d", "w")]))
    assert len(prefs.groups()) == 1
    assert pm.fit(prefs, rng=1).verdict().answer == "yes"


def test_users_may_join_groups_and_those_with_weight_0_do_not():
    said = {"ann": [("a", "b"), ("b", "c")], "bob": [("x", "y")], "eve": [("c", "x")]}
    assert len(pm.Preferences.from_pairs(said).groups()) == 1
    apart = pm.Preferences.from_pairs(said, weights=[5, 5, 0])
    assert apart.groups() == [["a", "b", "c"], ["x", "y"]]
    with pytest.warns(pm.diagnostics.UnconnectedWarning, match="2 groups"):
        fit = pm.fit(apart, alpha=2.0, rng=1)
    assert fit.verdict().answer != "yes"


def test_a_saved_fit_still_knows_its_groups(tmp_path):
    with pytest.warns(pm.diagnostics.UnconnectedWarning):
        pm.fit(pm.Preferences.from_pairs(votes(["ab", "yz"])), rng=1).save(tmp_path / "fit.pm")
    assert pm.load(tmp_path / "fit.pm").verdict().answer == "with care"


def test_free_gaps_are_called_by_their_own_name():
    rng = np.random.default_rng(3)
    strengths = {"a": 6.0, "b": 0.3, "c": 0.2, "d": 0.0}
    said = []
    for _ in range(1500):
        one, other = rng.permutation(list(strengths))[:2]
        wins = rng.random() < 1 / (1 + np.exp(strengths[other] - strengths[one]))
        said.append((one, other) if wins else (other, one))
    prefs = pm.Preferences.from_pairs(said)
    free = pm.fit(prefs, rng=1)
    assert free.settings["votes"]["gaps"] == "free"
    assert "Bradley-Terry" in free.settings["chosen"]
    assert "exact" not in free.settings["chosen"]
    with pytest.warns(pm.diagnostics.VotesWarning):
        assert "exact posterior" in pm.fit(prefs, gaps="equal", rng=1).settings["chosen"]


def test_the_warning_and_the_verdict_state_one_limit():
    prefs = pm.simulate_rankings(20, 30, 1.0, rng=1).preferences
    with pytest.warns(pm.ConvergenceWarning) as caught:
        fit = pm.fit(prefs, n_draws=10, warmup=5, n_moves=3, rng=1)
    mixing, size, *_ = fit.verdict().checks
    assert size.wanted == "200 or more"
    assert str(mixing) == str(caught[0].message.check) == str(caught[0].message)
    assert caught[0].message.size_limit == size.limit


def test_a_long_cycle_is_shown_in_part():
    cycle = [f"item {place}" for place in range(500)]
    said = {"ann": list(zip(cycle, cycle[1:] + cycle[:1], strict=True))}
    prefs = pm.Preferences.from_pairs(said)
    with pytest.raises(ValueError, match="contradictory") as caught:
        pm.fit(prefs, errors="none")
    assert len(str(caught.value)) < 400
    assert "495 more" in str(caught.value)
