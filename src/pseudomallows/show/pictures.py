"""Where the marks of the report's pictures go. The template draws them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_CELLS = 60  # of a row of ranks: more are too narrow to see on a phone


class Heat(NamedTuple):
    """Rank probabilities in rows of cells, one row an item.

    ``rows[item]`` lists the cells that are seen as (place, strength), a cell is `cell` wide;
    places and widths are shares of a row, which holds `width` ranks, `size` a cell. `marks` are
    the numbers over the rows: (rank, place, anchor). `strongest` is the probability of strength 1.
    """

    rows: list[list[tuple[float, float]]]
    cell: float
    width: int
    size: int
    marks: list[tuple[int, float, str]]
    strongest: float


def heat(probabilities: NDArray[np.float64], last: int) -> Heat:
    """Cells of ``probabilities[item, rank - 1]``, for the ranks 1 to `last`."""
    cells, size = in_cells(probabilities, last)
    strongest, n_cells = float(cells.max()), cells.shape[1]
    strengths = np.sqrt(cells / strongest)  # so that small probabilities are seen
    is_seen = cells >= 0.002 * strongest  # a fainter cell is white on any screen
    rows = [
        [(cell / n_cells, float(row[cell])) for cell in np.flatnonzero(seen).tolist()]
        for row, seen in zip(strengths, is_seen, strict=True)
    ]
    width = n_cells * size
    return Heat(rows, 1 / n_cells, width, size, _marks(last, width), strongest)


def in_cells(probabilities: NDArray[np.float64], last: int) -> tuple[NDArray[np.float64], int]:
    """``probabilities[item, cell]`` of the ranks 1 to `last`, at most `MAX_CELLS` cells, and the
    ranks of a cell; the last cell may be short.

    >>> in_cells(np.array([[0.5, 0.3, 0.2]]), 3)
    (array([[0.5, 0.3, 0.2]]), 1)
    """
    size = -(-last // MAX_CELLS)
    starts = np.arange(0, last, size)
    return np.add.reduceat(probabilities[:, :last], starts, axis=1), size


def _marks(last: int, width: int) -> list[tuple[int, float, str]]:
    """The numbers over rows of `width` ranks, of which those up to `last` are there."""
    if last <= 10:
        return [(rank, (rank - 0.5) / width, "middle") for rank in range(1, last + 1)]
    middle = round(last / 2)
    return [(1, 0.0, "start"), (middle, (middle - 0.5) / width, "middle"), (last, 1.0, "end")]


def pair_cells(table: NDArray[np.float64]) -> list[list[tuple[float, float] | None]]:
    """``cells[row][column]`` is (probability that the row comes first, how far it is from a
    toss-up, 0 to 1); None for an item and itself.

    >>> pair_cells(np.array([[0.5, 0.75], [0.25, 0.5]]))
    [[None, (0.75, 0.5)], [(0.25, 0.5), None]]
    """
    return [
        [
            None if row == column else (probability, abs(2 * probability - 1))
            for column, probability in enumerate(probabilities)
        ]
        for row, probabilities in enumerate(table.tolist())
    ]
