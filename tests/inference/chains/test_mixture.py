import functools
import itertools
import warnings

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import interpreted, p_value
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains.clusters import ExactCluster, Proposals
from pseudomallows.inference.chains.mixture import Mixture, row_log_likelihoods
from pseudomallows.inference.chains.starts import StartCluster, find_start
from pseudomallows.kernels import labels as kernels
from pseudomallows.latent.registry import make_population
from pseudomallows.posteriors.posterior import Posterior

ROWS = [[1, 2, 3, 4, 5], [5, 4, 0, 0, 0], [0, 0, 0, 0, 1], [2, 1, 0, 0, 5]]
CLICKS = [[0, 1], [4], [1, 2, 4], [3]]
CENTERS = [(1, 2, 3, 4, 5), (5, 3, 4, 2, 1), (2, 5, 1, 3, 4)]
ALPHAS, SHARES = (1.0, 4.0, 9.0), (0.5, 0.2, 0.3)


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        usual = {"method": "pseudo"} if len(args) == 1 else {}
        return pm.fit(*args, **usual | options)


def example(kind):
    """Preferences of five items, and their likelihood by definition."""
    if kind == "clicks":
        prefs = pm.Preferences.from_clicks(dict(enumerate(CLICKS)), items=range(5))
        return prefs, lambda user, center, alpha: naive.click_likelihood(
            CLICKS[user], center, alpha
        )
    prefs = pm.Preferences.from_rankings(ROWS)
    return prefs, lambda user, center, alpha: naive.likelihood(ROWS[user], center, alpha)


# memberships


@pytest.mark.kernel
@pytest.mark.parametrize("kind", ["clicks", "rankings"])
def test_memberships_equal_enumeration(kind):
    prefs, likelihood = example(kind)
    latent, rng = make_population(prefs, None), np.random.default_rng(1)
    clusters = [
        StartCluster(latent, np.array(center, dtype=np.int32), alpha, True, rng)
        for center, alpha in zip(CENTERS, ALPHAS, strict=True)
    ]
    mixture = Mixture(latent, clusters, np.array(SHARES), 1, 1.0, rng)
    mixture.refresh(adapt=False)
    total = 0.0
    for user in range(4):
        values = [likelihood(user, *pair) for pair in zip(CENTERS, ALPHAS, strict=True)]
        exact = naive.memberships(values, SHARES)
        assert mixture.mean_memberships[user] == pytest.approx(exact, abs=1e-12)
        total += np.log(np.dot(values, SHARES))
    assert mixture.log_likelihood == pytest.approx(total)
    assert (mixture.counts.sum(axis=1) == 1).all()


def label_counts(n_users, probabilities, draw_labels=kernels.draw_labels):
    """Labels of one row that stands for many users."""
    memberships = np.log([probabilities])
    counts, log_sums = np.empty((1, len(probabilities)), dtype=np.int64), np.empty(1)
    draw_labels(3, 1, np.zeros(1, int), np.array([n_users]), memberships, counts, log_sums)
    return counts[0], memberships[0], log_sums[0]


@pytest.mark.kernel
def test_labels_follow_the_memberships():
    probabilities = np.array([0.1, 0.6, 0.25, 0.05])
    counts, memberships, log_sum = label_counts(20_000, 0.3 * probabilities)
    assert memberships == pytest.approx(probabilities)
    assert log_sum == pytest.approx(np.log(0.3))
    assert stats.chisquare(counts, 20_000 * probabilities).pvalue > 1e-4
    wrong = np.array([0.11, 0.58, 0.26, 0.05])
    assert stats.chisquare(counts, 20_000 * wrong).pvalue < 1e-4


@pytest.mark.kernel
def test_labels_survive_tiny_likelihoods_and_equal_the_interpreted_ones():
    probabilities = np.array([1e-300, 2e-300])
    counts, memberships, _ = label_counts(50, probabilities)
    assert memberships == pytest.approx([1 / 3, 2 / 3])
    assert (label_counts(50, probabilities, interpreted(kernels.draw_labels))[0] == counts).all()


# the exact posterior


