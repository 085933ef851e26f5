"""What a click adds to the score of an item: the one place that knows how the weights are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..posteriors.personal import PersonalModel

Floats = NDArray[np.float64]


def weights_from(model: PersonalModel, clicked: NDArray[Any]) -> Floats:
    """``[click, item]``: what each of these clicks adds to the score of every item."""
    return _dense(model.item_weights[clicked])


def weights_into(model: PersonalModel, item: int) -> Floats:
    """``[clicked]``: what a click on every item adds to the score of one."""
    return _dense(model.item_weights[:, [item]])[:, 0]


def _dense(weights: Any) -> Floats:
    return np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, dtype=float)
