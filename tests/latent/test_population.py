import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.latent.click_population import ClickPopulation
from pseudomallows.latent.population import DrawOrigin, finish_draws
from pseudomallows.latent.ranking_population import RankingPopulation
from pseudomallows.paper.clicks import PseudoDraw

ROWS = [[0, 3, 0, 1, 0], [1, 2, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 5, 0, 0]]
CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)


CLICKS = {0: [0, 3], 1: [1, 2, 4], 2: [4], 3: [3]}


def clicks():
    return pm.Preferences.from_clicks(CLICKS, items=range(5))


DRAWS = {  # how each kind of draw begins, and whether it moves the consensus
    "exact rankings": (
        lambda consensus, number: RankingPopulation(pm.Preferences.from_rankings(ROWS)).begin_draw(
            consensus, 2.0, 5, number
        ),
        True,
    ),
    "exact clicks": (
        lambda consensus, number: ClickPopulation(clicks()).begin_draw(consensus, 2.0, 5, number),
        True,
    ),
    "paper": (
        lambda consensus, number: PseudoDraw(
            ClickPopulation(clicks()), DrawOrigin(consensus, 2.0, 5, number), "uniform"
        ),
        False,
    ),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_draw_does_not_change_the_consensus_it_is_given(kind):
    begin, moves = DRAWS[kind]
    given, moved = CONSENSUS.copy(), []
    for number in range(20):
        (found,) = finish_draws([begin(given, number)], pm.Threads(1))
        assert (given == CONSENSUS).all()
        assert sorted(found.consensus.tolist()) == [1, 2, 3, 4, 5]
        moved.append((found.consensus != CONSENSUS).any())
    assert any(moved) == moves


def test_the_method_draw_changes_nothing_either():
    given, population = CONSENSUS.copy(), ClickPopulation(clicks())
    for number in range(20):
        population.draw(given, 2.0, 5, number)
    assert (given == CONSENSUS).all()
