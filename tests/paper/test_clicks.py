"""The paper's law of the latent rankings (Algorithm 4), over all users."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.latent.clicks import ClickPopulation
from pseudomallows.latent.population import finish_draws
from pseudomallows.paper.clicks import PseudoDraw


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        return pm.fit(*arguments, **options)


@pytest.mark.parametrize("order", ["uniform", "v", "top_bottom"])
def test_every_order_finds_the_popular_items(order):
    data = pm.simulate_clicks(400, 12, 8, 4, rng=1)
    posterior = quietly(data.preferences, alpha=8.0, order=order, n_draws=50, rng=1)
    first = np.argsort(posterior.point_consensus())[:3]
    assert set(first) <= set(np.argsort(data.consensus)[:5])


CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)
ROWS = [[0, 3], [1, 2, 4], [4]]


def counts_of(rows, weights=None, number=1, order="uniform"):
    """``counts[item, rank - 1]`` of one draw of all users."""
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(5), weights=weights)
    population = ClickPopulation(prefs, pm.Threads(1))
    draw = PseudoDraw(population, CONSENSUS, 2.0, 5, number, order)
    (found,) = finish_draws([draw], pm.Threads(1))
    assert found.consensus.tolist() == [2, 5, 1, 3, 4]  # it stays
    return found.tally.counts


@pytest.mark.parametrize("order", ["uniform", "v", "top_bottom"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_clicked_items_have_the_first_ranks(row, order):
    counts = sum(counts_of([row], number=number, order=order) for number in range(50))
    others = [item for item in range(5) if item not in row]
    assert (counts.sum(axis=0) == 50).all()
    assert (counts.sum(axis=1) == 50).all()
    assert counts[row][:, len(row) :].sum() == counts[others][:, : len(row)].sum() == 0
    if len(row) > 1:
        assert (counts[row][:, : len(row)] > 0).all()  # in every order


def test_a_weight_gives_the_same_bits_as_repeated_rows():
    repeated = [row for row, weight in zip(ROWS, [2, 1, 3], strict=True) for _ in range(weight)]
    assert (counts_of(ROWS, [2, 1, 3]) == counts_of(repeated)).all()
    assert (counts_of(ROWS, [2, 1, 3]) != counts_of(repeated, number=2)).any()
