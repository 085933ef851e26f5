import numpy as np
import pytest

from pseudomallows import diagnostics

ignore = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def chains(kind, n_chains, n_draws, rng):
    """Chains of very different quality, continuous and discrete."""
    noise = rng.standard_normal((n_chains, n_draws))
    if kind == "slow":
        for draw in range(1, n_draws):
            noise[:, draw] += 0.95 * noise[:, draw - 1]
    if kind == "apart":
        return noise + np.arange(n_chains)[:, None]
    if kind == "wider":
        return noise * np.where(np.arange(n_chains) == 3, 4, 1)[:, None]
    return np.round(noise) if kind == "discrete" else noise


SHAPES = [
    (n_chains, n_draws) for n_chains in (1, 2, 4) for n_draws in (*range(4, 22), 99, 200, 501)
]


@ignore
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["independent", "slow", "apart", "wider", "discrete"])
def test_rhat_and_effective_size_are_those_of_arviz(kind):
    arviz = pytest.importorskip("arviz")
    rng, checked = np.random.default_rng(1), 0
    for n_chains, n_draws in SHAPES * 4:
        draws = chains(kind, n_chains, n_draws, rng)
        if np.ptp(draws, axis=1).min() == 0:
            continue  # chains that never move are not left to ArviZ, see below
        checked += 1
        size = float(arviz.ess(draws, method="bulk"))
        assert diagnostics.effective_size(draws) == pytest.approx(size, rel=1e-6), draws.shape
        if n_chains > 1 and np.isfinite(value := float(arviz.rhat(draws))):
            assert diagnostics.rhat(draws) == pytest.approx(value, rel=1e-6), draws.shape
    assert checked > 200


def test_a_quantity_that_never_moves_is_no_trouble():
    assert diagnostics.rhat(np.ones((4, 100))) == 1.0
    assert diagnostics.effective_size(np.ones((4, 100))) == 400


def test_chains_that_stand_apart_without_moving_are_found():
    draws = np.repeat([[1.0], [2.0], [2.0]], 100, axis=1)
    assert diagnostics.rhat(draws) == np.inf
    assert diagnostics.effective_size(draws) == 3


def test_a_jump_between_the_halves_is_found():
    draws = np.repeat([[1.0, 2.0], [1.0, 2.0]], 50, axis=1)
    assert diagnostics.rhat(draws) == np.inf
    assert diagnostics.effective_size(draws) < 3


def test_a_rank_that_moves_once_is_finite():
    draws = np.ones((4, 100))
    draws[0, 5] = 2
    assert np.isfinite(diagnostics.rhat(draws))
    assert 0 < diagnostics.effective_size(draws) <= 400 * np.log10(400)


@pytest.mark.parametrize("place", [0, 49, 98])
def test_an_odd_number_of_draws_of_which_one_moves_is_no_trouble(place):
    draws = np.ones((1, 99))
    draws[0, place] = 2
    assert np.isfinite(diagnostics.rhat(draws))
    assert 0 < diagnostics.effective_size(draws) <= 99 * np.log10(99)
