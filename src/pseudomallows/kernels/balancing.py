"""Newton's step of balancing a matrix of weights.

The innermost loops add to a whole row at a time, so that the compiler can do several cells at once;
plain loops, since for matrices of this size the threads of a BLAS cost more than they bring.
"""

import numpy as np

from .compiled import compiled

TINY = 1e-20  # a cell below this is no match for the ridge; its products would be slow to add


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
