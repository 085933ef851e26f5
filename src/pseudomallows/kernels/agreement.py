"""Do chains agree on the ranks of many items? Without a sort, in one pass over the draws."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def squared_rhat(values, parts, sums):
    """Square of the R-hat of `values[draw]`, where `parts[draw]` is the part of a chain that a draw
    belongs to, all parts being as long; draws of part -1 are left out."""
    n_parts, n_draws, total, squares = len(sums), 0, 0.0, 0.0
    sums[:] = 0.0
    for draw in range(len(values)):
        if parts[draw] >= 0:
            sums[parts[draw]] += values[draw]
            squares += values[draw] * values[draw]
            n_draws += 1
    between, length = 0.0, n_draws / n_parts
    for part in range(n_parts):
        total += sums[part]
    for part in range(n_parts):
        between += (sums[part] - total / n_parts) ** 2 / length
    within = max(squares - total * total / n_draws - between, 0.0) / (n_draws - n_parts)
    within += 1.0 / 12.0  # the variance of what is lost when a rank is a whole number (Sheppard)
    return (between / (n_parts - 1) / within + length - 1.0) / length


@njit(cache=True, nogil=True)
def largest_rhats(draws, parts, n_parts, largest):
    """Raise `largest[deal]` to the largest R-hat of all items of `draws[draw, item]`, of the ranks
    and of their distances from the mean, by `parts[deal, draw]`."""
    n_draws, n_items = draws.shape
    ranks, spreads, sums = np.empty(n_draws), np.empty(n_draws), np.empty(n_parts)
    for item in range(n_items):
        mean = 0.0
        for draw in range(n_draws):
            mean += draws[draw, item] / n_draws
        for draw in range(n_draws):
            ranks[draw] = draws[draw, item] - mean
            spreads[draw] = abs(ranks[draw])
        for deal in range(len(parts)):
            squared = max(
                squared_rhat(ranks, parts[deal], sums), squared_rhat(spreads, parts[deal], sums)
            )
            largest[deal] = max(largest[deal], np.sqrt(squared))
