"""Settings for all tests."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("project", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def _let_integers_wrap():
    """Streams wrap around 2^64 by design; uncompiled, NumPy would warn of it."""
    with np.errstate(over="ignore"):
        yield
