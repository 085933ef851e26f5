import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels.select import smallest


@pytest.mark.kernel
@pytest.mark.parametrize("kernel", [smallest, interpreted(smallest)])
def test_the_value_at_a_place_is_that_of_the_sorted_ones(kernel):
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 8, 50):
        for values in (rng.random(size), rng.integers(0, 3, size).astype(float), np.zeros(size)):
            for place in range(size):
                assert kernel(values.copy(), place) == np.sort(values)[place]
