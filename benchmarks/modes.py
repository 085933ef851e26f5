"""Posteriors with several modes: does a fit find all of them, and does its verdict know?

(a) Five data sets with several modes, or with camps that share no order, five seeds each: largest
    error of a rank probability against full enumeration, verdict, CPU seconds.
(b) Random camps of people with identical rankings of 5 items (two to five camps, of 5 to 59 people
    or of multiples of 4, 12 or 30). Enumeration finds the sets with a second mode: without
    the consensuses of probability below 1e-3, swaps of two items no longer connect it with the
    first, and it has more than 8 % of the mass. All of these are fitted, and `--others` of the
    rest: how many fits say "yes" though the ranks of some item are off by more than 0.15 in total
    variation? `--sets` counts the random sets of each distance.

(a) takes ten seconds; (b) half a minute, with `--sets 13000` three.
"""

import functools
import itertools
import warnings

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

import pseudomallows as pm
from timing import answer, arguments, cpu_seconds, print_table

CYCLES = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
ONE_TO_TEN = list(range(1, 11))
SETS = {  # {name: (distance, rankings, how many people have each)}
    "118 people": ("footrule", [[3, 2, 5, 4, 1], [3, 4, 1, 2, 5], [1, 4, 2, 5, 3]], [55, 23, 40]),
    "123 people": ("footrule", [[3, 1, 4, 5, 2], [5, 1, 2, 4, 3], [3, 5, 2, 1, 4]], [57, 47, 19]),
    "cycles": ("kendall", [np.add.outer([0, 3, 6], c).ravel() for c in CYCLES], [20] * 3),
    "5-cycle apart": ("hamming", [[1, 2, 3, 4, 5], [2, 3, 4, 5, 1]], [10, 10]),
    "opposite camps": ("footrule", [ONE_TO_TEN, ONE_TO_TEN[::-1]], [40, 40]),
}
ALPHAS = np.geomspace(1e-3, 300, 600)
LEAST_MASS, BARRIER, WRONG = 0.08, 1e-3, 0.15


@functools.cache
def all_rankings(n_items):
    """Every ranking, a row each: those of one item less, with the last item put in everywhere."""
    rankings = np.ones((1, 1), dtype=np.int8)
    for n in range(2, n_items + 1):
        ranks = np.repeat(np.arange(1, n + 1, dtype=np.int8), len(rankings))
        rest = np.tile(rankings, (n, 1))
        rankings = np.column_stack([rest + (rest >= ranks[:, None]), ranks])
    return rankings


def distances(name, rankings, other):
    """Distance of each row from one ranking, by its definition."""
    columns = list(zip(rankings.T, other, strict=True))
    if name == "footrule":
        return sum(np.abs(ranks - int(rank)).astype(np.int32) for ranks, rank in columns)
    if name == "hamming":
        return sum((ranks != rank).astype(np.int32) for ranks, rank in columns)
    pairs = itertools.combinations(columns, 2)
    return sum(((a < b) != (i < j)).astype(np.int32) for (a, i), (b, j) in pairs)


@functools.cache
def log_partitions(name, n_items):
    """Log normalising constant at each of `ALPHAS`."""
    apart = distances(name, all_rankings(n_items), np.arange(1, n_items + 1))
    values, counts = np.unique(apart, return_counts=True)
    return logsumexp(-ALPHAS[:, None] / n_items * values, b=counts, axis=1)


def log_weights(name, n_items, n_users, sums):
    """Log posterior of consensuses whose distances from all users add up to `sums`, with alpha
    integrated out; up to a constant."""
    # the gamma prior, shape 2 and rate 2 / n + 1 / 20; one alpha more for steps even in log alpha
    log_prior = 2 * np.log(ALPHAS) - (2 / n_items + 1 / 20) * ALPHAS
    terms = log_prior - n_users * log_partitions(name, n_items)
    values, places = np.unique(sums, return_inverse=True)
    return logsumexp(terms - ALPHAS / n_items * values[:, None], axis=1)[places]


