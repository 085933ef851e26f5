"""Users known by rankings or comparisons: answers by latent rankings, drawn or kept."""

from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.recommendations import user_intervals
from pseudomallows.recommendations.latent_ranks import LatentRanks

pytestmark = pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
ITEMS = ["ale", "gin", "rum", "tea"]
SAID = {"ann": [("tea", "ale"), ("ale", "rum")], "bob": [("tea", "gin")], "cem": [("gin", "rum")]}
PARTIAL = [[1, 0, 0, 2], [0, 0, 0, 1], [2, 0, 0, 1], [0, 0, 0, 0]]


def exact_ranks(weights_of_user, weights_of_others, alpha, distance):
    """``[item][rank - 1]`` of one user, by enumeration of the consensus and of the ranking."""
    table = np.zeros((4, 4))
    for consensus in naive.all_rankings(4):
        law = naive.mallows(consensus, alpha, distance)
        others = np.prod([sum(p * told(r) for r, p in law.items()) for told in weights_of_others])
        for ranking, probability in law.items():
            for item, rank in enumerate(ranking):
                table[item, rank - 1] += probability * weights_of_user(ranking) * others
    return table / table[0].sum()


def says(pairs):
    codes = [(ITEMS.index(better), ITEMS.index(worse)) for better, worse in pairs]
    return lambda ranking: float(all(ranking[b] < ranking[w] for b, w in codes))


def knows(row):
    return lambda ranking: float(ranking in naive.completions(row))


@pytest.mark.parametrize("distance", ["footrule", "kendall"])
def test_kept_rankings_of_comparers_have_their_exact_law(distance):
    prefs = pm.Preferences.from_pairs(SAID, items=ITEMS)
    how = {"alpha": 2.0, "n_draws": 800, "n_chains": 2, "rng": 3, "distance": distance}
    found = pm.fit(prefs, keep_latent=["bob"], **how)
    others = [says(SAID["ann"]), says(SAID["cem"])]
    exact = exact_ranks(says(SAID["bob"]), others, 2.0, distance)
    recommended = pm.recommend(found, 2, users="bob")
    best = np.argsort(-exact[:, :2].sum(axis=1))[:2]
    assert recommended.items[0].tolist() == best.tolist()
    probabilities = exact[best, :2].sum(axis=1)
    assert recommended.probabilities[0] == pytest.approx(probabilities, abs=0.04)
    wrong = exact_ranks(says(SAID["ann"]), others, 2.0, distance)  # another user's
    assert np.abs(wrong[best, :2].sum(axis=1) - recommended.probabilities[0]).max() > 0.04


@pytest.mark.parametrize("distance", ["footrule", "kendall", "hamming", "cayley"])
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_latent_rankings_of_partial_rankings_are_kept(distance, n_clusters):
    rows = PARTIAL * 3
    prefs = pm.Preferences.from_rankings(rows, items=ITEMS)
    how = {"alpha": 2.0, "n_draws": 40, "n_chains": 2, "rng": 3, "distance": distance}
    found = pm.fit(prefs, "mcmc", keep_latent=True, n_clusters=n_clusters, **how)
    assert found.latent.shape == (2, 40, 12, 4)
    for user, row in enumerate(rows):
        assert set(map(tuple, found.latent[:, :, user].reshape(-1, 4).tolist())) <= set(
            naive.completions(row)
        )
    assert len(np.unique(found.latent[:, :, 3].reshape(-1, 4), axis=0)) > 1  # of who says nothing


