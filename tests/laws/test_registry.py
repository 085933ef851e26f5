"""Which data get which population, and what is refused where nothing exact is known."""

import pytest

import pseudomallows as pm
from pseudomallows import distances
from pseudomallows.latent.augmented.latent_rankings import AugmentedPopulation
from pseudomallows.latent.bucket_orders import BucketPopulation
from pseudomallows.latent.click_population import ClickPopulation
from pseudomallows.latent.ranking_population import RankingPopulation
from pseudomallows.latent.registry import EXACT, exact_of, make_population
from pseudomallows.preferences import KINDS


class Elsewhere:
    """An executor of other processes that is never asked to run anything."""

    is_remote = True


RANKINGS = [[1, 2, 3], [2, 1, 3]]


@pytest.mark.parametrize(
    ("prefs", "expected"),
    [
        (pm.Preferences.from_rankings(RANKINGS), BucketPopulation),
        (pm.Preferences.from_rankings([[1, 0, 0], [1, 1, 3]]), RankingPopulation),
        (pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 1]]), ClickPopulation),
    ],
    ids=["full", "partial", "clicks"],
)
def test_the_kind_of_data_says_the_population(prefs, expected):
    population = make_population(prefs, None)
    assert type(population) is expected
    assert (population.n_rows, population.n_items) == (2, 3)


def test_every_kind_of_data_but_the_mixed_has_an_exact_law():
    assert {kind for kind, _ in EXACT} == set(KINDS) - {"mixed"}
    assert {distance for _, distance in EXACT} <= set(distances.DISTANCES)


@pytest.mark.parametrize(
    "prefs",
    [
        pm.Preferences.from_rankings([[1, 0, 0], [2, 1, 3]]),
        pm.Preferences.from_rankings([[1, 1, 3]]),
    ],
    ids=["partial", "ties"],
)
def test_where_nothing_is_exact_latent_rankings_are_kept(prefs):
    population = make_population(prefs, None, "cayley")
    assert type(population) is AugmentedPopulation
    assert not population.sums_out
    assert exact_of(prefs, "cayley") is None


def test_workers_take_no_rankings():
    with pytest.raises(TypeError, match="got rankings by footrule: leave executor out"):
        make_population(pm.Preferences.from_rankings(RANKINGS), Elsewhere())


def test_data_that_say_nothing_and_what_is_no_data_are_refused():
    with pytest.raises(ValueError, match="no informative rows"):
        make_population(pm.Preferences.from_clicks([[0, 0], [1, 1]]), None)
    with pytest.raises(TypeError, match="prefs must be Preferences, got list"):
        make_population(RANKINGS, None)