def ends_of_sweeps(alpha, n_draws, kind):
    """Start from the exact posterior at alpha = 1, make one sweep at `alpha`: where does it end?"""
    rows = [[1, 2, 3], [3, 0, 0], [2, 1, 3]] if kind == "rankings" else [[0], [0, 1], [2]]
    if kind == "rankings":
        prefs = pm.Preferences.from_rankings(rows)
        likelihood = {
            (user, center): naive.likelihood(row, center, 1.0)
            for user, row in enumerate(rows)
            for center in naive.all_rankings(3)
        }
    else:
        prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(3))
        likelihood = {
            (user, center): naive.click_likelihood(row, center, 1.0)
            for user, row in enumerate(rows)
            for center in naive.all_rankings(3)
        }
    law = naive.mixture_posterior(lambda *key: likelihood[key], 3, 3, 2, 1.0)
    latent, rng = make_population(prefs, pm.Threads(1)), np.random.default_rng(5)
    proposals = Proposals("swap", 1, 10)
    states, ends = list(law), []
    for place in rng.choice(len(states), n_draws, p=list(law.values())):
        centers, labels = states[place]
        chains = [
            ExactCluster(latent, np.array(c, dtype=np.int32), alpha, proposals, None, rng)
            for c in centers
        ]
        counts = np.zeros((3, 2), dtype=np.int64)
        counts[np.arange(3), list(labels)] = 1
        shares = rng.dirichlet(1.0 + counts.sum(axis=0))
        mixture = Mixture(latent, chains, shares, 1, 1.0, rng)
        mixture.share_out(counts)
        mixture.sweep(adapt=False)
        ends.append(mixture.consensus.ravel().tolist())
    exact = {}
    for (centers, _), probability in law.items():
        key = tuple(itertools.chain(*centers))
        exact[key] = exact.get(key, 0.0) + probability
    return np.array(ends), exact


@pytest.mark.parametrize("kind", ["rankings", "clicks"])
def test_a_sweep_leaves_the_exact_posterior_as_it_is(kind):
    assert p_value(*ends_of_sweeps(1.0, 2500, kind)) > 1e-4


def test_a_sweep_at_another_alpha_does_not():
    assert p_value(*ends_of_sweeps(2.5, 2500, "rankings")) < 1e-4


STATISTICS = ("largest alpha", "least alpha", "largest share", "most users", "log likelihood")


def statistics(mixture):
    """Numbers that do not depend on the order of the clusters."""
    latent, shares = mixture.population, mixture.shares
    values = row_log_likelihoods(latent, [(s.consensus, s.alpha) for s in mixture.clusters])
    fit = np.logaddexp.reduce(values + np.log(shares), axis=1).sum()
    return [
        max(mixture.alpha),
        min(mixture.alpha),
        max(shares),
        mixture.counts.sum(axis=0).max(),
        fit,
    ]


def geweke(kind, n_sweeps, prior_rate, n_draws=500):
    """p-values: truth from the prior, data from the truth, then sweeps, must keep the law."""
    rng, n_users, n_items = np.random.default_rng(7), 5, 4
    proposals, prior = Proposals("swap", 1, 8), (3.0, prior_rate)
    before, after = [], []
    for _ in range(n_draws):
        alphas, shares = rng.gamma(3.0, 1 / 0.8, 2), rng.dirichlet([0.7, 0.7])
        centers = [(rng.permutation(n_items) + 1).astype(np.int32) for _ in alphas]
        labels = rng.choice(2, n_users, p=shares)
        rows = np.stack([pm.Mallows(centers[k], alphas[k]).draw(1, rng)[0] for k in labels])
        n_known = rng.integers(1, n_items, n_users)[:, None]
        if kind == "clicks":
            prefs = pm.Preferences.from_clicks(rows <= n_known)
        else:
            prefs = pm.Preferences.from_rankings(np.where(rows <= n_known, rows, np.nan))
        latent = make_population(prefs, pm.Threads(1))
        places = zip(centers, alphas.tolist(), strict=True)
        chains = [ExactCluster(latent, c.copy(), a, proposals, prior, rng) for c, a in places]
        for chain in chains:
            chain.log_step = np.log(0.8)
        mixture = Mixture(latent, chains, shares, 3, 0.7, rng)
        counts = np.zeros((n_users, 2), dtype=np.int64)
        counts[np.arange(n_users), labels] = 1
        mixture.share_out(counts)
        before.append(statistics(mixture))
        for _ in range(n_sweeps):
            mixture.sweep(adapt=False)
        after.append(statistics(mixture))
    pairs = zip(np.transpose(before), np.transpose(after), strict=True)
    return [stats.ks_2samp(one, other).pvalue for one, other in pairs]


