"""Items not to show, and items to choose from, for every kind of fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import pseudomallows as pm
from pseudomallows.recommendations import recommender as probabilities
from pseudomallows.recommendations.filter import parse_filter
from pseudomallows.recommendations.recommend import best_of_one

N_ITEMS, K = 15, 4
FITS = {
    "pseudo": {"method": "pseudo", "n_draws": 20, "alpha": 6.0},
    "exact": {"method": "mcmc", "n_draws": 20, "alpha": 6.0, "n_chains": 1, "warmup": 50},
    "clusters": {"method": "pseudo", "n_draws": 20, "alpha": 6.0, "n_clusters": 2},
    "kendall": {"method": "mcmc", "n_draws": 20, "distance": "kendall", "n_chains": 1},
    "personal": {"method": "personal"},
}


@pytest.fixture(scope="module")
def prefs():
    return pm.simulate_clicks(60, N_ITEMS, [6.0], 4, rng=1).preferences


@pytest.fixture(scope="module", params=sorted(FITS))
def posterior(request, prefs):
    with warnings.catch_warnings(action="ignore", category=pm.diagnostics.FitWarning):
        return pm.fit(prefs, rng=1, **FITS[request.param])


def without(found, row, hidden, k=K):
    """The first items of a longer answer that are not hidden, with their probabilities."""
    pairs = zip(found.items[row].tolist(), found.probabilities[row].tolist(), strict=True)
    return [pair for pair in pairs if pair[0] >= 0 and pair[0] not in hidden][:k]


def pairs_of(found, row):
    return without(found, row, ())


def close_to(pairs):
    """The same items, and probabilities that differ by what the quick way of Kendall leaves out."""
    return [(item, pytest.approx(probability, abs=2e-4)) for item, probability in pairs]


@pytest.mark.parametrize("most", [0, 256])
@pytest.mark.parametrize("given", [{"users": [3, 7]}, {"clicks": {3: [1, 2], 7: [5]}}])
def test_hidden_items_are_passed_over_and_no_other_probability_changes(
    posterior, given, most, monkeypatch
):
    monkeypatch.setattr(
        probabilities, "MOST_FEW", most
    )  # by the probabilities of all, or the quick way
    wide = pm.recommend(posterior, N_ITEMS, window=K, max_error=0, **given)
    best = [int(item) for item in wide.items[0, :2]]
    asked = {"k": K, "window": K, "max_error": 0, **given}
    found = pm.recommend(posterior, exclude=best, **asked)
    mine = pm.recommend(posterior, exclude={3: best, 7: [9]}, **asked)
    few = pm.recommend(posterior, only={3: [*best, 9, 11]}, exclude=[9], **asked)
    for row, own in enumerate((best, [9])):
        assert pairs_of(found, row) == close_to(without(wide, row, best))
        assert pairs_of(mine, row) == close_to(without(wide, row, own))
    rest = set(range(N_ITEMS)) - ({*best, 11} - {9})
    assert pairs_of(few, 0) == close_to(without(wide, 0, rest))
    assert pairs_of(few, 1) == close_to(without(wide, 1, [9]))
    assert np.isnan(few.probabilities[0, len(pairs_of(few, 0)) :]).all()


def test_all_forms_say_the_same(posterior):
    hidden = np.zeros((2, N_ITEMS), dtype=bool)
    hidden[0, [2, 5]] = hidden[1, 7] = True
    listed = {3: [2, 5], 9: [7]}
    forms = [
        listed,
        hidden,
        sparse.csr_array(hidden.astype(int)),
        pm.Preferences.from_clicks(listed, items=range(N_ITEMS)),
    ]
    for name, per_call in (("exclude", hidden[0]), ("only", ~hidden[0])):
        found = [pm.recommend(posterior, K, users=[3, 9], **{name: form}) for form in forms]
        for other in found[1:]:
            assert (other.items == found[0].items).all()
        if name == "only":
            assert sorted(found[0].items[1].tolist()) in ([-1, -1, -1, 7], [-1] * K)
        items = np.flatnonzero(per_call)
        as_list = pm.recommend(posterior, K, users=[3], **{name: items.tolist()})
        for form in (per_call, items, tuple(items)):
            again = pm.recommend(posterior, K, users=[3], **{name: form})
            assert (again.items == as_list.items).all()
            assert (again.probabilities == as_list.probabilities)[again.items >= 0].all()
    one = pm.recommend(posterior, K, users=[3], exclude=2)
    assert (one.items == pm.recommend(posterior, K, users=[3], exclude=[2]).items).all()


def test_one_user_gets_the_same_as_many_and_as_a_file(posterior, prefs, tmp_path):
    best = pm.recommend(posterior, 1).items[:, 0]
    exclude = {user: [int(best[user])] for user in range(0, 60, 2)}
    found = pm.recommend(posterior, 2, exclude=exclude, only=list(range(12)))
    assert not (found.items[::2, 0] == best[::2]).any()
    assert found.items.max() < 12
    for user in (4, 5):
        own = parse_filter(exclude.get(user, []), list(range(12)), posterior.items, [], [])
        items, values, _ = best_of_one(posterior, prefs.clicks_of(user), user, 2, own)
        assert items == found.items[user].tolist()
        assert values == found.probabilities[user].tolist()
    how = {"exclude": exclude, "only": list(range(12))}
    pm.recommendations.recommend_to(posterior, tmp_path / "r.csv", 2, **how)
    rows = (tmp_path / "r.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[2]) for row in rows] == found.items[found.items >= 0].tolist()


def test_users_known_by_rankings_have_a_choice_too():
    data = pm.simulate_rankings(20, 6, 4.0, top=2, rng=1).preferences
    posterior = pm.fit(data, "mcmc", 4.0, 120, keep_latent=True, n_chains=2, rng=1)
    wide = pm.recommend(posterior, 6, window=2)
    found = pm.recommend(posterior, 2, exclude={0: [int(wide.items[0, 0])]}, only=[0, 1, 2, 3])
    assert found.items.max() <= 3
    shown = [item for item in wide.items[0].tolist()[1:] if item <= 3][:2]
    assert found.items[0].tolist() == shown
    assert pm.recommend(posterior, 3, users=[0], only=[1]).items.tolist() == [[1, -1, -1]]


def test_parts_have_a_choice_by_names(prefs, posterior, tmp_path):
    named = prefs.rename(users=[f"u{i:02}" for i in range(60)])
    parts = pm.data.split(named, tmp_path / "parts", 2)
    how = {"exclude": {"u03": [1, 2]}, "only": list(range(9))}
    pm.recommendations.recommend_to(posterior, tmp_path / "out", 2, clicks=parts, **how)
    expected = pm.recommend(posterior, 2, clicks=named, **how)
    items = []
    for path in sorted((tmp_path / "out").iterdir()):
        items += pytest.importorskip("pyarrow.parquet").read_table(path)["item"].to_pylist()
    assert list(map(int, items)) == expected.items[expected.items >= 0].tolist()
    matrix = {"clicks": parts, "only": np.ones((60, 15))}
    with pytest.raises(ValueError, match="users of parts have no order"):
        pm.recommendations.recommend_to(posterior, tmp_path / "other", 2, **matrix)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exclude": ["gold", 3]}, "exclude has unknown items: 'gold'; the items of the fit are 0"),
        ({"only": {3: [99]}}, r"only\[3\] has unknown items: 99"),
        ({"exclude": {"zoe": [1]}}, "exclude names a user who is neither of the fit nor answered"),
        ({"exclude": list(range(N_ITEMS))}, "nothing is left to recommend"),
        ({"only": []}, "nothing is left to recommend: exclude and only hide all 15 items"),
        ({"only": [1], "exclude": [1]}, "nothing is left to recommend"),
        ({"exclude": np.ones((3, 2))}, "a row for each of 60 users who are answered"),
        ({"only": np.ones(3, dtype=bool)}, "a value for each of 15 items"),
        ({"only": pd.DataFrame({"user": [1], "item": [1]})}, "only is a data frame: give a list"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(posterior, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.recommend(posterior, K, **given)
