"""Method "auto": what it chooses, what one gets, and where it gives way to an option."""

import functools

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.sampling.fit import choose_method
from pseudomallows.sampling.reproduce import call_of


@functools.cache
def data(kind):
    if kind == "pairs":
        return pm.Preferences.from_pairs([("ann", "tea", "ale"), ("bob", "tea", "rum")])
    if kind == "rankings":
        return pm.simulate_rankings(30, 6, alpha=3, rng=1).preferences
    return pm.simulate_clicks(150, 12, alpha=8, mean_clicks=4, rng=1).preferences


def asked(n_clusters=1, distance="footrule", needs_chain=False, **options):
    return n_clusters, distance, options, needs_chain


@pytest.mark.parametrize(
    ("kind", "call", "method"),
    [
        ("rankings", asked(), "mcmc"),
        ("rankings", asked(n_clusters=2), "mcmc"),
        ("rankings", asked(distance="ulam"), "mcmc"),
        ("rankings", asked(sigma=1.0), "pseudo"),
        ("rankings", asked(weighted=True), "balanced"),
        ("rankings", asked(sgima=1.0), "mcmc"),  # which says that it has no such option
        ("pairs", asked(), "mcmc"),
        ("pairs", asked(errors="bernoulli"), "mcmc"),
        ("clicks", asked(), "personal"),
        ("clicks", asked(distance="kendall"), "personal"),
        ("clicks", asked(distance="cayley"), "mcmc"),
        ("clicks", asked(blend=False), "personal"),
        ("clicks", asked(n_clusters=3), "mcmc"),
        ("clicks", asked(n_clusters="auto"), "mcmc"),
        ("clicks", asked(n_chains=2), "mcmc"),
        ("clicks", asked(needs_chain=True), "mcmc"),
        ("clicks", asked(order="v"), "pseudo"),
        ("clicks", asked(n_clusters="auto", order="v"), "pseudo"),
    ],
)
def test_the_best_method_that_has_the_options_is_chosen(kind, call, method):
    found, _, why = choose_method(data(kind), *call)
    assert found == method
    assert why.startswith(f"{method}, ")


@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_a_number_of_draws_asks_for_draws():
    assert pm.fit(data("clicks"), n_draws=5, rng=1).method == "mcmc"


@pytest.fixture(scope="module")
def both():
    """The default fit of clicks."""
    return pm.fit(data("clicks"), rng=3)


def test_a_fit_of_clicks_answers_for_each_user_and_for_all(both):
    own = pm.fit(data("clicks"), "personal", rng=3)
    assert (both.item_weights == own.item_weights).all()  # the same bits as without the consensus
    assert both.settings["chosen"].startswith("personal")
    exact = pm.fit(data("clicks"), "mcmc", rng=4)
    assert np.abs(both.mean_ranks() - exact.mean_ranks()).max() < 0.6
    assert np.abs(np.array(both.intervals()) - np.array(exact.intervals())).max() <= 2
    assert both.summary() == both.population.summary()
    assert both.population.data is data("clicks")
    with pytest.raises(AttributeError, match="with_consensus=True adds the consensus"):
        own.summary()


def test_a_saved_one_has_both(both, tmp_path):
    both.save(tmp_path / "m.pm")
    found = pm.load(tmp_path / "m.pm")
    assert (found.consensus == both.consensus).all()
    assert (found.population.alpha == both.population.alpha).all()
    assert found.population.data is found.data
    assert found.settings == both.settings
    again = "pm.fit(prefs, method='personal', with_consensus=True, rng=3)"
    assert call_of(found) == again


def test_an_update_brings_both_up_to_date(both):
    newer = both.update({"zoe": [0, 4, 7]}, rng=5)
    assert newer.population.n_users == newer.n_users == both.n_users + 1
    assert newer.population.data is newer.data
    assert newer.population.settings["updates"] == 1
    assert np.abs(newer.mean_ranks() - both.mean_ranks()).max() < 0.6


def test_too_few_users_have_one_order_for_all():
    few = pm.simulate_clicks(30, 6, alpha=8, mean_clicks=3, rng=1).preferences
    many = pm.Preferences.from_clicks([[1, 0], [0, 1], [1, 1]] * 100)
    for prefs in (few, many):
        found, _, why = choose_method(prefs, *asked())
        assert found == "mcmc"
        assert "as fewer than 50 users have 2 clicks or more and an item left" in why


def test_rankings_get_the_exact_posterior():
    found, exact = pm.fit(data("rankings"), rng=1), pm.fit(data("rankings"), "mcmc", rng=1)
    assert (found.consensus == exact.consensus).all()
    assert found.settings["chosen"] == "mcmc, the exact posterior: the default for rankings"