@pytest.mark.parametrize("kind", ["rankings", "clicks"])
def test_sweeps_with_sampled_alpha_keep_the_law_of_prior_and_data(kind):
    assert min(geweke(kind, 6, 0.8)) > 1e-3


def test_sweeps_under_another_prior_do_not():
    assert min(geweke("rankings", 6, 1.6)) < 1e-3


# known clusters


@functools.cache
def full():
    return pm.simulate_rankings(600, 20, [4, 6, 8], sizes=[280, 200, 120], rng=1)


@functools.cache
def clicked():
    return pm.simulate_clicks(1500, 50, [4, 6, 8], 8, sizes=[700, 500, 300], rng=1)


@functools.cache
def tops():
    return pm.simulate_rankings(600, 20, [6, 6, 9], top=6, sizes=[260, 200, 140], rng=1)


FEW = {"n_draws": 40}


def check_clusters(posterior, data, least, alphas):
    labels = posterior.labels
    assert rand_index(labels, data.labels) >= least
    for true, alpha in enumerate(alphas):
        found = np.bincount(labels[data.labels == true], minlength=len(alphas)).argmax()
        assert posterior.alpha[:, :, found].mean() == pytest.approx(alpha, rel=0.1)
    assert posterior.memberships.sum(axis=1) == pytest.approx(np.ones(len(labels)), abs=1e-5)
    sizes = np.bincount(labels, minlength=len(alphas))
    assert (np.diff(sizes) <= 0).all()  # the largest first
    assert posterior.shares.sum(axis=2) == pytest.approx(np.ones(posterior.weights.shape))


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_three_clusters_of_full_rankings_are_found(method):
    options = {"n_chains": 2} if method == "mcmc" else {}
    posterior = quietly(full().preferences, method, n_clusters=3, rng=1, **options)
    check_clusters(posterior, full(), 0.95, [4, 6, 8])


@pytest.mark.slow
def test_three_clusters_of_clicks_are_found_by_the_paper_s_method():
    posterior = quietly(clicked().preferences, n_clusters=3, rng=1)
    check_clusters(posterior, clicked(), 0.95, [4, 6, 8])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["balanced", "mcmc"])
def test_three_clusters_of_clicks_are_found_exactly(method):
    options = {"n_chains": 2} if method == "mcmc" else {}
    posterior = quietly(clicked().preferences, method, n_clusters=3, rng=1, **options, **FEW)
    check_clusters(posterior, clicked(), 0.95, [4, 6, 8])


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_three_clusters_of_top_lists_are_found(method):
    options = {"n_chains": 2} if method == "mcmc" else {}
    posterior = quietly(
        tops().preferences, method, n_clusters=3, rng=1, n_draws=20, warmup=10, **options
    )
    check_clusters(posterior, tops(), 0.95, [6, 6, 9])


@pytest.mark.slow
def test_probabilities_are_calibrated():
    options = {"n_clusters": 3, "n_chains": 2, "n_draws": 50, "rng": 1}
    prefs, truth = clicked().preferences, clicked().rankings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)  # so few draws
        found = pm.evaluate(prefs, k=3, method="mcmc", truth=truth, **options)
    assert found.calibration.error <= 0.03
    assert found.accuracy > found.popularity + 5 * found.accuracy_error


# odd data


def test_threads_leave_no_trace():
    prefs = pm.simulate_clicks(400, 15, [4, 8], 4, rng=3).preferences
    for method in ("pseudo", "balanced", "mcmc"):
        options = {"n_draws": 6, "warmup": 4, "n_clusters": 2, "rng": 1}
        options |= {"augmentation": "exact", "refresh": 2} if method == "mcmc" else {}
        one, two = (
            quietly(prefs, method, **options, executor=pm.Threads(n_threads))
            for n_threads in (1, 2)
        )
        assert (one.consensus == two.consensus).all()
        assert (one.alpha == two.alpha).all()
        assert (one.shares == two.shares).all()
        assert (one.chain_memberships == two.chain_memberships).all()


