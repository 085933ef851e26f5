"""update: chains that go on with more clicks, against fits of all clicks."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.posterior.diagnostics import effective_size
from pseudomallows.sampling import update as as_function
from pseudomallows.sampling.reproduce import call_of

FAR = 4.5  # standard errors; of a few hundred comparisons none should be so far apart


def data(n_clusters, n_users=300, n_items=8):
    """One cluster, with an order that is not sure; or several, for which some users are."""
    alpha = [2.0] if n_clusters == 1 else [5.0] * n_clusters
    return pm.simulate_clicks(n_users, n_items, alpha, 3, rng=5).preferences


def of_half_the_users(prefs):
    return prefs.take(np.arange(prefs.n_users // 2))


def of_half_the_clicks(prefs):
    """Nearly all on odd items, half of those on even ones: the rest changes the consensus."""
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    kept = np.random.default_rng(1).random(len(owners)) < np.where(prefs.codes % 2, 0.9, 0.5)
    table = np.zeros((prefs.n_users, prefs.n_items), dtype=bool)
    table[owners[kept], prefs.codes[kept]] = True
    return pm.Preferences.from_clicks(table)


def quantities(posterior):
    """``[chain, draw, quantity]``: for each cluster its alpha, its share, the items' ranks, and
    whether they are the first or among the three first."""
    ranks = posterior.consensus.astype(float)
    parts = [posterior.alpha, posterior.shares]
    parts += [each.reshape(*ranks.shape[:2], -1) for each in (ranks, ranks == 1, ranks <= 3)]
    return np.concatenate(parts, axis=2)


def largest_difference(one, other):
    """Between means over the draws, in standard errors."""
    means, errors = [], []
    for posterior in (one, other):
        found = quantities(posterior)
        sizes = np.maximum(effective_size(found), 4.0)
        means.append(found.mean(axis=(0, 1)))
        # what was seen in none of so many draws may have a probability of one in so many
        errors.append((found.var(axis=(0, 1)) + 1 / sizes) / sizes)
    return float((np.abs(means[0] - means[1]) / np.sqrt(errors[0] + errors[1])).max())


@pytest.mark.parametrize("method", ["mcmc", "matched"])
@pytest.mark.parametrize("n_clusters", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", [of_half_the_users, of_half_the_clicks])
def test_an_update_is_the_fit_of_all_clicks(method, n_clusters, part):
    prefs = data(n_clusters)
    how = {"n_clusters": n_clusters, "n_draws": 150}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)  # the errors below know it
        old = pm.fit(part(prefs), method, rng=1, **how)
        everything = pm.fit(prefs, method, rng=2, **how)
        newer = old.update(prefs, rng=3)
    assert newer.data.digest() == prefs.digest()
    assert newer.users.tolist() == prefs.users.tolist()
    assert newer.settings["n_users"] == everything.settings["n_users"]
    assert newer.consensus.shape == (4, 150, n_clusters, 8)
    assert largest_difference(newer, everything) < FAR
    assert np.abs(newer.memberships - everything.memberships).max() < 0.1
    if n_clusters == 2:
        assert newer.memberships.min(axis=1).max() > 0.2  # some belong to both
    # the twin: as if the new clicks were forgotten
    assert largest_difference(old, everything) > FAR


@pytest.mark.slow
def test_an_update_with_nothing_new_is_the_same_posterior():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        posterior = pm.fit(data(2), "mcmc", n_clusters=2, n_draws=150, rng=1)
        again = posterior.update(posterior.data, rng=2)
    assert largest_difference(again, posterior) < FAR
    assert np.abs(again.memberships - posterior.memberships).max() < 0.1
    assert not np.array_equal(again.alpha, posterior.alpha)


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_same_seed_same_bits_whatever_the_threads_and_from_a_file(n_clusters, tmp_path):
    prefs = data(n_clusters, n_users=600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        old = pm.fit(of_half_the_users(prefs), "mcmc", n_clusters=n_clusters, n_draws=20, rng=1)
        old.save(tmp_path / "old.pm")
        before = old.consensus.copy()
        found = [
            pm.load(tmp_path / "old.pm").update(prefs, rng=2, executor=pm.Threads(1)),
            old.update(prefs, rng=2, executor=pm.Threads(2)),
            as_function(old, prefs, rng=2),
        ]
        other = old.update(prefs, rng=3)
    for each in found[1:]:
        for name in ("consensus", "alpha", "shares", "chain_memberships", "log_posterior"):
            expected = getattr(found[0], name)
            assert np.array_equal(getattr(each, name), expected, equal_nan=True)
    assert not np.array_equal(found[0].alpha, other.alpha)
    assert np.array_equal(old.consensus, before)
    assert old.data.n_users == 300


def test_settings_are_those_of_the_fit():
    prefs = data(1)
    old = pm.fit(of_half_the_users(prefs), "mcmc", 5.0, n_draws=60, n_chains=2, n_moves=99, rng=1)
    seen = []
    newer = old.update(prefs, rng=2, progress=lambda *at: seen.append(at))
    assert newer.settings["options"] == old.settings["options"]
    assert (newer.settings["updates"], newer.settings["seed"]) == (1, 2)
    assert newer.settings["alpha"] == 5
    assert (newer.alpha == 5).all()
    assert seen[-1] == (140, 140)  # 2 chains of 10 + 60 sweeps
    more = newer.update({"zoe": [1, 2]}, n_draws=40, rng=3)
    assert more.consensus.shape == (2, 40, 1, 8)
    assert more.settings["updates"] == 2
    assert more.users.tolist()[-1] == "zoe"
    assert "updates" not in old.settings
    assert call_of(more) == "posterior.update(more, n_draws=40, rng=3)"
    weighed = newer.update({"zoe": [1, 2]}, rng=3)
    assert "reweighed" in weighed.settings
    assert call_of(weighed) == "posterior.update(more, rng=3)"


@pytest.mark.slow
def test_clusters_take_as_many_draws_unless_told_otherwise():
    prefs = data(3, n_users=240)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        old = pm.fit(of_half_the_users(prefs), "mcmc", n_clusters=3, n_draws=40, rng=1)
        newer = old.update(prefs, rng=2)
        newest = newer.update({"zoe": [1, 2]}, rng=3)
        told = newer.update({"zoe": [1, 2]}, n_draws=30, rng=3)
    assert [each.consensus.shape[1] for each in (newer, newest, told)] == [40, 40, 30]
    assert newest.settings["options"]["n_draws"] == 40  # which a new fit would have
    assert "thinning" not in newest.settings
    assert call_of(newest) == "posterior.update(more, n_draws=40, rng=3)"  # as without n_draws
    assert call_of(told) == "posterior.update(more, n_draws=30, rng=3)"


def test_kept_latent_rankings_and_a_chosen_number_of_clusters_stay():
    prefs = data(1)
    old = pm.fit(prefs, "mcmc", n_draws=30, keep_latent=[4], n_clusters=1, rng=1)
    old.settings["curve"] = {"chosen": 1}
    newer = old.update({4: [1, 2, 3], "zoe": [5]}, rng=2)
    assert newer.latent.shape == (4, 30, 1, 8)
    mine = newer.data.clicks_of(4)
    assert (newer.latent[..., mine] <= len(mine)).all()
    assert newer.settings["curve"] == {"chosen": 1}


def test_recommendations_go_to_new_users_and_not_to_what_they_clicked():
    posterior = pm.fit(data(1), "matched", n_draws=50, rng=1).update({"zoe": [0, 3]}, rng=2)
    found = pm.recommend(posterior, 3, users=["zoe"])
    assert not set(found.items[0]) & {0, 3}


@pytest.mark.parametrize(
    ("method", "options"),
    [("pseudo", {}), ("mcmc", {"distance": "spearman", "n_draws": 20}), ("personal", {})],
)
def test_other_fits_of_clicks_are_made_anew(method, options):
    prefs = data(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        old = pm.fit(of_half_the_users(prefs), method, rng=1, **options)
        newer, expected = old.update(prefs, rng=2), pm.fit(prefs, method, rng=2, **options)
    assert newer.data.digest() == prefs.digest()
    assert "updates" not in newer.settings
    name = "scores" if method == "personal" else "consensus"
    assert np.array_equal(getattr(newer, name), getattr(expected, name))


def test_what_cannot_be_updated_says_what_to_do():
    ranked = pm.fit(pm.Preferences.from_rankings([[1, 2, 3], [1, 3, 2]]), "pseudo", alpha=3, rng=1)
    with pytest.raises(ValueError, match="this is one of rankings: fit all"):
        ranked.update({"ann": [1]})
    prefs = data(1)
    posterior = pm.fit(prefs, "matched", n_draws=50, rng=1)
    with pytest.raises(ValueError, match=r"unknown item: 99; .*fit all clicks again"):
        posterior.update({"ann": [99]})
    object.__setattr__(posterior, "data", prefs.take([]))  # as a fit to parts leaves it
    with pytest.raises(ValueError, match="fitted to parts: add the new clicks to the parts"):
        posterior.update({"ann": [1]})
    with pytest.raises(TypeError, match="posterior must come from fit"):
        as_function(prefs, {"ann": [1]})
    scored = pm.personal.fit_scores(prefs, np.random.default_rng(1).random((300, 8)), rng=1)
    with pytest.raises(ValueError, match=r"fitted with scores=\.\.\., data that it does not keep"):
        scored.update({"ann": [1]})


def test_a_doubtful_update_warns_its_caller():
    posterior = pm.fit(data(1), "matched", n_draws=50, rng=1)
    with pytest.warns(pm.ConvergenceWarning) as seen:
        posterior.update({"zoe": [1]}, n_draws=2, rng=2)
    assert seen[0].filename == __file__
