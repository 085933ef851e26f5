"""Do people share one order? Camps are found in every kind of data; the model itself is not."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.posterior.model_check import check_model

UP = np.arange(1, 11)
KINDS = ("full", "tied", "top", "gaps", "clicks", "pairs")


def hidden(rankings, kind, rng):
    """What is known of people with these rankings."""
    n_users, n_items = rankings.shape
    if kind == "full":
        return pm.Preferences.from_rankings(rankings)
    if kind == "tied":
        return pm.Preferences.from_rankings(np.array([0, 1, 1, 3, 3, 3, 6, 6, 6, 9, 9])[rankings])
    if kind == "top":
        return pm.Preferences.from_rankings(np.where(rankings <= 3, rankings, 0))
    if kind == "gaps":
        return pm.Preferences.from_rankings(rankings * (rng.random(rankings.shape) < 0.6))
    if kind == "clicks":
        return pm.Preferences.from_clicks(rankings <= rng.integers(1, 6, (n_users, 1)))
    said = {}
    for user in range(n_users):
        pairs = [rng.permutation(n_items)[:2] for _ in range(8)]
        said[user] = [sorted(pair.tolist(), key=rankings[user].__getitem__) for pair in pairs]
    return pm.Preferences.from_pairs(said, items=list(range(n_items)))


def people(sizes, orders, alpha, rng):
    laws = [pm.Mallows(order, alpha) for order in orders]
    return np.concatenate([law.draw(size, rng) for law, size in zip(laws, sizes, strict=True)])


def fitted(prefs, **how):
    """A short fit, and its check of the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(prefs, "mcmc", n_draws=40, rng=1, **how)
    return next(check for check in posterior.verdict().checks if check.name.startswith("split"))


@pytest.mark.parametrize("kind", KINDS)
def test_opposite_camps_are_found(kind):
    rng = np.random.default_rng(1)
    check = fitted(hidden(people((40, 40), (UP, UP[::-1]), 30, rng), kind, rng))
    assert check.answer == "no"
    assert "People do not share one order" in check.words
    assert "n_clusters" in check.advice


@pytest.mark.parametrize("kind", KINDS)
def test_a_fifth_with_the_reverse_order_is_found(kind):
    rng = np.random.default_rng(1)
    assert fitted(hidden(people((64, 16), (UP, UP[::-1]), 30, rng), kind, rng)).answer != "yes"


@pytest.mark.parametrize("kind", KINDS)
def test_people_from_the_model_pass(kind):
    rng = np.random.default_rng(2)
    for alpha in (0.5, 3, 20):
        check = fitted(hidden(people((60,), (UP,), alpha, rng), kind, rng))
        assert (check.answer, check.value) == ("yes", 0.0)


def test_camps_that_differ_by_neighbours_alone_pass():
    other = np.array([2, 1, 4, 3, 5, 6, 8, 7, 10, 9])
    rng = np.random.default_rng(3)
    rankings = people((400, 400), (UP, other), 30, rng)
    assert fitted(hidden(rankings, "full", rng)).answer == "yes"


def test_weights_count_as_people():
    rows = pm.Preferences.from_rankings([UP, UP[::-1]], weights=[40, 40])
    assert fitted(rows).answer == "no"
    assert fitted(pm.Preferences.from_rankings([UP, UP[::-1]] * 5, weights=[1, 0] * 5)).answer


@pytest.mark.parametrize("distance", ["kendall", "spearman", "cayley", "hamming", "ulam"])
def test_every_distance_has_the_check(distance):
    rng = np.random.default_rng(4)
    rankings = people((30, 30), (UP, UP[::-1]), 30, rng)
    assert fitted(hidden(rankings, "full", rng), distance=distance).answer == "no"


def test_impressions_pass_though_the_answers_choose_the_pairs():
    rng = np.random.default_rng(5)
    rankings = pm.Mallows(np.arange(1, 21), 10).draw(150, rng)
    shown = [rng.permutation(20)[:5] for _ in rankings]
    rows = [
        (user, int(item), int(ranks[item] <= np.sort(ranks[slate])[1]))
        for user, (ranks, slate) in enumerate(zip(rankings, shown, strict=True))
        for item in slate
    ]
    table = dict(zip(("user", "item", "clicked"), map(list, zip(*rows, strict=True)), strict=True))
    assert fitted(pm.Preferences.from_impressions(table)).answer == "yes"


def test_where_nothing_can_be_said_there_is_no_check():
    votes = pm.Preferences.from_pairs([("a", "b"), ("b", "c"), ("c", "a")] * 5)
    few = pm.Preferences.from_rankings([UP, UP[::-1]])
    rankings = people((20, 20), (UP, UP[::-1]), 30, np.random.default_rng(6))
    for prefs, how in ((votes, {}), (few, {}), (rankings, {"n_clusters": 2})):
        prefs = pm.Preferences.from_rankings(prefs) if isinstance(prefs, np.ndarray) else prefs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = pm.fit(prefs, "mcmc", n_draws=20, rng=1, **how)
        assert posterior.settings["model_check"] is None
        assert check_model(prefs, posterior) is None
    given = pm.fit(pm.Preferences.from_rankings(rankings), "mcmc", alpha=9, n_draws=100, rng=1)
    assert "model_check" not in given.settings  # which is no wiser than that alpha


def test_only_the_population_of_a_personal_fit_carries_it():
    shop = pm.datasets.online_retail(n_items=60, min_purchases=8)
    fit = pm.fit(shop, rng=1)  # without a warning, which would be an error here
    assert "one order" not in fit.verdict().words
    assert fit.population.verdict().answer == "no"
    assert "method='personal'" in fit.population.verdict().advice
