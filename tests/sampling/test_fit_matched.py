"""Methods "matched" and "mcmc" on clicks: what they report, and the same bits everywhere."""

import functools
import math
import threading
import warnings

import numpy as np
import pytest
from scipy import stats

import pseudomallows as pm
from pseudomallows.sampling import run
from pseudomallows.sampling.chain import Chain

ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
ARRAYS += ("latent", "chain_memberships")
SHORT = {"n_draws": 9, "warmup": 4, "n_chains": 2}
KINDS = [(method, n_clusters) for method in ("mcmc", "matched") for n_clusters in (1, 2)]


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, **options)


@functools.cache
def data(n_users=300):
    """Some rows stand for several users, or for none."""
    prefs = pm.simulate_clicks(n_users, 8, [6, 8], 3, rng=1).preferences
    weights = np.tile([1, 2, 0, 3], n_users)[:n_users]
    return pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes)


def fit(method, n_clusters, **options):
    return quietly(data(), method, n_clusters=n_clusters, **{"rng": 3} | SHORT | options)


@functools.cache
def wanted(method, n_clusters):
    """The fit on one thread, and its last step."""
    steps = []
    note = {"progress": lambda done, total: steps.append((done, total))}
    found = fit(method, n_clusters, executor=pm.Threads(1), **note)
    assert steps[-1][0] == steps[-1][1]
    return found, steps[-1][0]


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name
    assert found.settings.get("matched") == other.settings.get("matched")


# side by side


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_chains_run_at_the_same_time(n_clusters, monkeypatch):
    """Two of them meet in a sweep; one after the other they would wait for ever."""
    wanted("matched", n_clusters)  # on one thread, where nobody waits
    meeting, keep = threading.Barrier(2, timeout=60), run.Run.keep_draw
    monkeypatch.setattr(run.Run, "keep_draw", lambda *args: (meeting.wait(), keep(*args)))
    assert_same(
        fit("matched", n_clusters, executor=pm.Threads(2)), wanted("matched", n_clusters)[0]
    )


def test_progress_is_told_step_by_step_by_the_thread_that_asked():
    steps, threads = [], set()

    def note(done, total):
        steps.append(done)
        threads.add(threading.current_thread())

    fit("matched", 2, executor=pm.Threads(2), progress=note)
    assert steps == list(range(1, wanted("matched", 2)[1] + 1))
    assert threads == {threading.current_thread()}


@pytest.mark.slow
def test_an_interrupt_ends_all_chains_at_once():
    def interrupt(done, total):
        if done > total - 20:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fit("matched", 2, n_draws=3000, executor=pm.Threads(2), progress=interrupt)
    assert threading.active_count() <= before + 2  # threads that wait for blocks


