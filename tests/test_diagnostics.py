import numpy as np
import pytest

from pseudomallows import diagnostics

ignore = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def chains(kind, rng):
    """Chains of very different quality, continuous and discrete."""
    noise = rng.standard_normal((4, 500))
    if kind == "independent":
        return noise
    if kind == "slow":
        for draw in range(1, 500):
            noise[:, draw] += 0.95 * noise[:, draw - 1]
        return noise
    if kind == "apart":
        return noise + np.arange(4)[:, None]
    if kind == "wider":
        return noise * np.array([1, 1, 1, 4])[:, None]
    return np.round(noise)


@ignore
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["independent", "slow", "apart", "wider", "discrete"])
def test_rhat_and_effective_size_agree_with_arviz(kind):
    arviz = pytest.importorskip("arviz")
    draws = chains(kind, np.random.default_rng(1))
    assert diagnostics.rhat(draws) == pytest.approx(float(arviz.rhat(draws)), rel=1e-6)
    assert diagnostics.effective_size(draws) == pytest.approx(float(arviz.ess(draws)), rel=0.02)


def test_a_quantity_that_never_moves_is_no_trouble():
    assert diagnostics.rhat(np.ones((4, 100))) == 1.0
    assert diagnostics.effective_size(np.ones((4, 100))) == 400


def test_chains_that_stand_apart_without_moving_are_found():
    draws = np.repeat([[1.0], [2.0], [2.0]], 100, axis=1)
    assert diagnostics.rhat(draws) == np.inf
    assert diagnostics.effective_size(draws) == 3


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


def test_equal_weights_are_worth_all_draws():
    assert diagnostics.weighted_effective_size(np.full(50, 0.02)) == pytest.approx(50)
