"""Chains on the matched law: with the correction they are exact, whatever the law proposes."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import p_value
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains import labelled_mixture, matched_mixture
from pseudomallows.inference.chains.labelled_mixture import LabelledMixture
from pseudomallows.inference.chains.matched_cluster import (
    MatchedCluster,
    MatchedProposals,
    best_on_grid,
)
from pseudomallows.inference.chains.matched_mixture import MatchedMixture
from pseudomallows.inference.chains.matched_starts import MatchedStart
from pseudomallows.inference.priors import default_prior
from pseudomallows.latent.matched.tables import MatchedTables
from pseudomallows.latent.matched.users import ClickedRows
from pseudomallows.latent.registry import make_population

FOUR = ((0,), (0, 1), (1, 2), (0, 1, 2), (3,), (0, 2))
FIVE = ((0, 1), (0,), (1, 2, 3), (0, 1, 2), (4, 0), (0, 3), (1,))
SPLIT = ((0, 4),) * 5 + ((1,),) * 6 + ((0, 1, 2, 3),) * 5 + ((1, 2, 3),) * 5  # many far from any


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        warnings.simplefilter("ignore", pm.diagnostics.AlphaWarning)
        return pm.fit(*arguments, **options)


def preferences(rows, n_items, weights=None):
    prefs = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(n_items))
    if weights is None:
        return prefs
    return pm.Clicks(np.array(weights), prefs.users, prefs.items, prefs.starts, prefs.codes)


@functools.cache
def log_chances(n_items, alphas):
    """{set of consensus ranks: log of the chance that they are clicked, at each alpha}."""
    rankings, center = naive.all_rankings(n_items), range(1, n_items + 1)
    distances = np.array([naive.footrule(ranking, center) for ranking in rankings])
    weights = np.exp(-np.outer(alphas, distances) / n_items)
    found = {}
    for size in range(n_items + 1):
        for places in itertools.combinations(range(n_items), size):
            first = [all(r[place] <= size for place in places) for r in rankings]
            found[places] = np.log(weights[:, first].sum(axis=1) / weights.sum(axis=1))
    return found


@functools.cache
def exact_law(rows, n_items, alphas, prior=None):
    """{consensus: probability at each alpha}; a prior of alpha makes them a joint law."""
    chances = log_chances(n_items, alphas)
    logs = {
        consensus: sum(chances[tuple(sorted(consensus[i] - 1 for i in row))] for row in rows)
        for consensus in naive.all_rankings(n_items)
    }
    if prior is None:
        of_alpha = np.zeros(len(alphas))
    else:  # the grid is even in log alpha
        of_alpha = prior[0] * np.log(alphas) - prior[1] * np.array(alphas)
    highest = max((log + of_alpha).max() for log in logs.values())
    weights = {consensus: np.exp(log + of_alpha - highest) for consensus, log in logs.items()}
    total = sum(weight.sum() for weight in weights.values())
    return {consensus: weight / total for consensus, weight in weights.items()}


GRID = tuple(np.exp(np.arange(math.log(1e-3), math.log(200.0), 0.04)).tolist())


def check_consensus(draws, law, least=1e-4):
    """Draws against a law; the rarest consensuses count as one."""
    sums = {consensus: float(np.sum(weight)) for consensus, weight in law.items()}
    rare = {c for c, p in sums.items() if p * len(draws) < 8}
    merged = {c: p for c, p in sums.items() if c not in rare}
    if rare:
        merged[()] = sum(sums[c] for c in rare)
        if merged[()] * len(draws) < 5:
            most = max(merged, key=merged.get)
            merged[most] += merged.pop(())
            rare_goes_to = most
        else:
            rare_goes_to = ()
    keys = [tuple(draw) for draw in draws.tolist()]
    keys = [rare_goes_to if key in rare else key for key in keys]
    expected = np.array(list(merged.values())) * len(keys)
    counts = [keys.count(key) for key in merged]
    return stats.chisquare(counts, expected * len(keys) / expected.sum()).pvalue


def alpha_errors(posterior, law):
    """Errors of the mean and of the spread of log alpha, in their standard errors."""
    marginal, logs = sum(law.values()), np.log(GRID)
    mean = (marginal * logs).sum()
    spread = math.sqrt((marginal * (logs - mean) ** 2).sum())
    fourth = (marginal * (logs - mean) ** 4).sum() / spread**4
    drawn = np.log(posterior.alpha.ravel())
    size = min(posterior.diagnostics().alpha_effective_size, len(drawn)) / 2  # of squares: less
    of_mean = (drawn.mean() - mean) / (spread / math.sqrt(size))
    of_spread = (drawn.var() / spread**2 - 1) / math.sqrt((fourth - 1) / size)
    return abs(of_mean), abs(of_spread)


def distort(monkeypatch, factor=0.6):
    """Tables that are far from right: swaps and steps of alpha go to the wrong places."""
    make = MatchedTables._make
    monkeypatch.setattr(
        MatchedTables, "_make", lambda self, *arguments: factor * make(self, *arguments)
    )


# one cluster: the exact posterior of consensus and alpha


LONG = {"n_chains": 1, "n_draws": 3000, "thin": 2, "warmup": 300, "rng": 1}
CHAINS = {
    "default": {},
    "few moves": {"n_moves": 9},
    "leap and shift": {"move": "leap_and_shift", "leap": 2},
    "random start": {"start": "random"},
    "flat prior": {"alpha_prior": (1.0, 0.2)},
}


@pytest.mark.parametrize("how", CHAINS)
@pytest.mark.parametrize(
    ("rows", "n_items"), [pytest.param(FOUR, 4, marks=pytest.mark.slow), (FIVE, 5)]
)
def test_consensus_and_alpha_follow_the_exact_posterior(rows, n_items, how):
    options = LONG | ({"thin": 4} if how == "few moves" else {}) | CHAINS[how]
    prior = options.get("alpha_prior", default_prior(n_items))
    law = exact_law(rows, n_items, GRID, prior)
    posterior = quietly(preferences(rows, n_items), "mcmc", **options)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_another_prior_is_told_from_the_right_one():
    posterior = quietly(preferences(FIVE, 5), "mcmc", alpha_prior=(2.0, 1.5), **LONG)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    assert max(alpha_errors(posterior, law)) > 6


@pytest.mark.slow
@pytest.mark.parametrize("how", ["default", "few moves"])
def test_the_correction_makes_up_for_tables_that_are_wrong(how, monkeypatch):
    distort(monkeypatch)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    options = LONG | {"thin": 6} | CHAINS[how]
    posterior = quietly(preferences(FIVE, 5), "mcmc", **options)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_without_correction_wrong_tables_have_a_wrong_posterior(monkeypatch):
    distort(monkeypatch, 0.4)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    posterior = quietly(preferences(FIVE, 5), "matched", **LONG)
    assert max(alpha_errors(posterior, law)) > 6


def forget_the_matched_law(monkeypatch):
    """A correction that compares the exact likelihoods alone."""
    weigh = MatchedMixture._weigh
    monkeypatch.setattr(MatchedMixture, "_weigh", lambda self: weigh(self)._replace(matched=0.0))
    zeros = lambda self: np.zeros(self.n_clusters)  # noqa: E731
    monkeypatch.setattr(LabelledMixture, "_matched_values", zeros)


def test_a_correction_that_forgets_the_change_of_the_matched_law_is_caught(monkeypatch):
    forget_the_matched_law(monkeypatch)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    posterior = quietly(preferences(FIVE, 5), "mcmc", **LONG)
    assert max(alpha_errors(posterior, law)) > 6


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0])
def test_a_given_alpha_stays_and_the_consensus_is_exact(alpha):
    posterior = quietly(preferences(FOUR, 4), "mcmc", alpha, **LONG)
    assert (posterior.alpha == alpha).all()
    law = exact_law(FOUR, 4, (alpha,))
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4


def split_p_value(method):
    posterior = quietly(preferences(SPLIT, 5), method, 5.0, **LONG | {"n_draws": 6000})
    return check_consensus(posterior.consensus[0, :, 0], exact_law(SPLIT, 5, (5.0,)))


def test_the_corrected_chain_is_exact_where_the_matched_law_is_not():
    """Users far from a consensus are taken too kindly: here the total variation is 0.24."""
    assert split_p_value("mcmc") > 1e-4
    assert split_p_value("matched") < 1e-10


def test_weights_count_as_users_and_who_says_nothing_changes_nothing():
    rows = (*FOUR[:2], FOUR[0], FOUR[0], *FOUR[2:])
    law = exact_law(rows, 4, GRID, default_prior(4))
    weighted = preferences((*FOUR, (), (0, 1, 2, 3), (1,)), 4, [3, *[1] * 5, 1, 7, 0])
    posterior = quietly(weighted, "mcmc", **LONG)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4
    again = quietly(preferences(rows, 4), "mcmc", **LONG)
    assert (again.consensus == posterior.consensus).all()
    assert (again.alpha == posterior.alpha).all()


def test_two_items_are_no_trouble():
    rows = ((0,), (0,), (1,), (0,))
    law = exact_law(rows, 2, GRID, default_prior(2))
    posterior = quietly(preferences(rows, 2), "mcmc", **LONG)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_the_log_posterior_is_that_of_its_draw():
    data = pm.simulate_clicks(60, 12, 5, 3, rng=1).preferences
    shape, rate = default_prior(12)
    posterior = quietly(data, "mcmc", n_draws=10, n_chains=2, rng=1)
    for chain, draw in ((0, 0), (1, 9)):
        alpha = posterior.alpha[chain, draw, 0]
        value = pm.click_log_likelihood(data, posterior.consensus[chain, draw, 0], alpha).sum()
        value += (shape - 1) * math.log(alpha) - rate * alpha
        assert posterior.log_posterior[chain, draw] == pytest.approx(value)


@pytest.mark.slow
def test_it_agrees_with_latent_rankings_drawn_one_by_one():
    prefs = pm.simulate_clicks(100, 12, 5, 3, rng=1).preferences
    new = quietly(prefs, "mcmc", n_draws=1000, rng=1)
    old = quietly(prefs, "mcmc", n_draws=2000, thin=5, augmentation="exact", rng=2)
    sizes = [each.diagnostics().least_effective_size for each in (new, old)]
    error = 4 * math.sqrt(0.25 * sum(1 / size for size in sizes))
    assert min(sizes) > 100
    assert np.abs(new.rank_probabilities() - old.rank_probabilities()).max() < error
    size = sum(1 / each.diagnostics().alpha_effective_size for each in (new, old))
    difference = np.log(new.alpha).mean() - np.log(old.alpha).mean()
    assert abs(difference) < 4 * np.log(old.alpha).std() * math.sqrt(size)


# its parts


def mixture_of(rows, n_items, centers, alphas, prior, rng, **options):
    """A chain where it stands, without users yet."""
    population = make_population(preferences(rows, n_items), pm.Threads(1))
    tables = tables_of(n_items, tuple(population.click_sizes.tolist()))
    proposals = MatchedProposals()
    clusters = [
        MatchedCluster(np.array(center, dtype=np.int32), alpha, proposals, prior, rng)
        for center, alpha in zip(centers, alphas, strict=True)
    ]
    for cluster in clusters:
        cluster.log_step = math.log(0.8)
    shares = np.array(options.get("shares", np.full(len(clusters), 1 / len(clusters))))
    corrected, n_moves = options.get("is_corrected", True), options.get("n_moves", 8)
    how = (clusters, shares, options.get("share_prior", 1.0), corrected, n_moves, rng)
    chain = LabelledMixture if corrected and len(clusters) > 1 else MatchedMixture
    return chain(population, tables, *how)


@functools.cache
def tables_of(n_items, sizes, factor=1.0):
    """Shared by many chains; with a factor they are wrong."""
    tables = MatchedTables(n_items, np.array(sizes))
    make = tables._make
    tables._make = lambda *arguments: factor * make(*arguments)
    return tables


def test_moves_of_one_cluster_that_are_refused_leave_it_as_it_was(monkeypatch):
    rng, center = np.random.default_rng(1), (2, 1, 3, 5, 4)
    chain = mixture_of(FIVE, 5, [center], [2.0], (2.0, 0.5), rng)
    chain.begin(np.zeros(7, dtype=np.int32))
    weigh, values = chain._users.weigh, []

    def worse_and_worse(*arguments):
        values.append(weigh(*arguments)._replace(exact=-1e6 * len(values)))
        return values[-1]

    monkeypatch.setattr(chain._users, "weigh", worse_and_worse)
    for _ in range(3):
        chain.sweep(adapt=False)
    assert (chain.consensus == center).all()
    assert chain.alpha.tolist() == [2.0]
    assert chain.values == values[0]
    assert len(values) == 4  # where it stood, and three times where it wanted to go


def test_moves_of_clusters_are_accepted_one_by_one(monkeypatch):
    rng = np.random.default_rng(1)
    centers, refused = np.array([(2, 1, 3, 5, 4), (5, 4, 3, 2, 1)]), np.array([1e6, 0.0])
    chain = mixture_of(FIVE, 5, centers, [2.0, 3.0], (2.0, 0.5), rng)
    chain.begin(np.array([0, 1, 0, 1, 0, 1, 0], dtype=np.int32))
    weigh = chain._users.weigh_own
    monkeypatch.setattr(chain._users, "weigh_own", lambda laws: weigh(laws) - refused)
    monkeypatch.setattr(chain, "_best_order", lambda: np.arange(2))
    ends = []
    for _ in range(4):
        chain.sweep(adapt=False)
        ends.append(chain.alpha[1])
    assert (chain.consensus[0] == centers[0]).all()
    assert chain.alpha[0] == 2.0
    assert len({3.0, *ends}) > 2
    chain._draw_labels(adapt=False)  # the users know which clusters went back
    own = chain._users.log_likelihoods(chain.laws(), chain._users.gather_labels())
    assert chain._own_values == pytest.approx(own, abs=1e-6)


def test_the_warmup_finds_how_many_moves_are_best(monkeypatch):
    prefs = pm.simulate_clicks(100, 20, 5, 4, rng=1).preferences
    lengths = []
    move = MatchedCluster.move

    def noted(self, n_moves, adapt):
        lengths.append((adapt, n_moves))
        return move(self, n_moves, adapt)

    monkeypatch.setattr(MatchedCluster, "move", noted)
    options = {"n_chains": 1, "n_draws": 10, "warmup": 60, "rng": 1}
    quietly(prefs, "mcmc", **options)
    after = {length for adapt, length in lengths if not adapt}
    assert len(after) == 1  # no more changes
    good = after.pop()
    assert good > matched_mixture.FIRST_MOVES * 20
    lengths.clear()
    distort(monkeypatch, 0.5)
    quietly(prefs, "mcmc", **options)
    assert lengths[-1][1] < good / 2
    lengths.clear()
    quietly(prefs, "mcmc", n_moves=77, **options)
    assert {length for adapt, length in lengths if not adapt} == {77}


def test_moves_of_clusters_without_correction_are_cut_into_rounds():
    def lengths(n_moves, n_rounds=2.0):
        rng, options = np.random.default_rng(1), {"n_moves": n_moves, "is_corrected": False}
        chain = mixture_of(FIVE, 5, [(1, 2, 3, 4, 5)] * 2, [2.0] * 2, None, rng, **options)
        chain._rounds_each = n_rounds
        return chain._lengths()

    assert lengths(1000) == (20, 50)
    assert lengths(7) == (1, 7)
    assert lengths(None) == (2, 100)
    assert lengths(None, 8.4) == (8, 50)


@pytest.mark.parametrize(("is_corrected", "least", "most"), [(True, 1, 5), (False, 2, 10)])
def test_a_sweep_has_more_rounds_where_more_labels_change(is_corrected, least, most):
    rounds = []
    for alpha in (3.0, 60.0):
        prefs = pm.simulate_clicks(300, 20, [alpha] * 2, 6, rng=1).preferences
        population = make_population(prefs, pm.Threads(1))
        how = (None, MatchedProposals(), default_prior(20), 1.0, is_corrected)
        start = MatchedStart(population, *how)
        chain = start.begin_at(
            start.clusters(2, np.random.default_rng(1), lambda: None), np.random.default_rng(2)
        )
        for _ in range(15):
            chain.sweep(adapt=True)
        rounds.append(chain._rounds_each)
        chain.sweep(adapt=False)
        assert chain._rounds_each == rounds[-1]  # no more changes
    assert 3 < rounds[0] <= most
    assert least <= rounds[1] < least + 0.5


def test_the_best_alpha_is_found_from_anywhere():
    for best, first in itertools.product((0.05, 3.0, 900.0), (0.02, 5.0, 5000.0)):
        found = best_on_grid(lambda alpha, best=best: -(math.log(alpha / best) ** 2), first)
        assert found == pytest.approx(best, rel=1e-6)


def test_the_best_place_is_the_best_by_enumeration():
    rng = np.random.default_rng(1)
    chain = mixture_of(FIVE, 5, [(5, 4, 3, 2, 1)], [5.0], (2.0, 0.5), rng)
    chain.begin(np.zeros(len(FIVE), dtype=np.int32))
    cluster = chain.clusters[0]
    for _ in range(5):
        cluster.climb()
    curves = [cluster.tally.curve(np.array(c)) for c in naive.all_rankings(5)]
    grid = np.exp(np.arange(-3, 4, 0.1))
    best = max(curve(a) + math.log(a) - 0.5 * a for curve in curves for a in grid)
    here = cluster.tally.curve(cluster.consensus)(cluster.alpha)
    assert here + math.log(cluster.alpha) - 0.5 * cluster.alpha > best - 0.02


def test_the_difference_is_the_exact_minus_the_matched_log_likelihood():
    rng = np.random.default_rng(1)
    rows = [(0, 1), (3, 4), (2,), (0, 3), (2, 3, 4), (1, 4)]
    centers, alphas, shares = [(1, 2, 3, 4, 5), (2, 1, 3, 5, 4)], [3.0, 8.0], [0.7, 0.3]
    chain = mixture_of(rows, 5, centers, alphas, None, rng, shares=shares)
    chain.begin(np.zeros(6, dtype=np.int32))
    exact = matched_value = 0.0
    for row in rows:
        values, near = [], []
        for center, alpha in zip(centers, alphas, strict=True):
            values.append(naive.click_likelihood(row, center, alpha))
            table = chain.law.at(alpha)[len(row) - 1]
            near.append(math.exp(sum(table[center[i] - 1] for i in row)) / math.comb(5, len(row)))
        exact += math.log(np.dot(values, shares))
        matched_value += math.log(np.dot(near, shares))
    assert abs(exact - matched_value) > 0.1
    assert chain.difference() == pytest.approx(exact - matched_value, abs=1e-4)


# clusters: the exact posterior


TINY = ((0,), (0, 1), (2,), (1, 2))
SETTING = {"n_items": 3, "alpha": 1.5, "prior": 0.7}


@functools.cache
def mixture_law(rows=TINY):
    n_items, alpha, prior = SETTING.values()
    likelihood = {
        (user, center): naive.click_likelihood(row, center, alpha)
        for user, row in enumerate(rows)
        for center in naive.all_rankings(n_items)
    }
    return naive.mixture_posterior(lambda *key: likelihood[key], len(rows), n_items, 2, prior)


def together(labels):
    """Who is with whom, whatever the clusters are called."""
    return tuple(np.array(labels) == labels[0])


def labels_given(mixture, rng):
    """The labels of a chain, or labels by the memberships where it stands."""
    if isinstance(mixture, LabelledMixture):
        return mixture._users.gather_labels()
    edges = np.cumsum(mixture._users.gather_present(), axis=1)
    places = rng.random((len(edges), 1)) * edges[:, -1:]
    return (edges[:, :-1] <= places).sum(axis=1)


def ends_of_sweeps(n_draws, factor, is_corrected, alpha=SETTING["alpha"]):
    """From the exact posterior by one sweep on tables times `factor`: centers, and who is
    together."""
    rng, law = np.random.default_rng(5), mixture_law()
    places, ends = list(law), []
    for place in rng.choice(len(places), n_draws, p=list(law.values())):
        centers, labels = places[place]
        shares = rng.dirichlet(SETTING["prior"] + np.bincount(labels, minlength=2))
        options = {"shares": shares, "share_prior": SETTING["prior"], "is_corrected": is_corrected}
        mixture = mixture_of(TINY, 3, centers, [alpha] * 2, None, rng, **options)
        mixture.law = mixture._users.law = tables_of(3, (1, 2), factor)
        mixture.begin(np.array(labels, dtype=np.int32))
        mixture.sweep(adapt=False)
        pair = sorted(map(tuple, mixture.consensus.tolist()))
        ends.append((*itertools.chain(*pair), *together(labels_given(mixture, rng).tolist())))
    exact = {}
    for (centers, labels), probability in law.items():
        key = (*itertools.chain(*sorted(centers)), *together(labels))
        exact[key] = exact.get(key, 0.0) + probability
    return np.array(ends, dtype=int), exact


def p_value_of_ends(*arguments, **options):
    """Who is together, and which centers there are, apart: all in one would be too rare."""
    ends, law = ends_of_sweeps(*arguments, **options)
    values = []
    for part in (slice(0, 6), slice(6, 10)):
        merged = {}
        for key, probability in law.items():
            merged[key[part]] = merged.get(key[part], 0.0) + probability
        values.append(p_value(ends[:, part], merged))
    return min(values)


def test_a_sweep_of_clusters_leaves_the_exact_posterior_as_it_is():
    assert p_value_of_ends(2000, 1.0, True) > 1e-4


def test_so_does_one_that_proposes_by_tables_that_are_wrong():
    assert p_value_of_ends(2000, -0.5, True) > 1e-4


def test_so_does_one_of_many_rounds_by_such_tables(monkeypatch):
    monkeypatch.setattr(LabelledMixture, "least_rounds", 4)
    assert p_value_of_ends(800, -0.5, True) > 1e-4


def test_one_that_never_goes_back_does_not(monkeypatch):
    monkeypatch.setattr(MatchedCluster, "go_to", lambda self, place: None)
    assert p_value_of_ends(2000, -0.5, True) < 1e-4


def stay_with_clusters(monkeypatch):
    """Sweeps that move labels and shares only, so that the step of the labels is on trial."""
    monkeypatch.setattr(MatchedCluster, "move", lambda self, *arguments: None)
    monkeypatch.setattr(MatchedCluster, "wander", lambda self: None)
    monkeypatch.setattr(LabelledMixture, "least_rounds", 2)


def test_labels_that_are_drawn_by_wrong_tables_are_accepted_by_the_exact_law(monkeypatch):
    stay_with_clusters(monkeypatch)
    assert p_value_of_ends(1000, -0.5, True) > 1e-4


def test_labels_that_are_accepted_by_the_matched_law_alone_are_not_exact(monkeypatch):
    stay_with_clusters(monkeypatch)
    monkeypatch.setattr(ClickedRows, "judge", lambda self, rows, *_: np.ones(len(rows), bool))
    assert p_value_of_ends(1000, -0.5, True) < 1e-4


def test_nor_are_labels_whose_acceptance_forgets_how_they_were_drawn(monkeypatch):
    stay_with_clusters(monkeypatch)
    draw, judge = ClickedRows.draw, ClickedRows.judge

    def noted(self, logs, *how):
        self.drawn = draw(self, logs, *how)
        self.logs = logs - self.log_shares
        return self.drawn

    def matched_logs(self, laws):
        self.log_shares = laws.log_shares
        return plain(self, laws)

    def forgetful(self, rows, log_ratios, *how):
        new = self.drawn[rows]  # of two clusters, so that the old one is the other
        matched = self.logs[rows, new] - self.logs[rows, 1 - new]
        return judge(self, rows, log_ratios + matched, *how)

    plain = ClickedRows.matched_logs
    monkeypatch.setattr(ClickedRows, "matched_logs", matched_logs)
    monkeypatch.setattr(ClickedRows, "draw", noted)
    monkeypatch.setattr(ClickedRows, "judge", forgetful)
    assert p_value_of_ends(1000, -0.5, True) < 1e-4


def test_a_sweep_that_forgets_the_change_of_the_matched_law_does_not(monkeypatch):
    forget_the_matched_law(monkeypatch)
    assert p_value_of_ends(2000, 1.0, True) < 1e-4


def test_without_correction_such_a_sweep_does_not():
    assert p_value_of_ends(2000, -0.5, False) < 1e-10


def test_a_sweep_of_clusters_at_another_alpha_does_not():
    assert p_value_of_ends(2000, 1.0, True, alpha=4.0) < 1e-4


STATISTICS = ("largest alpha", "least alpha", "largest share", "most users", "log likelihood")


def statistics(mixture, rows, labels):
    """Numbers that do not depend on the order of the clusters."""
    prefs = preferences(rows, mixture.n_items)
    logs = [
        pm.click_log_likelihood(prefs, center, alpha)
        for center, alpha in zip(mixture.consensus, mixture.alpha, strict=True)
    ]
    fit = np.logaddexp.reduce(np.transpose(logs) + np.log(mixture.shares), axis=1).sum()
    sizes = np.bincount(labels, minlength=2)
    return [max(mixture.alpha), min(mixture.alpha), max(mixture.shares), sizes.max(), fit]


def geweke(prior_rate, factor=1.0, is_corrected=True, n_draws=400, n_sweeps=5):
    """p-values: truth from the prior, data from the truth, then sweeps, must keep the law."""
    rng, n_users, n_items = np.random.default_rng(7), 5, 4
    before, after = [], []
    for _ in range(n_draws):
        alphas, shares = rng.gamma(3.0, 1 / 0.8, 2), rng.dirichlet([0.7, 0.7])
        centers = [rng.permutation(n_items) + 1 for _ in alphas]
        labels = rng.choice(2, n_users, p=shares)
        rankings = [pm.Mallows(centers[k], alphas[k]).draw(1, rng)[0] for k in labels]
        sizes = rng.integers(1, n_items, n_users)
        rows = [
            tuple(np.flatnonzero(ranking <= size).tolist())
            for ranking, size in zip(rankings, sizes, strict=True)
        ]
        options = {"shares": shares, "share_prior": 0.7, "is_corrected": is_corrected}
        prior = (3.0, prior_rate)
        mixture = mixture_of(rows, n_items, centers, alphas.tolist(), prior, rng, **options)
        known = tuple(mixture.law.sizes.tolist())
        mixture.law = mixture._users.law = tables_of(n_items, known, factor)
        mixture.begin(labels.astype(np.int32))
        before.append(statistics(mixture, rows, labels))
        for _ in range(n_sweeps):
            mixture.sweep(adapt=False)
        after.append(statistics(mixture, rows, labels_given(mixture, rng)))
    pairs = zip(np.transpose(before), np.transpose(after), strict=True)
    values = [stats.ks_2samp(one, other, method="asymp").pvalue for one, other in pairs]
    return dict(zip(STATISTICS, values, strict=True))


def test_sweeps_of_clusters_with_sampled_alpha_keep_the_law_of_prior_and_data():
    assert min(geweke(0.8).values()) > 1e-3


@pytest.mark.slow
def test_so_do_sweeps_on_tables_that_are_wrong():
    assert min(geweke(0.8, factor=0.5).values()) > 1e-3


@pytest.mark.slow
def test_without_correction_such_sweeps_do_not():
    assert min(geweke(0.8, factor=0.5, is_corrected=False).values()) < 1e-3


def test_sweeps_of_clusters_under_another_prior_do_not():
    assert min(geweke(1.6).values()) < 1e-3


@functools.cache
def larger_share(one, other):
    """Mean of the larger of two shares from a Dirichlet law."""
    law = stats.beta(one, other)
    places = (np.arange(4000) + 0.5) / 4000
    shares = law.ppf(places)
    return float(np.maximum(shares, 1 - shares).mean())


def test_one_long_run_has_the_exact_posterior_of_labels_shares_and_memberships():
    rng, law, prior = np.random.default_rng(3), mixture_law(), SETTING["prior"]
    centers = [(1, 2, 3), (3, 2, 1)]
    options = {"share_prior": prior, "n_moves": 20}
    mixture = mixture_of(TINY, 3, centers, [SETTING["alpha"]] * 2, None, rng, **options)
    mixture.begin(np.zeros(4, dtype=np.int32))
    n_sweeps, pairs, largest, kept = 3000, np.zeros((4, 4)), [], []
    for _ in range(n_sweeps):
        mixture.sweep(adapt=False)
        labels = labels_given(mixture, rng)
        pairs += labels[:, None] == labels
        largest.append(mixture.shares.max())
        if mixture._n_after % 10 == 1:  # those that add to the memberships
            kept.append(mixture.log_posterior())
    exact, mean_largest = np.zeros((4, 4)), 0.0
    for (_, labels), probability in law.items():
        exact += probability * (np.array(labels)[:, None] == labels)
        sizes = prior + np.bincount(labels, minlength=2)
        mean_largest += probability * larger_share(*sizes)
    error = 5 * math.sqrt(3 * 0.25 / n_sweeps)
    assert np.abs(pairs / n_sweeps - exact).max() < error
    assert np.mean(largest) == pytest.approx(mean_largest, abs=error / 2)
    assert np.isfinite(kept).all()
    memberships = mixture.mean_memberships
    assert memberships.sum(axis=1) == pytest.approx(np.ones(4))


def test_memberships_are_means_of_the_exact_ones(monkeypatch):
    """At fixed clusters they are those of their shares, by enumeration."""
    rng, alphas, shares = np.random.default_rng(3), [1.5, 4.0], [0.3, 0.7]
    centers = [(1, 2, 3), (3, 2, 1)]
    monkeypatch.setattr(MatchedMixture, "_move", lambda self, *arguments: None)
    mixture = mixture_of(TINY, 3, centers, alphas, None, rng, shares=shares)
    mixture.begin(np.array([0, 1, 0, 1], dtype=np.int32))
    monkeypatch.setattr(labelled_mixture, "KEEP_EVERY", 2)
    for _ in range(3):
        mixture.sweep(adapt=False)
    assert mixture._n_sums == 2
    order = [int(np.flatnonzero((mixture.consensus == c).all(axis=1))[0]) for c in centers]
    total = 0.0
    for user, row in enumerate(TINY):
        values = [naive.click_likelihood(row, *law) for law in zip(centers, alphas, strict=True)]
        exact = naive.memberships(values, shares)
        assert mixture.mean_memberships[user, order] == pytest.approx(exact, abs=1e-6)
        total += math.log(np.dot(values, shares))
    assert mixture.log_posterior() == pytest.approx(total, abs=1e-6)  # share_prior is 1
    mixture.sweep(adapt=False)
    assert math.isnan(mixture.log_posterior())  # it adds nothing to the memberships


def test_an_empty_cluster_follows_its_prior():
    rng = np.random.default_rng(3)
    mixture = mixture_of(TINY, 3, [(1, 2, 3)] * 2, [2.0] * 2, (3.0, 0.5), rng)
    mixture.begin(np.zeros(4, dtype=np.int32))
    empty = mixture.clusters[1]
    assert mixture.has_users == [True, False]
    centers, alphas = [], []
    for _ in range(1200):
        empty.wander()
        centers.append(tuple(empty.consensus.tolist()))
        alphas.append(empty.alpha)
    assert p_value(centers, dict.fromkeys(naive.all_rankings(3), 1 / 6)) > 1e-4
    assert stats.kstest(alphas, stats.gamma(3.0, scale=2.0).cdf).pvalue > 1e-4
    assert stats.kstest(alphas, stats.gamma(3.0, scale=2.5).cdf).pvalue < 1e-3


def test_an_empty_cluster_takes_in_users_in_the_warmup():
    rng = np.random.default_rng(3)
    prefs = pm.simulate_clicks(60, 8, [8, 8], 3, rng=1).preferences
    rows = [tuple(prefs.clicks_of(row).tolist()) for row in range(60)]
    centers = [tuple(range(1, 9)), tuple(range(8, 0, -1))]
    options = {"shares": [1 - 1e-9, 1e-9], "is_corrected": False}
    mixture = mixture_of(rows, 8, centers, [5.0, 900.0], (2.0, 0.3), rng, **options)
    mixture.begin(np.zeros(mixture.population.n_rows, dtype=np.int32))
    mixture.sweep(adapt=True)
    assert mixture.has_users == [True, False]
    mixture.sweep(adapt=True)
    assert mixture.has_users == [True, True]
    assert mixture.alpha[1] < 100


@functools.cache
def clicked():
    return pm.simulate_clicks(600, 20, [6, 8], 5, sizes=[400, 200], rng=1)


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_chains_have_their_clusters_in_one_order(method):
    posterior = quietly(clicked().preferences, method, n_clusters=2, n_chains=3, n_draws=20, rng=1)
    assert rand_index(posterior.labels, clicked().labels) > 0.8
    for cluster, consensus in enumerate(clicked().consensus):
        own = np.abs(posterior.consensus[:, :, cluster] - consensus).sum(axis=-1)
        other = np.abs(posterior.consensus[:, :, 1 - cluster] - consensus).sum(axis=-1)
        assert (own < other / 2).all()
    assert posterior.alpha[:, :, 0].mean() == pytest.approx(6, rel=0.15)
    assert (posterior.shares[:, :, 0] > posterior.shares[:, :, 1]).all()
    assert posterior.diagnostics().worst_rhat < 1.2


@pytest.mark.slow
def test_the_number_of_clusters_is_found():
    posterior = quietly(
        clicked().preferences, "mcmc", n_clusters="auto", n_chains=2, n_draws=20, rng=1
    )
    assert posterior.n_clusters == 2


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_users_who_do_not_agree_at_all_are_no_trouble(method):
    prefs = pm.simulate_clicks(40, 6, [5, 9], 2, rng=1).preferences
    posterior = quietly(prefs, method, 0.0, n_clusters=2, n_draws=10, rng=1)
    assert (posterior.alpha == 0).all()


# alpha without bounds


NESTED = [tuple(range(size)) for size in (1, 2, 3, 4, 5) for _ in range(4)]


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_nested_clicks_do_not_bound_alpha(method):
    options = {"n_draws": 20, "n_chains": 2, "rng": 1}
    with pytest.warns(pm.diagnostics.AlphaWarning):
        quietly_but_for_alpha(preferences(NESTED, 6), method, **options)
    for rows in ([*NESTED, (5,)], FIVE):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pm.diagnostics.AlphaWarning)
            quietly_but_for_alpha(preferences(rows, 6), method, **options)


def quietly_but_for_alpha(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        return pm.fit(*arguments, **options)


def test_only_the_cluster_of_nested_clicks_is_unbounded():
    rng = np.random.default_rng(3)
    backwards = [tuple(5 - item for item in row) for row in NESTED]
    rows = [*NESTED, *backwards, (0,), (1, 4)]
    centers = [tuple(range(1, 7)), tuple(range(6, 0, -1))]
    mixture = mixture_of(rows, 6, centers, [20.0, 6.0], (2.0, 0.3), rng)
    mixture.begin(np.array([0] * 20 + [1] * 22, dtype=np.int32))
    assert mixture.unbounded() == [True, False]