def test_clusters_too_many_stay_empty_or_small_and_break_nothing():
    rows = [[1, 2, 3, 4]] * 10 + [[4, 3, 2, 1]] * 10
    prefs = pm.Preferences.from_rankings(rows)
    for method in ("pseudo", "balanced", "mcmc"):
        posterior = quietly(prefs, method, n_clusters=6, n_draws=30, rng=1)
        assert np.isfinite(posterior.alpha).all()
        assert np.isfinite(posterior.memberships).all()
        assert posterior.memberships.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-5)
        assert (np.sort(posterior.consensus, axis=-1) == np.arange(1, 5)).all()


def test_as_many_clusters_as_users_are_allowed():
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [3, 2, 1], [2, 1, 3]])
    assert quietly(prefs, "mcmc", n_clusters=3, n_draws=20, rng=1).n_clusters == 3


def test_users_who_say_nothing_belong_to_the_clusters_by_their_shares():
    data = pm.simulate_clicks(300, 12, [4, 8], 4, sizes=[200, 100], rng=1)
    clicked = np.zeros((302, 12), dtype=bool)
    for user in range(300):
        clicked[user, data.preferences.clicks_of(user)] = True
    clicked[301] = True
    prefs = pm.Preferences.from_clicks(clicked)
    posterior = quietly(prefs, n_clusters=2, n_draws=30, rng=1)
    shares = posterior.shares.mean(axis=(0, 1))
    assert posterior.memberships[[300, 301]] == pytest.approx(np.array([shares, shares]), abs=1e-5)
    found = pm.recommend(posterior, 3, users=[300, 301])
    assert (found.items[0] >= 0).all()
    assert (found.items[1] == -1).all()
    new = pm.recommendations.memberships(posterior, {"silent": []})
    assert new[0] == pytest.approx(shares, abs=0.02)


def test_chains_agree_on_the_order_of_the_clusters():
    data = pm.simulate_rankings(200, 8, [6, 6, 6], sizes=[80, 70, 50], rng=1)
    posterior = quietly(data.preferences, "mcmc", n_clusters=3, n_chains=4, n_draws=50, rng=1)
    for cluster in range(3):
        centers = posterior.consensus[:, :, cluster].mean(axis=1)
        assert np.abs(centers - centers[0]).max() < 1.0
    spread = posterior.chain_memberships.std(axis=0)
    assert spread.max() < 0.2
    for chain in range(4):
        assert (posterior.chain_memberships[chain].argmax(axis=1) == posterior.labels).mean() > 0.99


def test_labels_that_change_places_are_put_back():
    """Two clusters are exchanged by force; the next refresh undoes it."""
    data = pm.simulate_rankings(100, 8, [8, 8], sizes=[60, 40], rng=1)
    latent, rng = make_population(data.preferences, None), np.random.default_rng(1)
    mixture = find_start(latent, 2, None, 1.0, rng)
    mixture.begin(None)
    before = mixture.consensus
    mixture.clusters.reverse()
    mixture.shares = mixture.shares[::-1].copy()
    assert (mixture.consensus[0] == before[1]).all()
    mixture.refresh(adapt=False)
    assert (mixture.consensus == before).all()
    assert mixture.shares[0] > mixture.shares[1]


def test_memberships_do_not_depend_on_how_rows_are_written():
    """A row of weight 2 is the same as two rows."""
    rows = np.array(ROWS)
    points = [(np.array(c, dtype=np.int32), a) for c, a in zip(CENTERS, ALPHAS, strict=True)]
    counts = []
    for prefs in (
        pm.Preferences.from_rankings(rows, weights=[2, 1, 1, 3]),
        pm.Preferences.from_rankings(np.repeat(rows, [2, 1, 1, 3], axis=0)),
    ):
        latent, rng = make_population(prefs, None), np.random.default_rng(1)
        clusters = [StartCluster(latent, center, alpha, True, rng) for center, alpha in points]
        mixture = Mixture(latent, clusters, np.array(SHARES), 1, 1.0, rng)
        mixture.refresh(adapt=False)
        counts.append(mixture.counts)
    assert (counts[0] == np.add.reduceat(counts[1], [0, 2, 3, 4])).all()
    assert (row_log_likelihoods(latent, points)[0] == row_log_likelihoods(latent, points)[1]).all()


