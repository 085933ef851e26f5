"""What cannot fit into memory is refused before the work begins."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.engines import memory
from pseudomallows.sampling import options

RNG = np.random.default_rng(1)
RANKINGS = pm.Preferences.from_rankings(RNG.permuted(np.tile(np.arange(1, 6), (20, 1)), axis=1))
CLICKS = pm.Preferences.from_clicks(RNG.random((40, 6)) < np.linspace(0.7, 0.1, 6))
FITS = {
    "pseudo": (RANKINGS, {"method": "pseudo", "alpha": 3}),
    "balanced": (RANKINGS, {"method": "balanced"}),
    "mcmc": (RANKINGS, {"method": "mcmc"}),
    "clicks": (CLICKS, {"method": "matched"}),
    "clusters": (CLICKS, {"n_clusters": 2}),
    "auto": (CLICKS, {"n_clusters": "auto"}),
    "latent": (CLICKS, {"alpha": 4, "keep_latent": [0, 1]}),
}


@pytest.mark.parametrize("kind", FITS)
def test_more_draws_than_memory_are_refused_at_once(kind):
    prefs, given = FITS[kind]
    with pytest.raises(ValueError, match=r"n_draws=10{15}.* need .* at most n_draws=\d+ fit"):
        pm.fit(prefs, n_draws=10**15, rng=1, **given)


def test_more_chains_than_memory_are_refused_at_once():
    with pytest.raises(ValueError, match=r"n_chains=10{13} of n_draws=200 .*: give fewer chains"):
        pm.fit(RANKINGS, "mcmc", n_chains=10**13, rng=1)


@pytest.mark.parametrize("kind", FITS)
def test_as_many_draws_as_are_said_to_fit_do_fit(kind, monkeypatch):
    prefs, given = FITS[kind]
    monkeypatch.setattr(options, "available_memory", lambda: 20_000)
    with pytest.raises(ValueError, match=r"20 KB are available: at most n_draws=\d+") as caught:
        pm.fit(prefs, n_draws=1000, rng=1, **given)
    most = int(str(caught.value).partition("at most n_draws=")[2].split()[0])
    if kind == "auto":
        return  # how many clusters there will be is not known yet
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pm.fit(prefs, n_draws=most, rng=1, **given).consensus.shape[1] == most
    with pytest.raises(ValueError, match="at most"):
        pm.fit(prefs, n_draws=most + 1, rng=1, **given)


def test_memory_that_is_not_known_refuses_nothing(monkeypatch):
    monkeypatch.setattr(options, "available_memory", lambda: None)
    assert pm.fit(RANKINGS, "pseudo", alpha=3, n_draws=10, rng=1).consensus.shape[1] == 10


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 800\ninactive_file 100\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() > 600  # that of the machine
    (tmp_path / "memory.max").write_text("1500\n")
    assert memory.available_memory() == 600
    (tmp_path / "memory.max").write_text("10\n")
    assert memory.available_memory() == 0