def exact_ranks(name, camps, sizes):
    """Posterior probability of each consensus, and ``probabilities[item, rank - 1]``."""
    rankings, n_items = all_rankings(len(camps[0])), len(camps[0])
    apart = sum(n * distances(name, rankings, camp) for camp, n in zip(camps, sizes, strict=True))
    log_masses = log_weights(name, n_items, sum(sizes), apart)
    masses = np.exp(log_masses - logsumexp(log_masses))
    table = [np.bincount(ranks, masses, n_items + 1)[1:] for ranks in rankings.T]
    return masses, np.array(table)


def fit(name, camps, sizes, seed):
    """CPU seconds and posterior of a default fit."""
    prefs = pm.Preferences.from_rankings(np.repeat(camps, sizes, axis=0))
    return cpu_seconds(lambda: pm.fit(prefs, distance=name, rng=seed))


def known_sets(n_seeds):
    """(a)"""
    rows = []
    for title, (name, camps, sizes) in SETS.items():
        exact = exact_ranks(name, camps, sizes)[1]
        for seed in range(n_seeds):
            seconds, posterior = fit(name, camps, sizes, seed)
            error = np.abs(posterior.rank_probabilities() - exact).max()
            words = [f"{error:.3f}", answer(posterior), f"{seconds:.2f}"]
            rows.append([title, name, str(seed), *words])
    print_table(["data", "distance", "seed", "largest error", "verdict", "CPU s"], rows)


def random_camps(rng):
    """Rankings of 5 items, and how many people have each."""
    n_camps = int(rng.integers(2, 6))
    camps = [rng.permutation(5) + 1 for _ in range(n_camps)]
    unit = int(rng.choice([4, 12, 30]))
    even, uneven = unit * rng.integers(1, 6, n_camps), rng.integers(5, 60, n_camps)
    return camps, (even if rng.random() < 0.5 else uneven).tolist()


def has_second_mode(masses, swaps):
    """Do the likely consensuses form two groups that swaps do not connect?"""
    likely = np.flatnonzero(masses >= BARRIER)
    labels = connected_components(swaps[np.ix_(likely, likely)], directed=False)[1]
    groups = np.sort(np.bincount(labels, masses[likely]))
    return len(groups) > 1 and groups[-2] > LEAST_MASS


def random_sets(n_sets, n_others, seed):
    """(b)"""
    rankings, rows = all_rankings(5), []
    swaps = np.array([distances("hamming", rankings, ranking) == 2 for ranking in rankings])
    for name in ("footrule", "kendall"):
        rng, two, one = np.random.default_rng(seed), [], []
        for _ in range(n_sets):
            camps, sizes = random_camps(rng)
            masses, exact = exact_ranks(name, camps, sizes)
            (two if has_second_mode(masses, swaps) else one).append((camps, sizes, exact))
        others = rng.permutation(len(one))[:n_others].tolist()
        for title, sets in (("two modes", two), ("others", [one[place] for place in others])):
            found = [evaluated(name, *each) for each in sets]
            errors = np.array([error for _, error, _ in found])
            is_yes = np.array([verdict == "yes" for verdict, _, _ in found], dtype=bool)
            worst = f"{errors[is_yes].max():.3f}" if is_yes.any() else "-"
            wrong = str((is_yes & (errors > WRONG)).sum())
            seconds = f"{sum(seconds for _, _, seconds in found):.0f}"
            n_all = str(len(two if title == "two modes" else one))
            row = [n_all, str(len(found)), str(is_yes.sum()), wrong, worst, seconds]
            rows.append([f"{name}, {title}", *row])
    header = ["sets", "of so many", "fitted", "yes", "yes and wrong", "worst yes", "CPU s"]
    print_table(header, rows)


def evaluated(name, camps, sizes, exact):
    """Verdict of a default fit, total variation of the ranks of its worst item, CPU seconds."""
    seconds, posterior = fit(name, camps, sizes, seed=1)
    apart = np.abs(posterior.rank_probabilities() - exact).sum(axis=1).max() / 2
    return answer(posterior), apart, seconds


def main():
    options = arguments(__doc__, part="ab", seeds=5, sets=2000, others=200)
    warnings.simplefilter("ignore")  # the tables say what they would
    for name in ("footrule", "kendall", "hamming"):  # compile
        fit(name, [[1, 2, 3], [2, 1, 3]], [2, 1], seed=1)
    if "a" in options.part:
        known_sets(options.seeds)
    if "b" in options.part:
        random_sets(options.sets, options.others, seed=1)


if __name__ == "__main__":
    main()
