"""What a click adds to the score of an item: the one place that knows how the weights are kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..posteriors.personal import PersonalModel

Floats = NDArray[np.float64]


def weights_from(model: PersonalModel, clicked: NDArray[Any]) -> Floats:
    """``[click, item]``: what each of these clicks adds to the score of every item."""
    found = _dense(model.item_weights[clicked])
    left, right = _factors(model)
    if left.size:
        found = found + _dense(left[clicked] @ right)
        found[np.arange(len(clicked)), clicked] = 0.0
    return found


def weights_into(model: PersonalModel, item: int) -> Floats:
    """``[clicked]``: what a click on every item adds to the score of one."""
    found = _dense(model.item_weights[:, [item]])[:, 0]
    left, right = _factors(model)
    if left.size:
        found = found + _dense(left @ right[:, item])
        found[item] = 0.0
    return found


def _factors(model: PersonalModel) -> tuple[NDArray[Any], NDArray[Any]]:
    """``left[clicked] @ right[:, item]`` is added to the weights, where there are factors."""
    nothing = np.empty((0, 0))
    return getattr(model, "left", nothing), getattr(model, "right", nothing)


def _dense(weights: Any) -> Floats:
    return np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, dtype=float)
