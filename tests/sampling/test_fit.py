import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm

METHODS = ["pseudo", "balanced", "mcmc"]
PARTIAL = [[1, 2, 0, 0], [0, 1, 0, 0], [3, 0, 1, 0], [2, 1, 3, 4], [0, 0, 4, 0]]


def quietly(*arguments, **options):
    """A fit whose warnings of short chains do not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("top", [None, 5])
def test_every_method_finds_the_consensus(method, top):
    truth = pm.simulate_rankings(400, 12, 5, top=top, rng=1)
    posterior = quietly(truth.preferences, method, rng=1)
    for kind in ("cp", "map", "mean"):
        assert pm.footrule(posterior.point_consensus(kind), truth.consensus) <= 8
    assert posterior.alpha.mean() == pytest.approx(5, rel=0.15)
    assert posterior.consensus.shape[2:] == (1, 12)
    assert posterior.alpha.shape == posterior.consensus.shape[:3]
    assert posterior.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("rows", [[[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]], PARTIAL])
def test_mcmc_is_exact(rows):
    exact = np.array(naive.marginals(naive.posterior(rows, 2.0)))
    prefs = pm.Preferences.from_rankings(rows)
    posterior = pm.fit(prefs, "mcmc", 2.0, n_draws=2000, rng=1)
    assert np.abs(posterior.rank_probabilities() - exact).max() < 0.03


def test_balanced_is_exact_with_its_weights():
    rankings = pm.Mallows([3, 1, 2, 5, 4], 2.0).draw(8, rng=2)
    exact = np.array(naive.marginals(naive.posterior(rankings.tolist(), 2.0)))
    prefs = pm.Preferences.from_rankings(rankings)
    posterior = pm.fit(prefs, "balanced", 2.0, n_draws=40_000, rng=1)
    assert np.abs(posterior.rank_probabilities() - exact).max() < 0.015
    plain = pm.fit(prefs, "balanced", 2.0, n_draws=40_000, weighted=False, rng=1)
    assert np.abs(plain.rank_probabilities() - exact).max() > 0.02


@pytest.mark.slow
def test_balanced_is_exact_for_partial_rankings_and_pseudo_is_not():
    exact = np.array(naive.marginals(naive.posterior(PARTIAL, 2.0)))
    prefs = pm.Preferences.from_rankings(PARTIAL)
    errors = [
        np.abs(quietly(prefs, rng=1, **options).rank_probabilities() - exact).max()
        for options in (
            {"method": "balanced", "alpha": 2.0, "n_draws": 1500, "thin": 3},
            {"method": "balanced", "alpha": 2.0, "n_draws": 1500, "thin": 3, "weighted": False},
            {"method": "pseudo", "alpha": 2.0, "n_draws": 1500, "thin": 3},
        )
    ]
    assert errors[0] < 0.03
    assert errors[1] < 0.05 < errors[2] < 0.25  # foresight is nearly exact without weights, too


def test_map_is_exact_for_full_rankings():
    rankings = pm.Mallows([3, 1, 2, 5, 4], 1.0).draw(8, rng=2)
    law = naive.posterior(rankings.tolist(), 1.0)
    posterior = pm.fit(pm.Preferences.from_rankings(rankings), "pseudo", alpha=1.0, rng=1)
    found = posterior.point_consensus("map")
    assert law[tuple(found.tolist())] == pytest.approx(max(law.values()))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("top", [None, 3])
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(method, top):
    prefs = pm.simulate_rankings(600, 12, 0.3, top=top, rng=1).preferences
    options = {"n_draws": 20, "rng": 5}
    if top or method == "mcmc":
        options |= {"warmup": 3, "thin": 1}
    one, two = (quietly(prefs, method, executor=pm.Threads(n), **options) for n in (1, 2))
    assert (one.consensus == two.consensus).all()
    assert (one.alpha == two.alpha).all()
    assert (one.weights == two.weights).all()
    other = quietly(prefs, method, **options | {"rng": 6})
    assert (one.consensus != other.consensus).any()


@pytest.mark.parametrize("method", METHODS)
def test_weights_give_the_same_bits_as_repeated_rows(method):
    weights = [2, 3, 1, 4, 2]
    both = [
        pm.Preferences.from_rankings(PARTIAL, weights=weights),
        pm.Preferences.from_rankings(np.repeat(PARTIAL, weights, axis=0)),
    ]
    one, two = (quietly(prefs, method, 2.0, n_draws=50, rng=5) for prefs in both)
    assert (one.consensus == two.consensus).all()
    assert (one.best == two.best).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_user_without_information_changes_nothing(method):
    more = [PARTIAL[0], [0, 0, 0, 0], *PARTIAL[1:]]
    both = [pm.Preferences.from_rankings(rows) for rows in (PARTIAL, more)]
    one, two = (quietly(prefs, method, 2.0, n_draws=50, rng=5) for prefs in both)
    assert (one.consensus == two.consensus).all()


def test_a_small_effective_size_is_reported_with_the_numbers():
    prefs = pm.simulate_rankings(200, 200, 20, rng=1).preferences
    with pytest.warns(pm.diagnostics.EffectiveSizeWarning, match="Raise n_draws") as record:
        posterior = pm.fit(prefs, "balanced", 20.0, n_draws=300, rng=1)
    assert record[0].message.n_draws == 300
    assert record[0].message.effective_size == pytest.approx(posterior.effective_size)
    assert posterior.effective_size < 50
    pm.fit(prefs, "balanced", 20.0, n_draws=300, weighted=False, rng=1)  # no warning


def test_a_short_chain_is_reported_with_the_numbers():
    prefs = pm.simulate_rankings(20, 30, 1, rng=1).preferences
    with pytest.warns(pm.ConvergenceWarning, match="have not converged") as record:
        pm.fit(prefs, "mcmc", 1.0, n_draws=20, warmup=0, n_moves=5, start="random", rng=1)
    assert record[0].message.rhat > 1.05


def test_sigma_widens_the_draws():
    prefs = pm.simulate_rankings(100, 20, 2, rng=1).preferences
    spread = [
        pm.fit(prefs, "pseudo", alpha=2.0, sigma=sigma, n_draws=2000, rng=1)
        .consensus.std(axis=1)
        .mean()
        for sigma in (0, 6)
    ]
    assert spread[1] > spread[0]


def test_sigma_is_found_and_noted(tmp_path):
    simulation = pm.simulate_rankings(40, 12, 1.0, rng=1)
    posterior = pm.fit(simulation.preferences, "pseudo", alpha=1.0, rng=1)
    law = pm.PseudoMallows(simulation.rankings, 1.0, sigma="auto")
    assert posterior.settings["sigma"] == law.sigma > 0
    posterior.save(tmp_path / "fit.pm")
    assert pm.load(tmp_path / "fit.pm").settings == posterior.settings
    same = pm.fit(simulation.preferences, "pseudo", alpha=1.0, sigma=law.sigma, rng=1)
    np.testing.assert_array_equal(same.consensus, posterior.consensus)


def test_progress_counts_to_the_end():
    seen = []
    prefs = pm.Preferences.from_rankings(PARTIAL)
    quietly(
        prefs, "mcmc", n_draws=10, warmup=5, n_chains=2, thin=2, rng=1,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen[-1] == (50, 50)
    assert [done for done, _ in seen] == list(range(1, 51))


def test_settings_say_how_to_make_the_draws_again():
    prefs = pm.Preferences.from_rankings(PARTIAL)
    posterior = quietly(prefs, "mcmc", rng=3, n_draws=20, move="leap_and_shift", leap=2)
    settings = posterior.settings
    assert settings["seed"] == 3
    assert settings["method"] == "mcmc"
    assert settings["version"] == pm.__version__
    assert settings["options"]["move"] == "leap_and_shift"
    names = ["n_draws", "n_chains", "warmup", "thin", "move", "leap", "n_moves", "start"]
    again = {name: settings["options"][name] for name in names}
    same = quietly(prefs, settings["method"], settings["alpha"], rng=settings["seed"], **again)
    assert (same.consensus == posterior.consensus).all()


def test_the_chain_sees_the_costs_alone():
    """Twice the users at half the alpha have the same posterior: the same bits."""
    prefs = pm.simulate_rankings(50, 10, 3, rng=1).preferences
    twice = pm.Preferences.from_rankings(prefs.rankings, weights=[2] * 50)
    one, two = (pm.fit(p, "mcmc", a, n_draws=50, rng=1) for p, a in ((prefs, 4.0), (twice, 2.0)))
    assert (one.consensus == two.consensus).all()


def test_weights_are_shared_out_over_all_chains():
    prefs = pm.simulate_rankings(60, 12, 2, rng=1).preferences
    one = pm.fit(prefs, "balanced", 2.0, n_draws=4000, rng=1)
    many = pm.fit(prefs, "balanced", 2.0, n_draws=40, n_chains=100, rng=1)
    assert many.effective_size == pytest.approx(one.effective_size, rel=0.35)
    assert np.ptp(many.weights.sum(axis=1)) > 0.001
    difference = np.abs(one.rank_probabilities() - many.rank_probabilities()).max()
    assert difference < 0.12


def test_users_who_do_not_agree_are_pointed_out():
    rows = [[1, 2, 3], [1, 2, 3], [3, 2, 1], [1, 2, 3], [2, 3, 1], [3, 1, 2]]
    with pytest.warns(pm.diagnostics.AgreementWarning, match="no more than by chance"):
        posterior = pm.fit(pm.Preferences.from_rankings(rows), "pseudo", rng=1)
    assert (posterior.alpha == 0).all()


@pytest.mark.parametrize("top", [None, 3])
def test_very_few_draws_are_pointed_out(top):
    prefs = pm.simulate_rankings(300, 40, 8, top=top, rng=1).preferences
    with pytest.warns(pm.ConvergenceWarning, match="are stuck far|too few draws to compare"):
        pm.fit(prefs, "mcmc", start="random", n_draws=2, warmup=0, thin=1, n_moves=5, rng=1)


def test_extreme_priors_of_alpha_are_no_trouble():
    rows = [[1, 2, 3], [3, 2, 1], [2, 3, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2]]
    quietly(pm.Preferences.from_rankings(rows), "mcmc", alpha_prior=(1e-3, 1.0), rng=1)
    same = pm.Preferences.from_rankings([[1, 2, 3]] * 10)
    with pytest.warns(pm.diagnostics.AlphaWarning, match="The data put no upper limit on alpha"):
        posterior = pm.fit(same, "mcmc", alpha_prior=(1.0, 1e-300), rng=1)
    assert posterior.alpha.max() <= 1e9


def test_draws_may_be_given_by_place_as_in_the_design():
    prefs = pm.Preferences.from_rankings([[1, 2, 3]])
    assert pm.fit(prefs, "pseudo", 1.0, 7, 1, 3).consensus.shape == (1, 7, 1, 3)
