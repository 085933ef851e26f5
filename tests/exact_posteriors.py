"""The posterior of consensus, alpha, labels, weights, errors and latent rankings by enumeration,
for three and four items, for every law; and where one sweep of a chain from there ends."""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import stats

import naive
import pseudomallows as pm
from pseudomallows.laws.error_rates import MODELS
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.chain import Chain, Moves, new_state
from pseudomallows.sampling.priors import AlphaPrior

STEP = 0.02  # of log alpha: a density that is constant between is as good as exact
LOGS = np.arange(math.log(0.01), math.log(120.0), STEP)
PRIOR, WEIGHT_PRIOR = AlphaPrior(2.0, 0.6), 1.5
LOG_STEP = math.log(0.8)  # of the walk of log alpha: long, so that a wrong one goes far
N_BINS, N_THETAS = 4, 25

ROWS = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 4, 2], [4, 2, 1, 3]]
TIES = [[1, 1, 3, 4], [0, 0, 0, 1], [2, 2, 1, 2], [1, 2, 3, 4]]
GAPS = [[0, 2, 0, 0], [1, 1, 3, 3], [1, 0, 0, 4], [4, 2, 1, 3]]
FEWER = [[1, 2, 3], [3, 0, 0], [2, 1, 3], [0, 1, 0]]
CLICKS = [[0, 1], [1], [0, 3], [2, 1, 0]]
VOTES = [[(0, 1)], [(0, 1)], [(0, 2)], [(1, 2)], [(3, 2)], [(3, 0)]]
PAIRS = [[(0, 1), (1, 2)], [(0, 2)], [(2, 1), (2, 0)], [(0, 1)]]
CYCLES = [[(0, 1), (1, 2), (2, 0)], [(0, 1), (0, 2)], [(0, 1)], [(1, 2), (2, 1)]]


class Example(NamedTuple):
    """What some users say, of which kind, and by which distance."""

    kind: str
    rows: list
    distance: str
    errors: str = "none"

    @property
    def n_items(self):
        known = self.rows[0] if self.kind == "rankings" else itertools.chain(*self.rows)
        if self.kind == "rankings":
            return len(known)
        return 1 + max(np.ravel(list(known)))

    def preferences(self, weights=None):
        n_items, rows = self.n_items, self.rows
        if self.kind == "rankings":
            return pm.Preferences.from_rankings(rows, weights=weights)
        if self.kind == "clicks":
            prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(n_items))
            weights = prefs.weights if weights is None else np.array(weights)
            return pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes)
        triples = [(user, *pair) for user, pairs in enumerate(rows) for pair in pairs]
        return pm.Preferences.from_pairs(triples, items=range(n_items))

    def law(self, weights=None, distance=None):
        errors = MODELS[self.errors](self.n_items)
        prefs, executor = self.preferences(weights), pm.Threads(1)
        return make_law(prefs, executor, distance or self.distance, errors, "equal")

    def agreement(self, user, ranking, theta):
        """Probability of what a user says, given the user's ranking."""
        row = self.rows[user]
        if self.kind == "rankings":
            return float(ranking in naive.completions(row))
        if self.kind == "clicks":
            return float(all(ranking[item] <= len(row) for item in row))
        return naive.probability_of_statements(row, ranking, lambda apart: theta)


EXAMPLES = {
    **{f"full by {name}": Example("rankings", ROWS, name) for name in naive.DISTANCES},
    "buckets": Example("rankings", TIES, "kendall"),
    "gaps and ties": Example("rankings", GAPS, "footrule"),
    "blocks by hamming": Example("rankings", GAPS, "hamming"),
    "clicks": Example("clicks", CLICKS, "footrule"),
    "clicks by kendall": Example("clicks", CLICKS, "kendall"),
    "votes": Example("pairs", VOTES, "kendall"),
    "pairs": Example("pairs", PAIRS, "footrule"),
    "pairs with errors": Example("pairs", CYCLES, "kendall", "bernoulli"),
    "partial by ulam": Example("rankings", FEWER, "ulam"),
}


@functools.cache
def laws(n_items, distance):
    """``laws[ranking, consensus, alpha]``: the Mallows distributions."""
    rankings = naive.all_rankings(n_items)
    away = np.array([[naive.DISTANCES[distance](r, c) for c in rankings] for r in rankings])
    weights = np.exp(-away[:, :, None] * np.exp(LOGS) / n_items)
    return weights / weights.sum(axis=0)


