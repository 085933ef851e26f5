"""Balancing a matrix of weights: prices of rows and columns.

The innermost loops add to a whole row at a time, so that the compiler can do several cells at once;
plain loops, since for matrices of this size the threads of a BLAS cost more than they bring.
"""

import numpy as np

from .compiled import compiled

TINY = 1e-20  # a cell below this is no match for the ridge; its products would be slow to add


@compiled
def assignment_prices(log_weights, row_of, column_prices):
    """Fill the column prices that support the best assignment, `row_of[column]`.

    With them, and the row prices that make its cells 1, no cell is above 1: the dual of the
    assignment problem, as shortest paths (Bellman and Ford) from column to column.
    """
    n_items = len(log_weights)
    column_prices[:] = 0.0
    fell = np.ones(n_items, dtype=np.bool_)  # since the last step from this column
    for _ in range(n_items):
        for column in range(n_items):
            if not fell[column]:
                continue
            fell[column] = False
            row = row_of[column]
            base = column_prices[column] + log_weights[row, column]
            for other in range(n_items):
                price = base - log_weights[row, other]
                if price < column_prices[other] - 1e-9 * (1.0 + abs(price)):
                    column_prices[other] = price
                    fell[other] = True
        if not fell.any():
            break


@compiled
def sinkhorn(matrix, n_rounds, row_scales, column_scales):
    """Scale the rows, then the columns, to unit sums, `n_rounds` times; none may sum to 0."""
    turned = matrix.T.copy()
    for _ in range(n_rounds):
        invert_sums(turned, column_scales, row_scales)
        invert_sums(matrix, row_scales, column_scales)


@compiled
def invert_sums(matrix, row_scales, column_scales):
    """Set the column scales so that every column of the scaled matrix sums to 1."""
    n_items = len(matrix)
    column_scales[:] = 0.0
    for row in range(n_items):
        scale = row_scales[row]
        for column in range(n_items):
            column_scales[column] += scale * matrix[row, column]
    for column in range(n_items):
        column_scales[column] = 1.0 / column_scales[column]


@compiled
def newton_direction(matrix, row_sums, column_sums, ridge, row_step, column_step):
    """Fill the steps of row and column prices that would make all sums 1, to first order.

    The columns are eliminated, and the rest is solved by Cholesky.
    """
    n_items = len(matrix)
    turned = matrix.T.copy()
    factor = np.zeros((n_items, n_items))  # its upper triangle
    for row in range(n_items):
        row_step[row] = 1.0 - row_sums[row]
        for column in range(n_items):
            if matrix[row, column] > TINY:  # if weights are sharp, few cells are
                scaled = matrix[row, column] / column_sums[column]
                row_step[row] += scaled * (column_sums[column] - 1.0)
                subtract(factor[row, row:], scaled, turned[column, row:])
        factor[row, row] += row_sums[row] + ridge
    solve_positive(factor, row_step)
    for column in range(n_items):
        column_step[column] = 1.0 - column_sums[column]
    for row in range(n_items):
        subtract(column_step, row_step[row], matrix[row])
    for column in range(n_items):
        column_step[column] /= column_sums[column]


@compiled
def solve_positive(upper, vector):
    """Solve a symmetric positive definite system in place, given its upper triangle."""
    n_rows = len(vector)
    for row in range(n_rows):
        pivot = np.sqrt(max(upper[row, row], 1e-14))
        upper[row, row] = pivot
        for column in range(row + 1, n_rows):
            upper[row, column] /= pivot
        vector[row] /= pivot
        subtract(vector[row + 1 :], vector[row], upper[row, row + 1 :])
        for below in range(row + 1, n_rows):
            if abs(upper[row, below]) > TINY:
                subtract(upper[below, below:], upper[row, below], upper[row, below:])
    for row in range(n_rows - 1, -1, -1):
        for column in range(row + 1, n_rows):
            vector[row] -= upper[row, column] * vector[column]
        vector[row] /= upper[row, row]


@compiled
def subtract(target, factor, source):
    """Subtract so many times a row from another."""
    for place in range(len(target)):
        target[place] -= factor * source[place]
