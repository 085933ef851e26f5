"""The clicks of some users, as kernels read them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled


class ClickRows(NamedTuple):
    """Row `row` clicked the items `codes[starts[row]:starts[row + 1]]`."""

    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


def slice_clicks(clicks: Any, rows: slice) -> ClickRows:
    """Some rows, of anything that has `starts` and `codes` of all."""
    return ClickRows(clicks.starts[rows.start : rows.stop + 1], clicks.codes)


@compiled
def clicks_of(clicks, row):
    """The items that a row clicked."""
    return clicks.codes[clicks.starts[row] : clicks.starts[row + 1]]