class Exact:
    """The posterior of an example; a start is drawn from it, and ends are compared with it."""

    def __init__(self, example, n_clusters=1, weights=None, beta=1.0):
        self.example, self.n_clusters, self.rankings = (
            example,
            n_clusters,
            np.array(naive.all_rankings(example.n_items)),
        )
        self.mallows = laws(example.n_items, example.distance)
        has_errors = example.errors != "none"
        self.thetas = (np.arange(N_THETAS) + 0.5) / (2 * N_THETAS) if has_errors else np.zeros(1)
        n_users = len(example.rows)
        self.agreements = np.array(  # [theta, user, ranking]
            [
                [
                    [example.agreement(user, r, theta) for r in map(tuple, self.rankings.tolist())]
                    for user in range(n_users)
                ]
                for theta in self.thetas
            ]
        )
        likelihoods = np.einsum("tur,rca->tuca", self.agreements, self.mallows)
        weights = np.ones(n_users) if weights is None else np.asarray(weights)
        self.logs = beta * weights[None, :, None, None] * np.log(likelihoods)
        alphas = np.exp(LOGS)
        density = stats.gamma(PRIOR.shape, scale=1 / PRIOR.rate).pdf(alphas) * alphas * STEP
        self.prior = np.broadcast_to(density / len(self.rankings), likelihoods.shape[2:])
        self.all_labels = list(itertools.product(range(n_clusters), repeat=n_users))
        self._list()

    def place(self, theta, labels, cluster):
        """``[consensus, alpha]``: the joint density with what the users of a cluster say."""
        mine = np.array(labels) == cluster
        return self.prior * np.exp(self.logs[theta, mine].sum(axis=0))

    def _list(self):
        """The probability of each (theta, labels)."""
        self.keys, values = list(itertools.product(range(len(self.thetas)), self.all_labels)), []
        for theta, labels in self.keys:
            sizes = np.bincount(labels, minlength=self.n_clusters)
            of_labels = sum(math.lgamma(WEIGHT_PRIOR + size) for size in sizes)
            evidence = [self.place(theta, labels, k).sum() for k in range(self.n_clusters)]
            values.append(math.exp(of_labels) * math.prod(evidence))
        self.probabilities = np.array(values) / math.fsum(values)

    def evidence(self):
        """Log probability of what the users of one cluster say; theta uniform."""
        labels = self.all_labels[0]
        places = [self.place(theta, labels, 0).sum() for theta in range(len(self.thetas))]
        return math.log(np.mean(places))

    def starts(self, n_starts, rng):
        """States from the posterior: (consensus, alpha, weights, labels, latent, errors)."""
        places = rng.choice(len(self.keys), n_starts, p=self.probabilities)
        for key, number in enumerate(np.bincount(places, minlength=len(self.keys)).tolist()):
            theta, labels = self.keys[key]
            clusters = []
            for cluster in range(self.n_clusters if number else 0):
                law = self.place(theta, labels, cluster).ravel()
                cells = rng.choice(len(law), number, p=law / law.sum())
                clusters.append(np.divmod(cells, len(LOGS)))
            for each in range(number):
                centers = [consensus[each] for consensus, _ in clusters]
                cells = [alpha[each] for _, alpha in clusters]
                sizes = np.bincount(labels, minlength=self.n_clusters)
                logs = LOGS[cells] + STEP * (rng.random(self.n_clusters) - 0.5)
                latent = [
                    self._draw_latent(theta, user, centers[label], cells[label], rng)
                    for user, label in enumerate(labels)
                ]
                error = self.thetas[theta] + (rng.random() - 0.5) / (2 * N_THETAS)
                yield (
                    self.rankings[centers].astype(np.int32),
                    np.exp(logs),
                    rng.dirichlet(WEIGHT_PRIOR + sizes),
                    np.array(labels, dtype=np.int32),
                    self.rankings[latent].astype(np.int32),
                    np.array([error]),
                )

    def _draw_latent(self, theta, user, center, cell, rng):
        law = np.cumsum(self.agreements[theta, user] * self.mallows[:, center, cell])
        return int(np.searchsorted(law, rng.random() * law[-1]))

    # What a chain should end with

    @functools.cached_property
    def of_first(self):
        """``[consensus, alpha]`` of the first cluster."""
        total = np.zeros(self.prior.shape)
        for (theta, labels), probability in zip(self.keys, self.probabilities, strict=True):
            law = self.place(theta, labels, 0)
            total += probability * law / law.sum()
        return total

    @functools.cached_property
    def bins(self):
        """``[alpha]``: the bin of each alpha; all are about equally likely."""
        below = np.cumsum(self.of_first.sum(axis=0))
        return np.minimum((below * N_BINS).astype(int), N_BINS - 1)

    def p_values(self, ends):
        """Of the first cluster's consensus and alpha; and where there are any, of the labels with
        the weight, and of the errors."""
        cells = np.rint((np.log(ends["alpha"]) - LOGS[0]) / STEP).astype(int)
        alphas = self.bins[np.clip(cells, 0, len(LOGS) - 1)]
        numbers = {ranking: place for place, ranking in enumerate(map(tuple, self.rankings))}
        centers = np.array([numbers[tuple(each)] for each in ends["consensus"]])
        exact = np.zeros((len(self.rankings), N_BINS))
        np.add.at(exact.T, self.bins, self.of_first.T)
        found = {"consensus and alpha": chi_square(centers * N_BINS + alphas, exact.ravel())}
        if self.n_clusters > 1:
            found["labels"] = self._p_value_of_labels(ends)
        if len(self.thetas) > 1:
            by_theta = self.probabilities.reshape(len(self.thetas), -1).sum(axis=1)
            cells = np.minimum((ends["errors"] * 2 * N_THETAS).astype(int), N_THETAS - 1)
            found["errors"] = chi_square(cells, by_theta)
        return found

    def _p_value_of_labels(self, ends):
        """Labels, and whether the first cluster has less than half of the weight."""
        n_labels = len(self.all_labels)
        of_labels = self.probabilities.reshape(-1, n_labels).sum(axis=0)
        sizes = np.array([labels.count(0) for labels in self.all_labels])
        n_users = len(self.example.rows)
        others = (self.n_clusters - 1) * WEIGHT_PRIOR + n_users - sizes
        light = stats.beta(WEIGHT_PRIOR + sizes, others).cdf(0.5)
        exact = np.stack([of_labels * (1 - light), of_labels * light], axis=1)
        numbers = {labels: place for place, labels in enumerate(self.all_labels)}
        places = np.array([numbers[tuple(each)] for each in ends["labels"].tolist()])
        return chi_square(2 * places + (ends["weight"] < 0.5), exact.ravel())


