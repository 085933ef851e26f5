"""Personal scores: the blend against one regression alone, on real clicks.

The splits of `recommenders.py` (retail: the seed chooses the hidden clicks; msweb: the files are
the split). Each half of the users is evaluated with a correction from the hidden clicks of the
other half, as in `personal.py`, whose columns these are; CPU seconds are those of one fit with its
recommendations. Then the gain in accuracy, with its standard error over users, paired.

    .venv/bin/python benchmarks/blend.py retail --seeds 4
    .venv/bin/python benchmarks/blend.py msweb --folder FOLDER

Needs `pandas` for msweb. A seed takes about half a minute.

Tried and left out. Means of the best blends of ten samples of the users, for fewer than 600 users:
at most 0.45 points of accuracy, at twice the time. A sharper objective (1 or 2 instead of 3 ranks)
and a smoother one (5), and a search from four equal parts: no better blends. ALS that starts from
the factors of another split gains 0.6 on retail, but these factors have seen what is hidden.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import pseudomallows as pm
import recommenders
from personal import our_row, ours
from timing import print_table

METHODS = {"one regression": {"blend": False}, "blend": {}}


def judge(split, seed):
    """Rows of a table, and by each method the share of hits of each user."""
    order = np.random.default_rng(seed).permutation(split.train.shape[0])
    halves, rows, hits = np.array_split(order, 2), [], []
    for title, options in METHODS.items():
        started = time.process_time()
        probabilities = ours(split, halves, seed, **options)
        seconds = (time.process_time() - started) / 2
        row = our_row(f"{title}, seed {seed}", probabilities, split)
        rows.append([row.name, f"{row.hits.mean():.2%}", *row.cells[:5], f"{seconds:.1f} s"])
        hits.append(row.hits.mean(axis=1))
    return rows, hits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=recommenders.SPLITS)
    parser.add_argument("--folder", type=Path, help="for msweb: where train.csv and test.csv are")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 1 on; default 1")
    given = parser.parse_args()
    small = pm.simulate_clicks(200, 30, [6, 6], 6, min_clicks=4, rng=1).preferences
    for options in METHODS.values():
        pm.fit(small, "personal", rng=1, **options)  # compile
    rows, gains = [], {}
    for seed in range(1, given.seeds + 1):
        found, (one, blend) = judge(recommenders.SPLITS[given.data](given.folder, seed), seed)
        rows += found
        gains[seed] = 100 * (blend - one)
    print_table(["method", "accuracy", "ECE, k", "Brier, k", "Brier", "log", "AUC", "CPU"], rows)
    for seed, gain in gains.items():
        error = gain.std() / np.sqrt(len(gain))
        print(f"seed {seed}: {gain.mean():+.2f} ± {error:.2f} points")


if __name__ == "__main__":
    main()
