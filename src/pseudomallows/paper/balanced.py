"""Balance a matrix of weights: give each item and each rank a price, so that no rank is scarce."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.balancing import newton_direction

# With half and with twice of each of the next three, 20 and 100 items took 3 Newton steps or none.
TOLERANCE = 1e-6  # every row and column sums to 1 within this
RIDGE = 1e-10  # for shifts of the prices that change nothing; far below the tolerance
N_ROUNDS = 20  # of Sinkhorn scaling before each attempt at a Newton step
MAX_STEPS = 200  # 3 are usual; the weights of the draws correct what is left then

Array = NDArray[np.float64]


def balance_weights(log_weights: Array, *, max_steps: int = MAX_STEPS) -> Array:
    """Add a price to each row and column so that the exponentials have unit row and column sums.

    Sinkhorn scaling alone crawls where the weights are sharp: 10,000 rounds and more at 100 items.
    So it starts from the prices of the best assignment, and Newton's method takes over. Stops when
    every sum is within 1e-6 of 1, or after so many steps: draws and their weights are by the same
    matrix, so they stay valid if it is not balanced to all digits.

    >>> np.exp(balance_weights(np.log([[3.0, 1.0], [1.0, 3.0]])))
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    rows, columns = assignment_prices(log_weights)
    matrix = _scale(log_weights, rows, columns)
    for step in range(max_steps + 1):
        if _error(matrix) <= TOLERANCE or step == max_steps:
            break
        moved = _newton_step(log_weights, matrix, rows, columns)
        matrix = _scale(log_weights, rows, columns) if moved is None else moved
    return np.asarray(log_weights + rows[:, None] + columns)


def assignment_prices(log_weights: Array) -> tuple[Array, Array]:
    """Prices with which the cells of the best assignment are 1, and no cell is above: the dual of
    the assignment problem, as shortest paths (Bellman and Ford) from column to column."""
    from scipy.optimize import linear_sum_assignment

    items, ranks = linear_sum_assignment(log_weights, maximize=True)
    assigned = log_weights[items[np.argsort(ranks)]]  # of each column, the row that has it
    paths = np.diag(assigned)[:, None] - assigned
    columns = np.zeros(len(log_weights))
    for _ in range(len(columns)):
        prices = (columns[:, None] + paths).min(axis=0)
        if (prices >= columns - 1e-9 * (1.0 + np.abs(prices))).all():  # less is rounding
            break
        columns = np.minimum(columns, prices)
    return -log_weights[items, ranks] - columns[ranks], columns


def _matrix(log_weights: Array, rows: Array, columns: Array) -> Array:
    return np.asarray(np.exp(log_weights + rows[:, None] + columns))


def _scale(log_weights: Array, rows: Array, columns: Array) -> Array:
    """Scale rows and columns in turn: first by logarithms, after which no sum can vanish."""
    rows[:] = -_log_sums(log_weights + columns)
    columns[:] = -_log_sums(log_weights.T + rows)
    matrix, of_columns = _matrix(log_weights, rows, columns), np.ones(len(rows))
    for _ in range(N_ROUNDS):  # no BLAS, whose threads cost more here than they bring
        of_rows = 1.0 / np.einsum("rc,c->r", matrix, of_columns)
        of_columns = 1.0 / np.einsum("rc,r->c", matrix, of_rows)
    rows += np.log(of_rows)
    columns += np.log(of_columns)
    return _matrix(log_weights, rows, columns)


def _log_sums(logs: Array) -> Array:
    highest = logs.max(axis=1)
    return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))


def _error(matrix: Array) -> float:
    return float(max(np.abs(matrix.sum(axis=axis) - 1).max() for axis in (0, 1)))


def _newton_step(log_weights: Array, matrix: Array, rows: Array, columns: Array) -> Array | None:
    """Move the prices by a damped Newton step on the convex dual; return the new matrix, if any
    step went down.

    The prices minimise sum(matrix) - sum(prices). A shift of all rows against all columns changes
    nothing, nor does one of a block that stands apart; the ridge keeps them where they are.
    """
    row_sums, column_sums = matrix.sum(axis=1), matrix.sum(axis=0)
    row_step, column_step = np.empty(len(rows)), np.empty(len(rows))
    newton_direction(matrix, row_sums, column_sums, RIDGE, row_step, column_step)
    height = matrix.sum() - rows.sum() - columns.sum()
    descent = ((row_sums - 1) * row_step + (column_sums - 1) * column_step).sum()
    for halving in range(20):
        size = 0.5**halving
        new_rows, new_columns = rows + size * row_step, columns + size * column_step
        with np.errstate(over="ignore"):
            moved = _matrix(log_weights, new_rows, new_columns)
        if moved.sum() - new_rows.sum() - new_columns.sum() <= height + 1e-4 * size * descent:
            rows[:], columns[:] = new_rows, new_columns
            return moved
    return None