@pytest.mark.parametrize("distance", ["footrule", "kendall", "hamming"])
def test_rankings_of_users_known_in_part_are_drawn_from_their_exact_law(distance, tmp_path):
    prefs = pm.Preferences.from_rankings(PARTIAL, items=ITEMS)
    how = {"alpha": 2.0, "n_draws": 1000, "n_chains": 2, "rng": 3, "distance": distance}
    pm.fit(prefs, "mcmc", **how).save(tmp_path / "fit")
    found = pm.load(tmp_path / "fit")  # which has the rankings of the users, and none that is drawn
    assert found.latent.size == 0
    assert np.array_equal(found.data.rankings, PARTIAL)
    exact = exact_ranks(knows(PARTIAL[1]), [knows(PARTIAL[0]), knows(PARTIAL[2])], 2.0, distance)
    probabilities = {
        row["item"]: row["probability"]
        for row in pm.recommend(found, 4, users=[1], window=2).to_rows()
    }
    first_two = [probabilities[item] for item in ITEMS]
    assert first_two == pytest.approx(exact[:, :2].sum(axis=1), abs=0.04)
    wrong = exact_ranks(knows(PARTIAL[2]), [knows(PARTIAL[0]), knows(PARTIAL[1])], 2.0, distance)
    assert np.abs(wrong[:, :2].sum(axis=1) - first_two).max() > 0.08  # those of another user
    assert user_intervals(found, 1)[3].tolist() == [1, 1]  # tea, which is known
    everybody = pm.recommend(found, 4, window=2)
    mine = dict(zip(everybody.items[1].tolist(), everybody.probabilities[1].tolist(), strict=True))
    assert [mine[item] for item in range(4)] == first_two  # whoever else is asked about
    kept = pm.fit(prefs, "mcmc", keep_latent=True, **how)  # the same draws
    assert (kept.latent[:, :, 1] <= 2).mean(axis=(0, 1)) == pytest.approx(first_two, abs=1e-9)


CAMPS = [[1, 2, 0, 0], [2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1], [0, 0, 0, 0]]


def by_clusters(found, row, distance):
    """``[cluster]``: memberships; ``[item, rank - 1]``: of a user, given the draws, which count by
    how probable the user is under them."""
    table, memberships, total = np.zeros((4, 4)), np.zeros(2), 0.0
    for place in np.ndindex(found.weights.shape):
        clusters = zip(found.consensus[place], found.alpha[place], found.shares[place], strict=True)
        for cluster, (consensus, alpha, share) in enumerate(clusters):
            law = naive.mallows(tuple(consensus.tolist()), float(alpha), distance)
            for ranking in naive.completions(row):
                table[range(4), np.array(ranking) - 1] += share * law[tuple(ranking)]
                memberships[cluster] += share * law[tuple(ranking)]
                total += share * law[tuple(ranking)]
    return memberships / total, table / total


@pytest.mark.parametrize("distance", ["footrule", "kendall", "hamming"])
def test_users_of_clusters_belong_to_them_as_enumeration_says(distance):
    prefs = pm.Preferences.from_rankings(CAMPS * 3, items=ITEMS)
    how = {"alpha": 3.0, "n_draws": 60, "n_chains": 2, "rng": 3, "distance": distance}
    found = pm.fit(prefs, "mcmc", n_clusters=2, **how)
    # new users, known in part or in full
    new = [[0, 0, 1, 0], [4, 3, 1, 2], [0, 0, 0, 0]]
    members = pm.recommendations.memberships(found, new)
    exact = [by_clusters(found, row, distance)[0] for row in new]
    assert members == pytest.approx(np.array(exact), abs=1e-9)
    assert np.abs(members[0] - exact[1]).max() > 0.02
    # one draw many times: labels and rankings of users of the fit, given the draw
    first = {"consensus": found.consensus[:1, :1], "shares": found.shares[:1, :1]}
    many = {name: np.repeat(array, 4000, axis=1) for name, array in first.items()}
    one = {"alpha": np.full((1, 4000, 2), 3.0), "weights": np.full((1, 4000), 1 / 4000)}
    fixed = replace(found, **many, **one)
    for user in (0, 5):
        table = LatentRanks(fixed, [user]).rank_probabilities()
        assert table == pytest.approx(
            by_clusters(fixed_small(fixed), CAMPS[user], distance)[1], abs=0.04
        )
    wrong = replace(
        fixed, shares=np.broadcast_to([0.99, 0.01], fixed.shares.shape)
    )  # other weights
    table = LatentRanks(wrong, [5]).rank_probabilities()
    assert np.abs(table - by_clusters(fixed_small(fixed), CAMPS[5], distance)[1]).max() > 0.04


def fixed_small(found):
    """The first draw alone."""
    names = ("consensus", "alpha", "shares", "weights")
    return replace(found, **{name: getattr(found, name)[:, :1] for name in names})


def test_new_users_must_have_the_items_of_the_fit():
    found = pm.fit(pm.Preferences.from_rankings(PARTIAL, items=ITEMS), "mcmc", n_draws=20, rng=1)
    strange = pm.Preferences.from_rankings([[1, 2, 0, 0]], items=list("abcd"))
    with pytest.raises(ValueError, match="must have the items of the fit"):
        pm.recommendations.memberships(found, strange)
    ulam = pm.fit(found.data, "mcmc", n_draws=20, rng=1, distance="ulam")
    with pytest.raises(ValueError, match="partial rankings by ulam is not known"):
        pm.recommendations.memberships(ulam, [[1, 0, 0, 0]])
    assert pm.recommendations.memberships(ulam, [[0, 0, 0, 0]]).tolist() == [[1.0]]


