"""Which data get which law, and what is refused where nothing exact is known."""

import pytest

import pseudomallows as pm
from pseudomallows import distances
from pseudomallows.laws.augmented import AugmentedLaw
from pseudomallows.laws.block_laws import ClickBlocks, RankedBlocks
from pseudomallows.laws.full import FullLaw
from pseudomallows.laws.kendall_clicks import KendallClicks
from pseudomallows.laws.registry import find_law, make_law
from pseudomallows.laws.votes import VoteLaw


class Elsewhere:
    """An executor of other processes that is never asked to run anything."""

    is_remote = True


RANKINGS = [[1, 2, 3], [2, 1, 3]]
FULL = pm.Preferences.from_rankings(RANKINGS)
PARTIAL = pm.Preferences.from_rankings([[1, 0, 0], [1, 1, 3]])
GAPS = pm.Preferences.from_rankings([[0, 2, 0], [1, 2, 3]])
CLICKS = pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 1]])
VOTES = pm.Preferences.from_pairs([("a", "b"), ("b", "c")])
SEVERAL = pm.Preferences.from_pairs({"ann": [("a", "b"), ("b", "c")]})


@pytest.mark.parametrize("distance", distances.DISTANCES)
def test_full_rankings_have_one_law_by_any_distance(distance):
    assert type(make_law(FULL, None, distance)) is FullLaw


@pytest.mark.parametrize(
    ("prefs", "distance", "expected"),
    [
        (PARTIAL, "footrule", RankedBlocks),
        (PARTIAL, "hamming", RankedBlocks),
        (PARTIAL, "kendall", FullLaw),
        (GAPS, "footrule", RankedBlocks),
        (GAPS, "kendall", AugmentedLaw),
        (CLICKS, "footrule", ClickBlocks),
        (CLICKS, "kendall", KendallClicks),
        (VOTES, "kendall", VoteLaw),
        (VOTES, "footrule", AugmentedLaw),
        (SEVERAL, "kendall", AugmentedLaw),
        (pm.Preferences.concat([FULL, CLICKS]), "footrule", AugmentedLaw),
    ],
)
def test_data_and_distance_say_the_law(prefs, distance, expected):
    law = make_law(prefs, None, distance)
    assert type(law) is expected
    assert law.n_items == 3
    assert law.has_latent == (expected is AugmentedLaw)
    assert (find_law(prefs, distance) is None) == (expected is AugmentedLaw)


@pytest.mark.parametrize("distance", ["spearman", "cayley", "ulam"])
@pytest.mark.parametrize("prefs", [PARTIAL, CLICKS, VOTES], ids=["partial", "clicks", "votes"])
def test_where_nothing_is_exact_latent_rankings_are_kept(prefs, distance):
    law = make_law(prefs, None, distance)
    assert type(law) is AugmentedLaw
    assert law.n_rows == 2


def test_workers_take_no_rankings():
    with pytest.raises(TypeError, match="got rankings by footrule: leave executor out"):
        make_law(FULL, Elsewhere())
    with pytest.raises(TypeError, match="got clicks by hamming: leave executor out"):
        make_law(CLICKS, Elsewhere(), "hamming")


def test_data_that_say_nothing_and_what_is_no_data_are_refused():
    for distance in ("footrule", "kendall", "cayley"):
        with pytest.raises(ValueError, match="no informative rows"):
            make_law(pm.Preferences.from_clicks([[0, 0], [1, 1]]), None, distance)
        with pytest.raises(ValueError, match="no informative rows"):
            make_law(pm.Preferences.from_rankings([[0, 0], [0, 0]]), None, distance)
    with pytest.raises(TypeError, match="prefs must be Preferences, got list"):
        make_law(RANKINGS, None)
