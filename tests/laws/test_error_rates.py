"""Users who compare pairs: sweeps and fits against enumeration, errors and all."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import naive
import pseudomallows as pm
from helpers import p_value
from law_cases import one_cluster
from pseudomallows import distances
from pseudomallows.laws import augmented
from pseudomallows.laws.augmented import AugmentedLaw
from pseudomallows.laws.error_rates import MODELS, Bernoulli, Logistic, NoErrors, cut_beta
from pseudomallows.sampling.chain import Chain, Moves, new_state

pytestmark = pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.ContradictionWarning")
ITEMS = ["a", "b", "c"]
SAID = {
    "ann": [("a", "b"), ("b", "c")],
    "bob": [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b")],  # a cycle
    "cem": [("a", "c")],
}
PAIRS = [[tuple(ITEMS.index(item) for item in pair) for pair in pairs] for pairs in SAID.values()]
ALPHA = 1.0
EDGES = (0.2, 0.33)  # of the bins of theta


def preferences(said=None):
    return pm.Preferences.from_pairs(SAID if said is None else said, items=ITEMS)


@functools.cache
def joint_law(alpha=ALPHA, prior=(1.0, 1.0), name="footrule"):
    """{(consensus, latent rankings): probability}, theta integrated out."""
    law = {}
    for consensus in naive.all_rankings(3):
        around = naive.mallows(consensus, alpha, name)
        for latent in itertools.product(around, repeat=len(PAIRS)):
            right, wrong = errors_in(latent)
            cut = stats.beta(prior[0] + wrong, prior[1] + right)
            told = math.exp(math.lgamma(prior[0] + wrong) + math.lgamma(prior[1] + right))
            law[consensus, latent] = told * cut.cdf(0.5) * math.prod(around[r] for r in latent)
    return naive.normalise(law)  # the number of statements is the same for all


def errors_in(latent):
    right = sum(r[b] < r[w] for r, pairs in zip(latent, PAIRS, strict=True) for b, w in pairs)
    return right, sum(map(len, PAIRS)) - right


@functools.cache
def law_of_consensus_and_theta(prior=(1.0, 1.0)):
    """{(consensus..., bin of theta): probability}."""
    law = {}
    for (consensus, latent), probability in joint_law(prior=prior).items():
        right, wrong = errors_in(latent)
        cut = stats.beta(prior[0] + wrong, prior[1] + right)
        sums = np.array([0.0, *(cut.cdf(edge) for edge in EDGES), cut.cdf(0.5)]) / cut.cdf(0.5)
        for place, share in enumerate(np.diff(sums)):
            key = (*consensus, place)
            law[key] = law.get(key, 0) + probability * share
    return law


def ends_of_sweeps(alpha=ALPHA, prior=(1.0, 1.0), n_starts=3000):
    """Consensus and bin of theta after a sweep that begins at the exact joint posterior."""
    keys, probabilities = zip(*joint_law().items(), strict=True)
    rng, ends, moves = np.random.default_rng(3), [], Moves("swap", 1, 2)
    law = AugmentedLaw(preferences(), pm.Threads(1), distances.FOOTRULE, Bernoulli(3, prior))
    start = new_state(law, one_cluster((1, 2, 3), alpha), np.ones(1), None, moves)
    chain = Chain(law, start, moves, rng)
    for key in rng.choice(len(keys), n_starts, p=probabilities):
        consensus, latent = keys[key]
        right, wrong = errors_in(latent)
        chain.go_to(
            start._replace(
                consensus=np.array([consensus], np.int32),
                latent=np.array(latent, np.int32),
                errors=np.array([cut_beta(1 + wrong, 1 + right, rng.random())]),
            )
        )
        chain.sweep(adapt=False)
        (theta,) = chain.state.errors
        ends.append((*chain.state.consensus[0].tolist(), int(np.searchsorted(EDGES, theta))))
    return ends


def test_a_sweep_leaves_consensus_and_theta_as_they_are():
    assert p_value(ends_of_sweeps(), law_of_consensus_and_theta()) > 1e-4


@pytest.mark.parametrize("how", [{"alpha": 4 * ALPHA}, {"prior": (4.0, 1.0)}], ids=str)
def test_a_sweep_of_another_model_is_caught(how):
    assert p_value(ends_of_sweeps(**how), law_of_consensus_and_theta()) < 1e-4


FOUR = ["a", "b", "c", "d"]
SAID_OF_FOUR = {
    "ann": [("a", "b"), ("b", "d"), ("c", "d")],
    "cem": [("b", "a"), ("a", "c")],
    "bob": [("a", "b"), ("b", "c"), ("c", "a"), ("d", "c")],
}


@functools.cache
def exact_posterior(name, model, n_items=3, shape=2.0):
    """Marginals of the consensus, and means of alpha and theta, by sums over grids."""
    items, everything = (ITEMS, SAID) if n_items == 3 else (FOUR, SAID_OF_FOUR)
    said = [[tuple(map(items.index, pair)) for pair in pairs] for pairs in everything.values()]
    said = said if model == "bernoulli" else [pairs for pairs in said if len(pairs) < 4]
    rankings, alphas = naive.all_rankings(n_items), np.exp(np.linspace(-4.0, 4.1, 60))
    prior = stats.gamma(shape, scale=1 / (2 / n_items + 1 / 20)).pdf(alphas) * alphas
    thetas = (np.arange(60) + 0.5) / 120 if model == "bernoulli" else [0.0]
    probabilities = np.array(
        [
            [
                [
                    naive.probability_of_statements(pairs, r, lambda _, t=theta: t)
                    for theta in thetas
                ]
                for r in rankings
            ]
            for pairs in said
        ]
    )  # [user, ranking, theta]
    table = np.empty((len(rankings), len(alphas), len(thetas)))
    for row, consensus in enumerate(rankings):
        for column, alpha in enumerate(alphas):
            law = np.array(list(naive.mallows(consensus, float(alpha), name).values()))
            table[row, column] = prior[column] * np.prod(law @ probabilities, axis=0)
    table /= table.sum()
    consensus = dict(zip(rankings, table.sum(axis=(1, 2)).tolist(), strict=True))
    return naive.marginals(consensus), table.sum(axis=(0, 2)) @ alphas, table.sum((0, 1)) @ thetas


def check_fit(name, model, n_draws, tolerance, n_items=3):
    items, said = (ITEMS, SAID) if n_items == 3 else (FOUR, SAID_OF_FOUR)
    said = said if model == "bernoulli" else {user: said[user] for user in ("ann", "cem")}
    how = {"n_draws": n_draws, "n_chains": 2, "rng": 1, "distance": name}
    found = pm.fit(pm.Preferences.from_pairs(said, items=items), "mcmc", **how)
    assert found.settings["options"]["errors"] == model
    marginals, alpha, theta = exact_posterior(name, model, n_items)
    assert np.abs(found.rank_probabilities() - marginals).max() < tolerance
    assert found.alpha.mean() == pytest.approx(alpha, rel=3 * tolerance)
    if model == "bernoulli":
        assert found.theta.mean() == pytest.approx(theta, abs=tolerance)
    _, wrong, _ = exact_posterior(name, model, n_items, shape=6.0)  # of another prior
    assert found.alpha.mean() != pytest.approx(wrong, rel=3 * tolerance)


def test_a_fit_has_the_exact_posterior_of_consensus_alpha_and_theta():
    check_fit("kendall", "bernoulli", 800, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", distances.DISTANCES)
@pytest.mark.parametrize("model", ["none", "bernoulli"])
@pytest.mark.parametrize("n_items", [3, 4])
def test_a_long_fit_has_the_exact_posterior_by_every_distance(name, model, n_items):
    check_fit(name, model, 3000, 0.025, n_items)


def test_who_never_errs_is_never_caught_in_a_contradiction():
    with pytest.raises(ValueError, match=r"1 of 3 users gives contradictory answers: user .bob."):
        pm.fit(preferences(), "mcmc", errors="none", rng=1)


@pytest.mark.filterwarnings("default::pseudomallows.diagnostics.ContradictionWarning")
def test_contradictions_are_said_where_errors_are_not_given():
    how = {"n_draws": 200, "n_chains": 2, "rng": 1}
    with pytest.warns(
        pm.diagnostics.ContradictionWarning, match="1 of 3 users .* 'a' to 'b' to 'c' to 'a'"
    ):
        found = pm.fit(preferences(), **how)
    assert found.settings["options"]["errors"] == "bernoulli"
    chosen = pm.fit(preferences(), errors="logistic", **how)
    assert chosen.errors.shape == (2, 200, 2)
    assert 0 < chosen.theta.mean() < 0.5
    with pytest.raises(ValueError, match="does not allow for"):
        _ = pm.fit(
            pm.Preferences.from_rankings([[1, 2, 3], [2, 1, 3]]), "pseudo", alpha=1, rng=1
        ).theta


def test_theta_is_cut_off_at_a_half_and_follows_its_law():
    drawn = [cut_beta(3.0, 4.0, u) for u in np.random.default_rng(1).random(2000)]
    law = stats.beta(3, 4)
    assert stats.kstest(drawn, lambda x: law.cdf(x) / law.cdf(0.5)).pvalue > 1e-4
    assert stats.kstest(drawn, lambda x: stats.beta(4, 4).cdf(x) / 0.5).pvalue < 1e-6
    assert max(drawn) <= 0.5
    far = [cut_beta(2000.0, 5.0, u) for u in (0.0, 0.3, 1.0)]  # nearly all is beyond a half
    assert all(0.0 < theta <= 0.5 for theta in far)


def test_the_certainties_follow_their_law():
    counts = np.array([[0, 0], [6, 4], [5, 1], [7, 0]])

    def density(one, other):
        odds = one + other * np.array([0.0, 0.0, 0.5, 1.0])
        told = -counts[:, 0] @ np.logaddexp(0, -odds) - counts[:, 1] @ np.logaddexp(0, odds)
        return math.exp(told - (one + other) / 5)

    total = integrate.dblquad(lambda y, x: density(x, y), 0, 12, 0, 60)[0]
    exact = integrate.dblquad(lambda y, x: x * density(x, y), 0, 12, 0, 60)[0] / total
    errors, rng, found = Logistic(4), np.random.default_rng(2), []
    values = errors.first_values()
    for _ in range(4000):
        values = errors.moved(values, counts, rng)
        found.append(values[0])
    assert np.mean(found) == pytest.approx(exact, rel=0.1)
    assert exact > 0.3  # certainty 0 for neighbours would be wrong half of the time


def test_every_model_says_what_its_values_are():
    for name, model in MODELS.items():
        made = model(5)
        law = made.law(made.first_values())
        assert made.name == name
        assert len(made.first_values()) == len(made.names)
        if name != "none":
            assert np.exp(law.right) + np.exp(law.wrong) == pytest.approx(np.ones(5))
            assert (law.wrong[1:] <= law.right[1:]).all()
    assert NoErrors(5).law(np.empty(0)).is_strict


def test_threads_change_nothing_and_weights_count_as_users():
    rng = np.random.default_rng(5)
    said = {
        user: [tuple(f"i{k}" for k in rng.choice(6, 2, replace=False)) for _ in range(6)]
        for user in range(40)
    }
    once = pm.Preferences.from_pairs(said, weights=[2] * 40)
    twice = pm.Preferences.from_pairs({(user, k): said[user] for user in said for k in (0, 1)})
    how = {"n_draws": 10, "n_chains": 1, "warmup": 5, "rng": 5}
    found = []
    for prefs, executor in ((twice, pm.Threads(1)), (twice, pm.Threads(2)), (once, None)):
        with pytest.warns(pm.ConvergenceWarning):
            found.append(pm.fit(prefs, "mcmc", executor=executor, **how))
    for other in found[1:]:
        assert np.array_equal(found[0].consensus, other.consensus)
        assert np.array_equal(found[0].errors, other.errors)


@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_clusters_of_people_who_compare_are_found():
    rng = np.random.default_rng(2)
    rankings = np.concatenate(
        [
            pm.Mallows(center, 12.0).draw(40, rng=seed)
            for seed, center in enumerate([range(1, 9), range(8, 0, -1)])
        ]
    )
    said = {}
    for user, ranks in enumerate(rankings):
        pairs = [rng.choice(8, 2, replace=False) for _ in range(12)]
        said[user] = [tuple(sorted(pair.tolist(), key=lambda i: ranks[i])) for pair in pairs]
    found = pm.fit(
        pm.Preferences.from_pairs(said), "mcmc", n_clusters=2, n_draws=50, n_chains=2, rng=1
    )
    truth = np.repeat([0, 1], 40)
    agreement = np.mean(found.labels == truth)
    assert max(agreement, 1 - agreement) > 0.95


def test_votes_without_room_are_told_what_needs_none(monkeypatch):
    monkeypatch.setattr(augmented, "available_memory", lambda: 10**6)
    votes = pm.Preferences.from_pairs([("a", "b"), ("b", "c")], weights=[400_000, 1])
    with pytest.raises(ValueError, match=r"400,001 people.*distance='kendall'"):
        pm.fit(votes, distance="footrule", rng=1)