def test_latent_rankings_of_chosen_users_are_kept():
    data = pm.simulate_clicks(60, 8, [4, 8], 3, rng=1)
    options = {"n_chains": 1, "n_draws": 20, "thin": 1, "keep_latent": [7, 3], "rng": 1}
    clusters = {"augmentation": "exact", "n_clusters": 2, "refresh": 3}
    for method, more in (("pseudo", {}), ("mcmc", clusters)):
        posterior = quietly(data.preferences, method, **more, **options)
        assert posterior.latent.shape == (1, 20, 2, 8)
        assert (np.sort(posterior.latent, axis=-1) == np.arange(1, 9)).all()
        for place, user in enumerate([7, 3]):
            clicked = data.preferences.clicks_of(user)
            assert (posterior.latent[0, :, place, clicked] <= len(clicked)).all()


def test_rows_with_weights_are_the_same_as_repeated_rows():
    data = pm.simulate_rankings(60, 4, [8, 8], top=2, rng=1).preferences
    rows, weights = np.unique(data.rankings, axis=0, return_counts=True)
    for method in ("pseudo", "balanced", "mcmc"):
        options = {"n_clusters": 2, "n_draws": 10, "rng": 1}
        short = quietly(pm.Preferences.from_rankings(rows, weights=weights), method, **options)
        repeated = np.repeat(rows, weights, axis=0)
        long = quietly(pm.Preferences.from_rankings(repeated), method, **options)
        assert (short.consensus == long.consensus).all()
        assert (short.shares == long.shares).all()
        assert (short.memberships[short.labels.argmax()] == long.memberships).all(axis=1).any()
    curves = [
        pm.choose_clusters(prefs, 3, rng=1)
        for prefs in (
            pm.Preferences.from_rankings(rows, weights=weights),
            pm.Preferences.from_rankings(repeated),
        )
    ]
    assert (curves[0].scores == curves[1].scores).all()
    one = pm.Preferences.from_rankings([[1, 2, 3]], weights=[10])
    assert quietly(one, "mcmc", n_clusters=2, n_draws=10, rng=1).n_clusters == 2


def test_an_alpha_that_is_estimated_is_no_matter_of_convergence():
    prefs = pm.simulate_rankings(150, 6, [2, 4], rng=1).preferences
    options = {"n_clusters": 2, "n_chains": 3, "n_draws": 50, "rng": 1}
    posterior = quietly(prefs, "balanced", **options)
    assert len(np.unique(posterior.alpha[:, 0, 0])) > 1
    found = posterior.diagnostics()
    assert found.alpha_rhat == 1.0
    assert found.alpha_effective_size == pytest.approx(150)


def test_latent_rankings_of_users_who_say_nothing_change_nothing():
    log = {0: [2], 1: [2], 2: [3], 3: [0, 1], "silent": []}
    prefs = pm.Preferences.from_clicks(log, items=range(5))
    for method, n_clusters in (("pseudo", 1), ("mcmc", 3)):
        options = {"n_draws": 50, "n_chains": 1, "warmup": 0, "rng": 1, "n_clusters": n_clusters}
        options |= {"alpha": 2.0} if method == "pseudo" else {}
        plain = quietly(prefs, method, **options)
        kept = quietly(prefs, method, **options, keep_latent=["silent"])
        assert (plain.shares == kept.shares).all()
        assert (np.sort(kept.latent[0, :, 0], axis=1) == np.arange(1, 6)).all()
        assert len(np.unique(kept.latent[0, :, 0], axis=0)) > 1


def test_the_log_posterior_is_that_of_its_draw():
    data = pm.simulate_clicks(80, 8, [5, 9], 3, rng=1)
    prefs = data.preferences
    for n_draws, n_known, way in ((20, 20, "exact"), (23, 23, "exact"), (25, 3, "matched")):
        options = {"n_draws": n_draws, "n_chains": 1, "rng": 1, "share_prior": 2.0}
        posterior = quietly(prefs, "mcmc", 6.0, n_clusters=2, augmentation=way, **options)
        known = np.flatnonzero(np.isfinite(posterior.log_posterior[0]))
        assert len(known) == n_known
        for draw in known[[0, 2, -1]]:
            logs = [
                pm.click_log_likelihood(prefs, posterior.consensus[0, draw, k], 6.0)
                for k in range(2)
            ]
            shares = posterior.shares[0, draw]
            value = np.logaddexp.reduce(np.transpose(logs) + np.log(shares), axis=1).sum()
            value += np.log(shares).sum()
            assert posterior.log_posterior[0, draw] == pytest.approx(value, abs=0.01)


