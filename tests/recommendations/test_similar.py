"""Items and users that are alike."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm

WARM, COLD = ["tea", "milk", "cocoa", "honey"], ["ale", "rum", "gin", "cider"]


@pytest.fixture(scope="module")
def prefs():
    rng, log = np.random.default_rng(3), {}
    for user in range(80):
        liked = WARM if user % 2 else COLD
        log[f"user {user}"] = rng.choice(liked, 2, replace=False).tolist()
    log["both"] = ["tea", "ale"]
    return pm.Preferences.from_clicks(log)


@pytest.fixture(scope="module")
def personal(prefs):
    return pm.fit(prefs, "personal", rng=1)


@pytest.fixture(scope="module")
def clusters(prefs):
    with warnings.catch_warnings(action="ignore", category=pm.diagnostics.FitWarning):
        return pm.fit(prefs, "mcmc", 8.0, 40, n_clusters=2, n_chains=1, rng=1)


def test_items_that_the_same_people_click_are_alike(personal, clusters):
    for fitted in (personal, clusters):
        found = pm.similar_items(fitted, "tea", k=3)
        assert set(found.names) == set(WARM) - {"tea"}
        assert (np.diff(found.similarities) <= 0).all()
        assert (fitted.items[found.codes] == found.names).all()
        assert len(pm.similar_items(fitted, "tea", k=99).names) == 7
    weights, code = personal.item_weights, personal.items.tolist().index("tea")
    expected = (weights[code] + weights[:, code])[found.codes] / 2
    assert pm.similar_items(personal, "tea", 3).similarities.max() <= weights.max()
    assert sorted(pm.similar_items(personal, "tea", 3).similarities) == pytest.approx(
        sorted(expected)
    )


def test_users_who_click_the_same_are_alike(personal, clusters):
    for fitted in (personal, clusters):
        found = pm.similar_users(fitted, "user 1", k=20)
        assert "user 1" not in found.names
        assert all(int(name.split()[1]) % 2 for name in found.names if name != "both")
        new = pm.similar_users(fitted, clicks=["rum", "gin"], k=5)
        assert not any(int(name.split()[1]) % 2 for name in new.names)
        assert new.name == "new"
        assert np.abs(found.similarities).max() <= 1 + 1e-12
    mine = clusters.memberships[[1]] @ clusters.memberships.T
    assert found.similarities == pytest.approx(mine[0, found.codes])


def test_users_with_the_same_clicks_have_similarity_1(personal, prefs, monkeypatch):
    found = pm.similar_users(personal, "user 1", k=80)
    mine = set(prefs.clicks_of(1))
    twins = [r for r in found.codes if set(prefs.clicks_of(r)) == mine]
    assert twins
    values = dict(zip(found.codes, found.similarities, strict=True))
    assert [values[row] for row in twins] == pytest.approx([1.0] * len(twins))
    monkeypatch.setattr("pseudomallows.recommendations.similar.BLOCK_CELLS", 40)
    again = pm.similar_users(personal, "user 1", k=80)
    assert again.similarities == pytest.approx(found.similarities)


def test_given_scores_tell_which_items_are_alike(prefs):
    def scores(matrix):
        left = np.asarray(matrix.sum(axis=1)).ravel() + np.arange(matrix.shape[0])
        return np.outer(left % 5, np.where(np.arange(8) < 4, 1.0, -1.0))

    fitted = pm.personal.fit_scores(prefs, scores, rng=1)
    found = pm.similar_items(fitted, fitted.items[0], k=3)
    assert set(found.codes) == {1, 2, 3}
    assert found.similarities == pytest.approx([1, 1, 1])


def test_tables_have_names(personal):
    found = pm.similar_items(personal, "tea", k=2)
    assert [row["item"] for row in found.to_rows()] == found.names.tolist()
    assert list(found.to_frame().columns) == ["place", "item", "similarity"]
    assert list(pm.similar_users(personal, "both", 2).to_frame().columns)[1] == "user"


def test_one_consensus_does_not_say_what_is_alike(prefs, personal):
    with warnings.catch_warnings(action="ignore", category=pm.diagnostics.FitWarning):
        posterior = pm.fit(prefs, "pseudo", alpha=3.0, n_draws=5, rng=1)
    for what, ask in (("items", pm.similar_items), ("users", pm.similar_users)):
        name = "tea" if what == "items" else "both"
        with pytest.raises(ValueError, match=f"one consensus does not say which {what} are alike"):
            ask(posterior, name)
    with pytest.raises(ValueError, match="no item is named 'gold'; the first are"):
        pm.similar_items(personal, "gold")
    with pytest.raises(ValueError, match="no user is named 'zoe'"):
        pm.similar_users(personal, "zoe")
    with pytest.raises(TypeError, match="posterior must come from fit"):
        pm.similar_items(prefs, "tea")
