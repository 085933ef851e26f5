"""One small data set for each law: its users by definition, for the tests of all laws."""

import functools
from typing import Any, NamedTuple

import numpy as np

import naive
import pseudomallows as pm
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.registry import make_law

DISTANCES = tuple(naive.DISTANCES)
FULL = [[1, 2, 3, 4], [2, 1, 4, 3], [4, 1, 2, 3], [1, 3, 2, 4], [3, 4, 1, 2], [2, 1, 3, 4]]
BUCKETS = [  # ties and top-k lists: what is not ranked has ranks in one piece
    [1, 2, 3, 4],
    [1, 1, 3, 4],
    [0, 1, 0, 0],
    [3, 1, 1, 3],
    [2, 2, 2, 1],
    [0, 0, 0, 4],
    [0, 0, 0, 0],
]
BLOCKS = [  # gaps, ties, a top-k list, a full row, one that says nothing
    [0, 2, 0, 1, 0],
    [3, 0, 0, 0, 0],
    [1, 1, 3, 3, 5],
    [2, 0, 0, 4, 0],
    [5, 3, 1, 2, 4],
    [0, 0, 0, 0, 0],
    [0, 2, 2, 0, 5],
    [1, 2, 4, 3, 5],
    [1, 0, 0, 0, 2],
]
CLICKS = [[0], [1, 3], [0, 2, 4], [], [2, 1], [4], [0, 1, 2, 3, 4], [0, 2, 3, 1]]
VOTES = [(0, 1), (1, 2), (0, 3), (3, 2), (0, 2), (2, 3)]


class Case(NamedTuple):
    """Users of one kind, by one distance; the rows that say something, as `naive` knows them."""

    name: str
    prefs: Any
    distance: str
    rows: list[Any]

    def __repr__(self):
        return self.name

    @property
    def n_items(self):
        return self.prefs.n_items

    @property
    def weights(self):
        return self.prefs.weights[self.prefs.is_informative]

    def law(self, executor=None):
        return make_law(self.prefs, executor or pm.Threads(1), self.distance, gaps="equal")

    def likelihood(self, row, consensus, alpha):
        """Probability of what one user of a row says."""
        consensus, said = tuple(int(rank) for rank in consensus), self.rows[row]
        if self.prefs.kind == "clicks":
            return click_likelihood(tuple(said), consensus, alpha, self.distance)
        if self.prefs.kind == "pairs":
            return pair_likelihood(tuple(said), consensus, alpha, self.distance)
        return naive.likelihood(said, consensus, alpha, self.distance)

    def logs(self, clusters):
        """``logs[row, cluster]``."""
        likelihoods = [
            [self.likelihood(row, *each) for each in zip(*clusters, strict=True)]
            for row in range(len(self.rows))
        ]
        return np.log(likelihoods)

    def completions(self, row):
        """Full rankings that agree with what a row says."""
        said = self.rows[row]
        if self.prefs.kind != "clicks":
            return naive.completions(said)
        ways = naive.all_rankings(self.n_items)
        return [r for r in ways if all(r[item] <= len(said) for item in said)]


@functools.lru_cache(maxsize=100_000)
def click_likelihood(clicked, consensus, alpha, distance):
    return naive.click_likelihood(clicked, consensus, alpha, distance)


@functools.lru_cache(maxsize=100_000)
def pair_likelihood(pair, consensus, alpha, distance):
    return naive.pair_likelihood([pair], consensus, alpha, distance)


def weights_of(rows):
    return np.arange(len(rows)) % 3 + 1


def of_rankings(name, rows, distance):
    prefs = pm.Preferences.from_rankings(rows, weights=weights_of(rows))
    return Case(name, prefs, distance, [row for row in rows if any(row)])


def of_clicks(name, rows, distance, n_items=5):
    prefs = pm.Preferences.from_clicks(
        dict(enumerate(rows)), items=range(n_items), weights=weights_of(rows)
    )
    return Case(name, prefs, distance, [row for row in rows if 0 < len(row) < n_items])


def of_votes(name, votes, distance):
    prefs = pm.Preferences.from_pairs(votes, items=range(4), weights=weights_of(votes))
    rows = list(zip(prefs.better.tolist(), prefs.worse.tolist(), strict=True))
    return Case(name, prefs, distance, rows)


FULL_CASES = [of_rankings(f"full by {name}", FULL, name) for name in DISTANCES]
BUCKET_CASE = of_rankings("buckets by kendall", BUCKETS, "kendall")
BLOCK_CASES = [
    of_rankings("blocks by footrule", BLOCKS, "footrule"),
    of_rankings("blocks by hamming", BLOCKS, "hamming"),
]
CLICK_CASES = [of_clicks(f"clicks by {name}", CLICKS, name) for name in ("footrule", "kendall")]
VOTE_CASE = of_votes("votes", VOTES, "kendall")
ADDITIVE = [*BLOCK_CASES, CLICK_CASES[0]]
EXACT = [*FULL_CASES, BUCKET_CASE, CLICK_CASES[1]]
CASES = [*EXACT, *ADDITIVE, VOTE_CASE]
WITH_CLUSTERS = [*EXACT, *ADDITIVE]


def clusters_of(case, alphas=(0.7, 2.5, 9.0), seed=3):
    """Clusters of random consensuses."""
    rng = np.random.default_rng(seed)
    ranks = [rng.permutation(case.n_items) + 1 for _ in alphas]
    return Clusters(np.array(ranks, dtype=np.int32), np.array(alphas, dtype=np.float64))


def labels_of(case, n_clusters=3):
    return (np.arange(len(case.rows)) * 2 % n_clusters).astype(np.int32)


def one_cluster(consensus, alpha):
    return Clusters(np.array([consensus], dtype=np.int32), np.array([alpha], dtype=np.float64))


def relabel(law, clusters, weights, labels, seed, number, corrected):
    """New labels of all rows: exact, or by the additive law alone."""
    values = law.weigh_rows(clusters, labels) if corrected and not law.is_exact else None
    new, _, memberships = law.relabel(clusters, weights, labels, values, seed, number, True)
    if values is None:  # what the labels are drawn from comes along
        same = law.memberships(clusters, weights, False)
        assert (memberships.probabilities == same.probabilities).all()
        assert memberships.log_likelihood == same.log_likelihood
    return new