def test_a_refresh_that_never_comes_is_refused():
    prefs = pm.simulate_rankings(60, 8, [5, 9], top=3, rng=1).preferences
    how = {"n_clusters": 2, "n_chains": 1, "thin": 1, "rng": 1}
    with pytest.raises(ValueError, match="refresh must be at most the 20 sweeps"):
        pm.fit(prefs, "mcmc", n_draws=20, refresh=21, **how)
    found = quietly(prefs, "mcmc", n_draws=3, warmup=5, **how)
    assert found.settings["options"]["refresh"] == 3


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_users_who_do_not_agree_at_all_are_no_trouble(method):
    prefs = pm.simulate_clicks(40, 6, [5, 9], 2, rng=1).preferences
    posterior = quietly(prefs, method, 0.0, n_clusters=2, n_draws=10, rng=1)
    assert (posterior.alpha == 0).all()


def test_the_best_consensus_belongs_to_its_cluster():
    posterior = quietly(full().preferences, "mcmc", n_clusters=3, n_chains=2, n_draws=50, rng=1)
    for cluster in range(3):
        best = posterior.point_consensus("map", cluster)
        assert pm.footrule(best, posterior.point_consensus("cp", cluster)) <= 6


def test_an_empty_cluster_starts_anew_in_the_warmup():
    """The third cluster is far from everybody; the refresh gives it users and a sane alpha."""
    data = pm.simulate_rankings(40, 8, [6, 6], rng=1)
    latent, rng = make_population(data.preferences, None), np.random.default_rng(1)
    proposals = Proposals("swap", 1, 10)
    centers = [*data.consensus, (9 - data.consensus[0]).astype(np.int32)]
    chains = [
        ExactCluster(latent, center.copy(), alpha, proposals, (1.0, 0.001), rng)
        for center, alpha in zip(centers, (6.0, 6.0, 900.0), strict=True)
    ]
    mixture = Mixture(latent, chains, np.array([0.5, 0.5, 1e-9]), 1, 1.0, rng)
    mixture.refresh(adapt=True)
    assert (mixture.counts.sum(axis=0) > 0).all()
    assert mixture.alpha[2] == 6.0
    third = mixture.clusters[2]
    assert third.log_likelihood is None
    assert (third.consensus != centers[2]).any()


# recommendations


def two_clusters(centers, alphas, shares, items):
    """A posterior of one draw that is known to the last digit."""
    n_items = len(items)
    return Posterior(
        consensus=np.array([[centers]], dtype=np.int32),
        alpha=np.array([[alphas]]),
        weights=np.ones((1, 1)),
        log_posterior=np.zeros((1, 1)),
        best=np.array(centers, dtype=np.int32),
        items=np.arange(n_items),
        settings={"method": "mcmc", "options": {"order": None}},
        data=pm.Preferences.from_clicks(np.eye(n_items, dtype=bool)),
        users=np.arange(n_items),
        shares=np.array([[shares]]),
        chain_memberships=np.full((1, n_items, 2), 0.5, dtype=np.float32),
    )


@pytest.mark.parametrize("clicked", [[0], [4, 1], [], [0, 2, 3]])
def test_a_new_user_s_probabilities_average_over_the_clusters(clicked):
    centers, alphas, shares = [(1, 2, 3, 4, 5), (4, 5, 3, 2, 1)], (3.0, 6.0), (0.3, 0.7)
    posterior = two_clusters(centers, alphas, shares, range(5))
    values = [naive.click_likelihood(clicked, c, a) for c, a in zip(centers, alphas, strict=True)]
    members = naive.memberships(values, shares)
    assert pm.recommendations.memberships(posterior, {"new": clicked})[0] == pytest.approx(members)
    exact = np.zeros(5)
    for center, alpha, share in zip(centers, alphas, members, strict=True):
        law = naive.mallows(center, alpha)
        law = {r: p for r, p in law.items() if all(r[i] <= len(clicked) for i in clicked)}
        for ranking, probability in naive.normalise(law).items():
            for item, rank in enumerate(ranking):
                if item not in clicked and len(clicked) < rank <= len(clicked) + 2:
                    exact[item] += share * probability
    found = pm.recommend(posterior, 5, clicks={"new": clicked}, window=2)
    for item, probability in zip(found.items[0], found.probabilities[0], strict=True):
        if item >= 0:
            assert probability == pytest.approx(exact[item], abs=0.01)


