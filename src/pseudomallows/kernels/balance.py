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
