"""Latent rankings of users who are known by their clicks: the clicked items have the first ranks.

Each user is two matchings on the line of `matching`: the clicked items with the first ranks, the
others with the rest. rate is alpha / n_items.
"""

import numpy as np

from ..click_rows import clicks_of
from ..compiled import compiled
from ..streams import start_user
from .matching import BOTH, ITEM, RANK, Sums, draw_matching, matching_factors, sum_matchings


@compiled
def mark_clicks(mine, consensus, places, others):
    """Mark the line of the clicked items and, as its complement, that of the others."""
    for place in range(len(places)):
        places[place] = RANK if place < len(mine) else 0
    for i in range(len(mine)):
        places[consensus[mine[i]] - 1] += ITEM
    for place in range(len(places)):
        others[place] = BOTH - places[place]


@compiled
def draw_click_users(streams, clicks, consensus, rate, counts, latent):
    """Draw the latent ranking of every user exactly and add it to `counts[item, rank - 1]`.

    `latent[row]` is the ranking of the last user of a row, if `latent` has rows at all.
    """
    n_items, weights = len(consensus), streams.weights
    factors = matching_factors(rate, n_items)
    tables = np.empty((2, n_items + 1, n_items // 2 + 3))
    tops = np.empty((2, n_items + 1), dtype=np.int64)
    lines = np.empty((2, n_items), dtype=np.int64)
    ordering, drawn = np.empty((2, n_items), dtype=np.int64)
    waiting = np.empty((2, n_items), dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(weights)):
        mine = clicks_of(clicks, row)
        mark_clicks(mine, consensus, lines[0], lines[1])
        for group in range(2):
            sum_matchings(lines[group], rate, factors, Sums(tables[group], tops[group]))
        for user in range(weights[row]):
            start_user(streams, row, user, stream)
            for group in range(2):
                sums = Sums(tables[group], tops[group])
                draw_matching(stream, lines[group], factors.roots, sums, waiting, drawn)
            for place in range(n_items):
                item, rank = ordering[place], drawn[place]
                counts[item, rank - 1] += 1
                if len(latent):
                    latent[row, item] = rank
