"""R-hat of many items in one pass, against its definition."""

import numpy as np
import pytest

from pseudomallows.kernels.agreement import largest_rhats

pytestmark = pytest.mark.kernel


def plain_rhat(chains):
    """By definition, with the variance of rounding; `chains` are lists of equal length."""
    length = len(chains[0])
    means = [sum(chain) / length for chain in chains]
    mean = sum(means) / len(chains)
    between = length * sum((each - mean) ** 2 for each in means) / (len(chains) - 1)
    squares = [(x - means[k]) ** 2 for k, chain in enumerate(chains) for x in chain]
    within = sum(squares) / (len(squares) - len(chains)) + 1 / 12
    return ((between / within + length - 1) / length) ** 0.5


@pytest.mark.parametrize("apart", [0, 40])
def test_the_largest_r_hat_is_that_of_the_definition(apart):
    rng = np.random.default_rng(3)
    draws = rng.integers(0, 50, (12, 5)).astype(np.int32)
    draws[:6, 2] += apart
    parts = np.array([[0] * 4 + [-1, -1] + [1] * 4 + [-1, -1], [0, 1, 2] * 4])
    for deal, n_parts in ((0, 2), (1, 3)):
        wanted = []
        for column in draws.T.tolist():
            mean = sum(column) / 12
            for values in (column, [abs(x - mean) for x in column]):
                mine = [
                    [x for x, part in zip(values, parts[deal], strict=True) if part == k]
                    for k in range(n_parts)
                ]
                wanted.append(plain_rhat(mine))
        largest = np.zeros(1)
        largest_rhats(draws, parts[deal : deal + 1], n_parts, largest)
        assert largest[0] == pytest.approx(max(wanted), rel=1e-10)


def test_ranks_that_differ_by_one_place_are_not_infinitely_apart():
    draws = np.repeat([[5, 5], [5, 6]], 8, axis=0).astype(np.int32)
    largest = np.zeros(1)
    largest_rhats(draws, np.repeat([[0, 1]], 8, axis=1), 2, largest)
    assert np.isfinite(largest[0])
    assert largest[0] > 2
