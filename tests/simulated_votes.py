"""Simulated votes, for tests."""

import numpy as np
from scipy import special

import pseudomallows as pm


def votes_of_wins(wins):
    """Preferences of ``wins[i, j]`` votes."""
    better, worse = np.nonzero(wins)
    rows = np.arange(len(better))
    return pm.data.Pairs(
        wins[better, worse],
        rows,
        np.arange(len(wins)),
        np.arange(len(rows) + 1),
        better.astype(np.int32),
        worse.astype(np.int32),
        np.ones_like(rows),
        np.zeros_like(rows),
    )


def simulate(probabilities, n_votes, rng, popularity=None):
    """``wins[i, j]`` of votes on random pairs, popular items more often."""
    n_items = len(probabilities)
    one, other = np.triu_indices(n_items, 1)
    popularity = np.ones(n_items) if popularity is None else popularity
    asked = popularity[one] * popularity[other]
    asked = rng.multinomial(n_votes, asked / asked.sum())
    won = rng.binomial(asked, probabilities[one, other])
    wins = np.zeros((n_items, n_items), dtype=np.int64)
    wins[one, other], wins[other, one] = won, asked - won
    return wins


def bradley_terry(strengths):
    return special.expit(np.subtract.outer(strengths, strengths))