def chi_square(cells, exact):
    """p-value of the numbers of cells; those of expected counts below 5 are taken together."""
    counts, expected = np.bincount(cells, minlength=len(exact)), exact * len(cells) / exact.sum()
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:
        counts[-2:], expected[-2:] = counts[-2:].sum(), expected[-2:].sum()
        counts, expected = counts[:-1], expected[:-1]
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue


def state_of(law, start, moves):
    """A state of a chain at a start."""
    consensus, alpha, weights, labels, latent, errors = start
    labels = labels if len(alpha) > 1 else None
    state = new_state(law, Clusters(consensus, alpha), weights, labels, moves)
    state = state._replace(log_steps=np.full(len(alpha), LOG_STEP))
    if law.has_latent:
        state = state._replace(latent=latent)
    return state._replace(errors=errors) if len(state.errors) else state


def ends_of_sweeps(exact, law, moves, n_starts, seed=1, make_chain=Chain):
    """Where one sweep from each of many exact starts leads."""
    rng = np.random.default_rng(seed)
    states = [state_of(law, start, moves) for start in exact.starts(n_starts, rng)]
    law.anchor(states[0].clusters, states[0].labels_or_none)
    chain, ends = make_chain(law, states[0], moves, rng), []
    for state in states:
        chain.go_to(state)
        chain.sweep(adapt=False)
        ends.append(chain.state)
    return {
        "consensus": np.array([state.consensus[0] for state in ends]),
        "alpha": np.array([state.alpha[0] for state in ends]),
        "labels": np.array([state.labels for state in ends]),
        "weight": np.array([state.weights[0] for state in ends]),
        "errors": np.array([state.errors[:1].sum() for state in ends]),
    }


def moves_of(example, **options):
    """Few proposals: a chain that is wrong shows it all the same."""
    move = "insert" if example.distance == "ulam" else None
    usual = {"move": move, "n_moves": 12, "prior": PRIOR, "weight_prior": WEIGHT_PRIOR}
    return Moves(**usual | options)
