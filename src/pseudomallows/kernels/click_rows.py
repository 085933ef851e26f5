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


def ranks_of_clicks(clicks: ClickRows, n_items: int) -> NDArray[np.int32]:
    """What clicks say of full rankings, ``[row, item]``: clicked items share the ranks from 1 on,
    the others, of rank 0, the rest."""
    sizes = np.diff(clicks.starts)
    ranks = np.zeros((len(sizes), n_items), dtype=np.int32)
    codes = clicks.codes[clicks.starts[0] : clicks.starts[-1]]
    ranks[np.repeat(np.arange(len(sizes)), sizes), codes] = 1
    return ranks


@compiled
def clicks_of(clicks, row):
    """The items that a row clicked."""
    return clicks.codes[clicks.starts[row] : clicks.starts[row + 1]]