def test_users_of_the_fit_and_new_users_with_the_same_clicks_are_served_alike():
    data = pm.simulate_clicks(300, 12, [5, 9], 4, rng=1)
    posterior = quietly(data.preferences, n_clusters=2, rng=1)
    old = pm.recommend(posterior, 12)
    new = pm.recommend(posterior, 12, clicks=data.preferences)
    tables = np.zeros((2, 300, 12))
    for table, found in zip(tables, (old, new), strict=True):
        for row in range(300):
            table[row, found.items[row]] = np.nan_to_num(found.probabilities[row])
    assert np.abs(tables[0] - tables[1]).max() < 0.05
    one = pm.recommend(posterior, 3, clicks={"x": data.preferences.clicks_of(5).tolist()})
    many = pm.recommend(posterior, 3, clicks=data.preferences.take([5, 6]))
    assert (one.items[0] == many.items[0]).all()
    assert one.probabilities[0] == pytest.approx(many.probabilities[0])


def test_memberships_of_new_users_are_those_of_the_fit():
    data = pm.simulate_clicks(150, 10, [6, 6], 3, rng=2)
    posterior = quietly(data.preferences, "mcmc", n_clusters=2, n_chains=2, rng=1)
    new = pm.recommendations.memberships(posterior, data.preferences)
    assert np.abs(new - posterior.memberships).max() < 0.12
    assert np.abs(new - posterior.memberships).mean() < 0.02


def test_a_posterior_with_clusters_comes_back_whole(tmp_path):
    data = pm.simulate_clicks(100, 10, [5, 9], 3, rng=1)
    posterior = quietly(data.preferences, n_clusters=2, n_chains=2, n_draws=20, rng=1)
    posterior.save(tmp_path / "x.pm")
    again = pm.load(tmp_path / "x.pm")
    for name in ("consensus", "alpha", "shares", "chain_memberships", "users"):
        assert (getattr(again, name) == getattr(posterior, name)).all()
    assert (again.labels == posterior.labels).all()
    recs = functools.partial(pm.recommend, k=3, clicks={"new": [1, 2]})
    assert (recs(again).probabilities == recs(posterior).probabilities).all()
    frame = again.membership_frame()
    assert list(frame.columns) == ["user", "cluster", "probability"]
    assert (frame["cluster"].to_numpy() == posterior.labels).all()


def test_clusters_of_rankings_know_their_users(tmp_path):
    prefs = pm.simulate_rankings(30, 5, [8, 8], rng=1).preferences
    prefs = prefs.rename(users=[f"user {i}" for i in range(30)])
    posterior = quietly(prefs, "mcmc", n_clusters=2, n_draws=20, rng=1)
    posterior.save(tmp_path / "x.pm")
    assert pm.load(tmp_path / "x.pm").users.tolist() == prefs.users.tolist()
    with pytest.raises(ValueError, match="this posterior is of rankings"):
        pm.recommendations.memberships(posterior, {"new": [1]})


@pytest.mark.slow
def test_hidden_clicks_are_found_better_with_clusters():
    data = pm.simulate_clicks(400, 30, [10, 10, 10], 10, min_clicks=6, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        one, three = (
            pm.evaluate(
                data.preferences, method="pseudo", hide=3, k=3, n_clusters=k, n_draws=50, rng=1
            )
            for k in (1, 3)
        )
    assert three.accuracy > one.accuracy + 3 * one.accuracy_error
    assert three.popularity == one.popularity


def test_progress_reaches_its_end():
    calls = []
    prefs = pm.simulate_rankings(60, 5, [8, 8], rng=1).preferences
    quietly(
        prefs,
        n_clusters=2,
        n_draws=10,
        warmup=5,
        rng=1,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert [done for done, _ in calls] == list(range(1, len(calls) + 1))
    assert calls[-1][0] == calls[-1][1]
