"""Algorithm 4 over all users, Algorithm 5 by enumeration, and recommendations by counting."""

import itertools
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import p_value
from pseudomallows.laws.registry import make_law
from pseudomallows.paper.clicks import PseudoChain, PseudoMoves


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
    law, moves = make_law(prefs, pm.Threads(1)), PseudoMoves(order=order)
    where = (CONSENSUS[None], np.array([2.0]), None)
    chain = PseudoChain(law, *where, moves, np.random.default_rng(1))
    chain.n_sweeps = number
    return chain.tally(0).counts


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


# By enumeration

ALPHA, N_ITEMS = 2.0, 4
LOG = {0: [0], 1: [0, 1], 2: [0, 1, 3]}  # the most clicked come first: 0, 1, 3, 2
VISITS = {
    "uniform": lambda size: list(itertools.permutations(range(size))),
    "v": lambda size: [tuple(np.argsort(v)) for v in naive.v_set(range(1, size + 1))],
    "top_bottom": lambda size: [tuple(range(size))],
}


def group_law(size, rate, order):
    """{ranks by place: probability} of a group of items."""
    center, visits = list(range(1, size + 1)), VISITS[order](size)
    laws = [naive.pseudo_mallows([center], rate * size, visit) for visit in visits]
    return {ranks: sum(law[ranks] for law in laws) / len(laws) for ranks in laws[0]}


def user_law(clicked, consensus, alpha, order):
    """{ranking: probability} by Algorithm 4."""
    law, rate = {}, alpha / len(consensus)
    groups = [[i for i in np.argsort(consensus) if (i in clicked) == is_in] for is_in in (1, 0)]
    tops, rests = (group_law(len(group), rate, order) for group in groups)
    for (top, p), (rest, q) in itertools.product(tops.items(), rests.items()):
        ranking = np.empty(len(consensus), dtype=int)
        ranking[groups[0]], ranking[groups[1]] = top, np.array(rest) + len(top)
        law[tuple(ranking.tolist())] = p * q
    return law


def sweep_law(alpha, order):
    """{consensus: probability} after one sweep of Algorithm 5 from the ranking by clicks."""
    every = [user_law(clicked, [1, 2, 4, 3], alpha, order) for clicked in LOG.values()]
    found = dict.fromkeys(naive.all_rankings(N_ITEMS), 0.0)
    for latent in itertools.product(*(law.items() for law in every)):
        q = pm.PseudoMallows([ranking for ranking, _ in latent], alpha)
        weight = np.prod([p for _, p in latent])
        for ranking in found:
            found[ranking] += weight * np.exp(q.log_probability(ranking))
    return found


def sweep_p_value(alpha, order):
    """p-value of 4,000 chains of one sweep against the law at ALPHA."""
    prefs = pm.Preferences.from_clicks(LOG, items=range(N_ITEMS))
    options = {"n_draws": 1, "n_chains": 4000, "warmup": 0, "order": order, "rng": 1}
    draws = quietly(prefs, "pseudo", alpha, **options).consensus[:, 0, 0]
    return p_value(draws, sweep_law(ALPHA, order))


@pytest.mark.parametrize("order", VISITS)
def test_a_sweep_follows_algorithm_5(order):
    assert sweep_p_value(ALPHA, order) > 1e-4


def test_a_sweep_at_a_slightly_wrong_alpha_is_caught():
    assert sweep_p_value(1.3 * ALPHA, "uniform") < 1e-6


def counted_z_scores(alpha, order):
    """Of counted probabilities against their law at ALPHA."""
    prefs = pm.Preferences.from_clicks(LOG, items=range(N_ITEMS))
    draws = np.tile([[1, 2, 4, 3], [3, 1, 2, 4]], (5000, 1))
    found, exact = pm.paper.count_next(prefs, draws, alpha, 2, order=order, rng=1), np.zeros((3, 4))
    for (user, clicked), consensus in itertools.product(LOG.items(), draws[:2].tolist()):
        for ranking, p in user_law(clicked, consensus, ALPHA, order).items():
            ahead = np.array(ranking) - len(clicked)
            exact[user] += p * ((ahead > 0) & (ahead <= 2)) / 2
    errors = np.sqrt(exact * (1 - exact) / len(draws)).clip(1e-9)
    return np.abs(found - exact).max(initial=0, where=(exact == 0) | (exact > 1 - 1e-9)), (
        ((found - exact) / errors)[(exact > 0) & (exact < 1 - 1e-9)]
    )


@pytest.mark.parametrize("order", VISITS)
def test_counted_probabilities_are_those_of_algorithm_4(order):
    off, z = counted_z_scores(ALPHA, order)
    assert off == pytest.approx(0, abs=1e-12)
    assert np.abs(z).max() < 4.5


def test_counts_at_a_slightly_wrong_alpha_are_caught():
    assert np.abs(counted_z_scores(1.5 * ALPHA, "uniform")[1]).max() > 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be 1 or more"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"order": "up"}, "order must be one of 'uniform', 'v', 'top_bottom'"),
        ({"consensus": [[1, 2]]}, "consensus must have 4 items, got 2"),
    ],
)
def test_what_cannot_be_counted_is_refused(given, message):
    prefs = pm.Preferences.from_clicks(LOG, items=range(N_ITEMS))
    usual = {"consensus": [[1, 2, 3, 4]], "alpha": 1.0, "k": 1}
    with pytest.raises(ValueError, match=message):
        pm.paper.count_next(prefs, **(usual | given))


@pytest.mark.filterwarnings("ignore::pseudomallows.ConvergenceWarning")
def test_a_fit_says_that_latent_rankings_are_by_algorithm_4():
    prefs = pm.Preferences.from_clicks({"ann": [0], "bob": [0, 1]}, items=range(4))
    for method, words in (("pseudo", "Algorithm 4"), ("balanced", "exactly")):
        posterior = pm.fit(prefs, method, alpha=2, n_draws=20, rng=1)
        assert words in posterior.settings["latent"]
