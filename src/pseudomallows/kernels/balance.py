"""Balancing a matrix of weights: prices of rows and columns, in logarithms."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def assignment_prices(log_weights, row_of, column_prices):
    """Fill the column prices that support the best assignment, `row_of[column]`.

    With them, and the row prices that make its cells 1, no cell is above 1: the dual of the
    assignment problem, as shortest paths (Bellman and Ford) from column to column.
    """
    n_items = len(log_weights)
    column_prices[:] = 0.0
    for _ in range(n_items):
        settled = True
        for column in range(n_items):
            row = row_of[column]
            base = column_prices[column] + log_weights[row, column]
            for other in range(n_items):
                price = base - log_weights[row, other]
                if price < column_prices[other] - 1e-9 * (1.0 + abs(price)):
                    column_prices[other] = price
                    settled = False
        if settled:
            break


@njit(cache=True, nogil=True)
def sinkhorn(log_weights, n_rounds, row_prices, column_prices):
    """Scale the rows, then the columns, to unit sums, `n_rounds` times."""
    for _ in range(n_rounds):
        scale_rows(log_weights, column_prices, row_prices)
        scale_rows(log_weights.T, row_prices, column_prices)


@njit(cache=True, nogil=True)
def scale_rows(log_weights, column_prices, row_prices):
    """Set the row prices so that every row sums to 1."""
    n_items = len(log_weights)
    for row in range(n_items):
        highest, total = -np.inf, 0.0
        for column in range(n_items):
            highest = max(highest, log_weights[row, column] + column_prices[column])
        for column in range(n_items):
            total += np.exp(log_weights[row, column] + column_prices[column] - highest)
        row_prices[row] = -highest - np.log(total)


@njit(cache=True, nogil=True)
def newton_direction(matrix, row_sums, column_sums, ridge, row_step, column_step):
    """Fill the steps of row and column prices that would make all sums 1, to first order.

    The columns are eliminated, and the rest is solved by Cholesky. Plain loops: for matrices of
    this size the threads of a BLAS cost more than they bring.
    """
    n_items = len(matrix)
    factor = np.zeros((n_items, n_items))
    scaled = matrix / column_sums
    for row in range(n_items):
        for other in range(row + 1):
            value = 0.0
            for column in range(n_items):
                value -= scaled[row, column] * matrix[other, column]
            factor[row, other] = value
        factor[row, row] += row_sums[row] + ridge
        row_step[row] = 1.0 - row_sums[row]
        for column in range(n_items):
            row_step[row] += scaled[row, column] * (column_sums[column] - 1.0)
    solve_positive(factor, row_step)
    for column in range(n_items):
        value = 1.0 - column_sums[column]
        for row in range(n_items):
            value -= matrix[row, column] * row_step[row]
        column_step[column] = value / column_sums[column]


@njit(cache=True, nogil=True)
def solve_positive(lower, vector):
    """Solve a symmetric positive definite system in place, given its lower triangle."""
    n_rows = len(vector)
    for row in range(n_rows):
        for column in range(row + 1):
            value = lower[row, column]
            for k in range(column):
                value -= lower[row, k] * lower[column, k]
            if row == column:
                lower[row, row] = np.sqrt(max(value, 1e-14))
            else:
                lower[row, column] = value / lower[column, column]
        for k in range(row):
            vector[row] -= lower[row, k] * vector[k]
        vector[row] /= lower[row, row]
    for row in range(n_rows - 1, -1, -1):
        for k in range(row + 1, n_rows):
            vector[row] -= lower[k, row] * vector[k]
        vector[row] /= lower[row, row]