def test_what_is_not_kept_is_not_answered():
    found = pm.fit(
        pm.Preferences.from_pairs(SAID), n_draws=20, n_chains=2, rng=1, keep_latent="ann"
    )
    with pytest.raises(ValueError, match="no user is named 'bob'"):
        pm.recommend(found, users="bob")
    with pytest.raises(ValueError, match="clicks of new users need a fit of clicks"):
        pm.recommend(found, clicks={"new": ["tea"]})
    bare = pm.fit(pm.Preferences.from_pairs(SAID), n_draws=20, n_chains=2, rng=1)
    with pytest.raises(ValueError, match="keep_latent=True for all"):
        pm.recommend(bare)
    full = pm.fit(pm.Preferences.from_rankings([[1, 2, 3], [1, 3, 2]]), "mcmc", rng=1)
    with pytest.raises(ValueError, match="full rankings, of which everything is known"):
        pm.recommend(full)


CLICKED = [(0, 1), (2,), (1, 2, 3), (0,), (3, 1)]


def clicks_law(row, alpha, distance):
    """``[rank - 1][item]``: the exact law of the latent ranking of a user with these clicks."""
    told = [lambda r, mine=mine: float(all(r[i] <= len(mine) for i in mine)) for mine in CLICKED]
    return exact_ranks(told.pop(row), told, alpha, distance)


@pytest.mark.parametrize("distance", ["spearman", "cayley", "hamming", "ulam"])
def test_users_of_clicks_without_sums_are_answered_by_kept_rankings(distance):
    prefs = pm.Preferences.from_clicks(dict(enumerate(map(list, CLICKED))), items=range(4))
    alpha = 0.5 if distance == "spearman" else 2.0
    how = {"alpha": alpha, "n_draws": 600, "n_chains": 2, "rng": 3, "distance": distance}
    found = pm.fit(prefs, "mcmc", keep_latent=True, **how)
    recs = pm.recommend(found, 3)
    assert recs.items[2].tolist() == [0, -1, -1]  # of what is not clicked, all there is
    for user, row in enumerate(CLICKED):
        c, unseen = len(row), [item for item in range(4) if item not in row]
        mine = pm.recommend(found, 4, users=[user], window=1)
        assert sorted(mine.items[0, : 4 - c].tolist()) == unseen
        exact = clicks_law(user, alpha, distance)[mine.items[0, : 4 - c], c]
        assert mine.probabilities[0, : 4 - c] == pytest.approx(exact, abs=0.05)
    kept = pm.recommend(found, 4, users=[1], exclude=[0])
    assert sorted(kept.items[0].tolist()) == [-1, -1, 1, 3]
    why = pm.recommendations.explain(found, 1, 0, k=2)
    assert why.names == sorted(why.names, key=lambda rank: -why.amounts[why.names.index(rank)])
    assert sorted(why.names) == [2, 3]
    assert why.amounts.sum() == pytest.approx(why.probability)
    assert user_intervals(found, 1)[2].tolist() == [1, 1]
    with pytest.raises(ValueError, match="1 has clicked 2 already"):
        pm.recommendations.explain(found, 1, 2)


@pytest.mark.parametrize("distance", ["hamming", "ulam"])
def test_new_users_of_clicks_without_sums_are_refused(distance, tmp_path):
    prefs = pm.simulate_clicks(20, 6, 6.0, 2.5, rng=1).preferences
    how = {"n_draws": 10, "n_chains": 2, "rng": 1, "distance": distance}
    found = pm.fit(prefs, "mcmc", **how)
    file = tmp_path / "next.csv"
    for ask in (
        lambda: pm.recommend(found, clicks={"new": [1]}),
        lambda: pm.recommendations.memberships(found, {"new": [1]}),
        lambda: pm.recommendations.recommend_to(found, file),
    ):
        with pytest.raises(ValueError, match="fit again with distance='footrule' or 'kendall'"):
            ask()
    assert not file.exists()
    with pytest.raises(ValueError, match="keep_latent=True for all"):
        pm.recommend(found)
    pm.report(found, tmp_path / "report.html")
    assert pm.evaluate(prefs, 1, 2, "mcmc", **how).posterior.latent.shape[2] == 20