def test_an_error_of_one_chain_ends_the_fit(monkeypatch):
    monkeypatch.setattr(Chain, "log_prior", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit("matched", 1, executor=pm.Threads(2))


# what is kept


@pytest.mark.parametrize(("method", "n_clusters"), KINDS)
def test_a_posterior_comes_back_whole(method, n_clusters, tmp_path):
    whole, _ = wanted(method, n_clusters)
    whole.save(tmp_path / "x.pm")
    again = pm.load(tmp_path / "x.pm")
    assert_same(again, whole)
    assert again.best.shape == (n_clusters, again.n_items)
    for cluster in range(n_clusters):
        best = whole.point_consensus("map", cluster)
        assert (again.point_consensus("map", cluster) == best).all()


def test_users_of_one_row_are_the_same_as_rows():
    prefs = data()
    rows = np.repeat(np.arange(prefs.n_users), prefs.weights)
    repeated = prefs.take(rows)
    repeated = pm.Clicks(
        np.ones(len(rows), dtype=int),
        np.arange(len(rows)),
        repeated.items,
        repeated.starts,
        repeated.codes,
    )
    for method, n_clusters in KINDS:
        found = quietly(repeated, method, n_clusters=n_clusters, rng=3, **SHORT)
        whole = wanted(method, n_clusters)[0]
        assert np.array_equal(found.consensus, whole.consensus)
        assert np.array_equal(found.alpha, whole.alpha)


# what "matched" says of itself


def test_it_says_how_far_it_is_from_the_exact_law():
    found, _ = wanted("matched", 1)
    report = found.settings["matched"]
    assert len(report["differences"]) == SHORT["n_chains"] * run.N_CHECKS
    assert 0.5 < report["effective_share"] <= 1
    weights = np.exp(report["differences"])
    share = weights.sum() ** 2 / (weights**2).sum() / len(weights)
    assert report["effective_share"] == pytest.approx(share)
    assert "matched" not in wanted("mcmc", 1)[0].settings


def test_with_clusters_it_is_corrected_as_mcmc_is():
    """By the additive law alone an alpha of few users, or of few items, may grow without end."""
    prefs = pm.simulate_clicks(300, 8, [5.0, 5.0], 3, rng=5).preferences.take(np.arange(150))
    found = quietly(prefs, "matched", n_clusters=2, n_draws=60, rng=1)
    assert found.alpha.max() < 100
    exact, near = (wanted(method, 2)[0] for method in ("mcmc", "matched"))
    assert np.array_equal(near.consensus, exact.consensus)
    assert "matched" not in near.settings


def test_its_differences_are_exact_minus_matched_on_its_draws():
    posterior = fit("matched", 1)
    shape, rate = posterior.settings["options"]["alpha_prior"]
    prefs = data()
    checked = [(chain, draw) for chain in range(2) for draw in (2, 5, 8)]
    for (chain, draw), difference in zip(
        checked, posterior.settings["matched"]["differences"], strict=True
    ):
        alpha = posterior.alpha[chain, draw, 0]
        logs = pm.click_log_likelihood(prefs, posterior.consensus[chain, draw, 0], alpha)
        near = posterior.log_posterior[chain, draw] - (shape - 1) * math.log(alpha) + rate * alpha
        assert (logs * prefs.weights).sum() - near == pytest.approx(difference, abs=1e-6)


def test_few_draws_are_checked_too():
    for n_draws, number in ((1, 1), (2, 2), (4, 3), (7, 3)):
        posterior = fit("matched", 1, n_draws=n_draws, n_chains=1)
        assert len(posterior.settings["matched"]["differences"]) == number


def say_differences(monkeypatch, values):
    """Let the exact law be so far from the additive one on the draws that are looked at."""
    checks = run.Run.checks

    def changed(self):
        self.arrays["differences"][:] = np.reshape(values, self.arrays["differences"].shape)
        return checks(self)

    monkeypatch.setattr(run.Run, "checks", changed)


def test_it_warns_where_it_is_far_from_the_exact_law(monkeypatch):
    say_differences(monkeypatch, [0.0, 5.0, 9.0, 2.0, 1.0, 3.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = pm.fit(data(), "matched", rng=3, **SHORT)
    warning = next(
        each.message for each in caught if isinstance(each.message, pm.diagnostics.MatchedWarning)
    )
    assert "Use method='mcmc'" in str(warning)
    assert str(warning) in map(str, result.verdict().checks)
    assert warning.n_draws == 6
    assert warning.effective_share == pytest.approx(1 / 6, abs=0.02)


def test_it_does_not_warn_where_it_is_near(monkeypatch):
    say_differences(monkeypatch, [0.0, 0.5, 0.9, 0.2, 0.3, 0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", pm.diagnostics.MatchedWarning)
        found = fit("matched", 1)
    assert sorted(found.settings["matched"]["differences"]) == [0.0, 0.1, 0.2, 0.3, 0.5, 0.9]
    assert 0.5 < found.settings["matched"]["effective_share"] < 1


def test_full_rankings_are_refused():
    prefs = pm.simulate_rankings(20, 5, 3, rng=1).preferences
    with pytest.raises(ValueError, match=r"matched.* is not for full rankings: use 'mcmc'"):
        pm.fit(prefs, "matched", rng=1)


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_partial_rankings_are_near_the_exact_law(n_clusters):
    made = pm.simulate_rankings(300, 10, [12.0] * n_clusters, top=4, rng=1)
    options = {"n_clusters": n_clusters, "n_draws": 150, "rng": 1}
    near, exact = (quietly(made.preferences, each, **options) for each in ("matched", "mcmc"))
    assert n_clusters > 1 or near.settings["matched"]["effective_share"] > 0.5
    # two clusters of about one size may come in either order
    one, other = (
        np.array(sorted(fit.mean_ranks(k).tolist() for k in range(n_clusters)))
        for fit in (near, exact)
    )
    assert np.abs(one - other).max() < 0.3
    assert near.alpha.mean() == pytest.approx(exact.alpha.mean(), rel=0.05)
    with pytest.raises(ValueError, match="the footrule only, got distance='hamming'"):
        pm.fit(made.preferences, "matched", distance="hamming", rng=1)


@pytest.mark.parametrize(("method", "n_clusters"), KINDS)
def test_latent_rankings_of_chosen_users_begin_with_their_clicks(method, n_clusters):
    log = {"a": [0, 3], "b": [1], "all": [0, 1, 2, 3, 4], "c": [0, 1, 2], "none": [], "d": [4, 3]}
    log |= {number: [0, 1] for number in range(10)}
    prefs = pm.Preferences.from_clicks(log, items=range(5))
    chosen = ["c", "none", "a", "all"]
    options = {"n_clusters": n_clusters, "n_chains": 1, "n_draws": 30, "warmup": 3, "rng": 1}
    posterior = quietly(prefs, method, keep_latent=chosen, **options)
    assert posterior.latent.shape == (1, 30, 4, 5)
    assert (np.sort(posterior.latent, axis=-1) == np.arange(1, 6)).all()
    for place, user in enumerate(chosen):
        assert (posterior.latent[0, :, place, log[user]] <= len(log[user])).all()
        assert len(np.unique(posterior.latent[0, :, place], axis=0)) > 1
    plain = quietly(prefs, method, **options)
    assert (plain.consensus == posterior.consensus).all()


def test_methods_on_clicks_have_short_defaults():
    for method in ("mcmc", "matched"):
        settings = quietly(data(), method, n_draws=20, rng=1).settings["options"]
        assert (settings["n_chains"], settings["thin"], settings["warmup"]) == (4, 1, 20)
        assert settings["n_moves"] is None


# simulation-based calibration


PRIOR = (4.0, 0.8)


def calibration(n_sets, factor=1.0, seed=7):
    """p-values of the places of the true alpha (times a factor) and of the true rank of an item
    among the draws, truths coming from the prior."""
    rng, places = np.random.default_rng(seed), []
    for _ in range(n_sets):
        alpha, consensus = rng.gamma(PRIOR[0]) / PRIOR[1], rng.permutation(8) + 1
        ranks = pm.Mallows(consensus, factor * alpha).draw(40, rng)
        prefs = pm.Preferences.from_clicks(ranks <= rng.integers(1, 5, 40)[:, None])
        options = {"n_chains": 1, "n_draws": 39, "thin": 3, "warmup": 60}
        posterior = quietly(prefs, "mcmc", alpha_prior=PRIOR, rng=rng, **options)
        pairs = [(alpha, posterior.alpha[0, :, 0])]
        pairs += [(consensus[0], posterior.consensus[0, :, 0, 0])]
        places.append(
            [
                rng.integers((draws < truth).sum(), (draws <= truth).sum(), endpoint=True)
                for truth, draws in pairs
            ]
        )
    bins = np.array(places) // 5  # 40 places
    return [stats.chisquare(np.bincount(each, minlength=8)).pvalue for each in bins.T]


@pytest.mark.slow
def test_the_corrected_chain_is_calibrated():
    assert min(calibration(160)) > 1e-4


@pytest.mark.slow
def test_data_of_another_alpha_are_caught():
    assert calibration(160, factor=1.5)[0] < 1e-4
