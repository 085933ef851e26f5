"""The rows from which clusters are guessed."""

import numpy as np

from ...latent.population import LocalPopulation, Population

START_ROWS, START_ROWS_EACH = 1000, 150  # rows for the guesses: in all, and for each cluster


def some_rows(
    population: Population,
    n_clusters: int,
    rng: np.random.Generator,
    n_each: int = START_ROWS_EACH,
) -> LocalPopulation:
    """Rows enough to guess the clusters from, at hand."""
    n_rows = max(START_ROWS, n_each * n_clusters)
    if population.n_rows <= n_rows:
        return population.gather(population.row_weights)
    weights = np.zeros_like(population.row_weights)
    chosen = rng.choice(population.n_rows, n_rows, replace=False)
    weights[chosen] = population.row_weights[chosen]
    return population.gather(weights)
