"""How many votes until the top 5 of 20 items is right: asking what `next_pairs` says, or at random?

People rank by Kendall's law around a hidden consensus, and each compares one pair of items. After
every 10 votes the consensus is fitted anew, and the next 10 pairs are chosen: the most telling ones,
or random ones. The vote that counts is the first after which the top 5 is right three times in a
row.

    .venv/bin/python benchmarks/next_pairs.py --alpha 10 --seeds 40
"""

import time
import warnings

import numpy as np
from timing import arguments, print_table

import pseudomallows as pm

N_ITEMS, TOP, BATCH, IN_A_ROW = 20, 5, 10, 3


def ask(consensus, alpha, pairs, rng):
    """The answers of new people: rows (better, worse)."""
    law = pm.Mallows(consensus, alpha, "kendall")
    rankings = law.draw(len(pairs), rng)
    return [
        (i, j) if ranks[i] < ranks[j] else (j, i)
        for (i, j), ranks in zip(pairs, rankings, strict=True)
    ]


def fit(votes):
    prefs = pm.Preferences.from_pairs(votes, items=range(N_ITEMS))
    options = {"n_draws": 50, "n_chains": 2, "gaps": "equal", "thin": 3, "warmup": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pm.fit(prefs, "mcmc", distance="kendall", rng=1, **options)


def random_pairs(posterior, rng):
    return [tuple(rng.choice(N_ITEMS, 2, replace=False).tolist()) for _ in range(BATCH)]


def telling_pairs(posterior, rng):
    found = pm.next_pairs(posterior, n=BATCH)
    return list(zip(found.items.tolist(), found.others.tolist(), strict=True))


def votes_needed(choose, alpha, seed, most):
    """The number of votes, or `most` if that is not enough."""
    rng = np.random.default_rng(seed)
    consensus = rng.permutation(N_ITEMS) + 1
    right = set(np.flatnonzero(consensus <= TOP).tolist())
    votes = ask(consensus, alpha, random_pairs(None, rng), rng)
    n_right = 0
    while len(votes) < most:
        posterior = fit(votes)
        top = np.flatnonzero(posterior.point_consensus() <= TOP)
        n_right = n_right + 1 if set(top.tolist()) == right else 0
        if n_right == IN_A_ROW:
            return len(votes) - (IN_A_ROW - 1) * BATCH
        votes += ask(consensus, alpha, choose(posterior, rng), rng)
    return most


def main():
    options = arguments(__doc__, alpha=10.0, seeds=40, most=2000)
    rows, all_needed, started = [], [], time.process_time()
    for name, choose in (("next_pairs", telling_pairs), ("random pairs", random_pairs)):
        needed = [
            votes_needed(choose, options.alpha, seed, options.most) for seed in range(options.seeds)
        ]
        all_needed.append(needed)
        spread = np.std(needed) / np.sqrt(len(needed))
        rows.append([name, f"{np.mean(needed):.0f} ± {spread:.0f}", f"{np.median(needed):.0f}"])
    print(f"{options.seeds} seeds, alpha {options.alpha:g}, at most {options.most} votes")
    print_table(["pairs", "votes needed, mean", "median"], rows)
    saved = np.subtract(*all_needed[::-1])
    error = saved.std(ddof=1) / np.sqrt(len(saved))
    print(
        f"saved: {saved.mean():.0f} ± {error:.0f} votes; {time.process_time() - started:.0f} CPU s"
    )


if __name__ == "__main__":
    main()
