"""Sinkhorn balancing in logarithms: give each rank a price so that none is in excess demand."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def balance(log_weights, tolerance, max_rounds, row_prices, column_prices):
    """Add prices until exp(log_weights + row + column prices) has unit row and column sums.

    Goes on from the prices it is given. The columns are exact after each round, so the error is
    that of the rows. Returns the number of rounds and the largest error left.
    """
    n_items = len(log_weights)
    error = np.inf
    for n_rounds in range(max_rounds + 1):
        for column in range(n_items):
            highest, total = -np.inf, 0.0
            for row in range(n_items):
                highest = max(highest, log_weights[row, column] + row_prices[row])
            for row in range(n_items):
                total += np.exp(log_weights[row, column] + row_prices[row] - highest)
            column_prices[column] = -highest - np.log(total)
        error = 0.0
        for row in range(n_items):
            highest, total = -np.inf, 0.0
            for column in range(n_items):
                highest = max(highest, log_weights[row, column] + column_prices[column])
            for column in range(n_items):
                total += np.exp(log_weights[row, column] + column_prices[column] - highest)
            log_sum = highest + np.log(total)
            error = max(error, abs(np.exp(log_sum + row_prices[row]) - 1.0))
            if n_rounds < max_rounds:
                row_prices[row] = -log_sum
        if error <= tolerance:
            return n_rounds, error
    return max_rounds, error
