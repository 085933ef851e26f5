"""Where chains begin.

One consensus: the best by the tally, and places that chains from random rankings find elsewhere, so
that R-hat can see a second mode (Gelman and Rubin 1992: begin at overdispersed points). Clusters:
many short runs, of which the best few go on; all chains begin at the best, as modes of a mixture
are tens of log units apart and chains do not cross between them.
"""

import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..distances.tallies import Counts, Proposals
from ..engines.executors import is_remote
from ..engines.memory import DENSE_ITEMS
from ..kernels.streams import CENTRE, start_stream
from ..laws.law import Clusters, ClusterTally, Curve, Floats, Labels, Law
from ..rankings import rank_randomly
from .chain import Chain, Moves, State, curves_at, fresh_steps, new_state
from .priors import AlphaPrior

FIRST_ALPHA = 5.0  # where the climb begins: 3 and 4 steps of CLIMB from 1 and 40, the usual range
CLIMB = 0.5  # of log alpha, in a search for the best, which a parabola then tells to 0.05
LOWEST_START, HIGHEST_START = 1e-2, 1e4  # of alpha, between them: as good as 0 and as infinity
# Random starts of one consensus: a mode that 7 % of them lead to is missed in 1 % of fits,
# (1 - 0.07)^64; and their moves for each item.
N_TRIES, TRY_MOVES = 64, 100
RARE = 1000  # a mode of this density less is none; a draw of n_items numbers is n_items / 2 below
# alpha / n_items that is as good as infinite: a swap of neighbours has exp(-100) by the
# footrule; a fall in log likelihood, about the 1.92 at the ends of an interval of 95 %.
SHARP, FALL = 50.0, 2.0

# With half and with twice of the rows, of LAST_SWEEPS, of the numbers of splits and SETTLE_SWEEPS,
# fits of 5 clusters to three sets of clicks agreed as well with the truth: to 0.01 of Rand's index.
# Rows for the short runs: in all, and for each cluster, so that one a tenth as large as the mean
# has 15, enough to be split. With 1,000 rows and 4 finalists 6 of 10 starts of 3 and 5 overlapping
# clusters missed the best mode by 5 log units or more; with 3,000 and 8, none of 10. With all
# 5,000 rows of sushi-like data runs of 3 clusters stick in worse modes: 0 of 8 starts at the best.
START_ROWS, START_ROWS_EACH = 3000, 150
POPULAR_ROWS = 6  # times as many rows of a large catalogue, where each has few popular items
# Rows x items x clusters of all short runs: a second or so. By a quarter of it, with at most 60
# runs, 5 of 14 starts of 3 overlapping clusters of 5,000 people missed the best mode by 20 log
# units or more; by this 2 by 9 or more.
WORK = 1.6e7
LEAST_RUNS, MOST_RUNS = 8, 200  # short runs, half of the least number from k-means
# At a time: where the best of these end in one mode, as with clusters that are far apart, there are
# no more; 3 clusters of 1,000 people then begin in a quarter of the time.
BATCH = 20
FIRST_SWEEPS, RUN_SWEEPS, LAST_SWEEPS = 5, 20, 60  # of all; of the best, 25 in all; of finalists
GOOD_SHARE = 5  # one run in so many goes on: those in the best mode lead after five sweeps
# Of different modes, at most; half of the runs, if these are so few. With 16 and 200 runs 16 of 20
# starts of 2 clusters of sushi-like data, and 6 of 8 of 3, are at the best mode that is known; with
# 8 and 100, 5 of 8 of each.
N_FINALISTS = 16
ROUND_MOVES = 10  # for each item in a sweep on the way: as N_MOVES of `options`
# Splits; failures in a row; users of a cluster, as USERS_EACH: a consensus of fewer is mostly noise
MOST_SPLITS, N_FAILURES, LEAST_SPLIT = 40, 4, 10
SPLIT_SWEEPS = 5  # after a split: as FIRST_SWEEPS, after which the better mode leads
SETTLE_SWEEPS = 30  # of the best, with all rows
# Sweeps, as the least warmup on the additive law; memberships averaged: a third of the spread of
# one.
N_SETTLING, N_DIVISIONS = 20, 10
SAME = 0.95  # of the users in the same clusters: the same mode
_filters = threading.Lock()  # what is done about warnings is the same for all threads


# One consensus


def best_place(tally: ClusterTally, alpha: float | None, prior: AlphaPrior | None) -> Clusters:
    """The best consensus and alpha that climbing finds."""
    value = FIRST_ALPHA if alpha is None else alpha
    consensus = tally.best(value)
    if alpha is None and prior is not None:
        value = best_on_grid(_posterior(tally.curve(consensus), prior), value)
        consensus = tally.best(value)
    return Clusters(consensus[None], np.array([value]))


def _posterior(curve: Curve, prior: AlphaPrior) -> Curve:
    return lambda alpha: curve(alpha) + prior.log_density(alpha)


def start_one(
    law: Law, alpha: float | None, moves: Moves, start: str, rng: np.random.Generator
) -> State:
    """One cluster: at the best place, at a "random" one, or "elsewhere"."""
    if law.has_latent or start == "random":
        ranks = np.zeros(law.n_items) if start != "map" else law.mean_ranks
        consensus = rank_randomly(ranks, rng)[None]
        first = Clusters(consensus, np.array([1.0 if alpha is None else alpha]))
        return new_state(law, first, np.ones(1), None, moves)
    (tally,) = law.tallies(None, 1)
    best = best_place(tally, alpha, moves.prior)
    if start == "elsewhere":
        best = elsewhere(tally, best, law.n_items, rng)
    return new_state(law, best, np.ones(1), None, moves)


def elsewhere(
    tally: ClusterTally, best: Clusters, n_items: int, rng: np.random.Generator
) -> Clusters:
    """The place furthest from the best among those that moves from random rankings lead to.

    One counts if its density is near enough to that of the best to be a draw from a mode that
    matters; where none is, since the way from a random ranking is long, it is the best.
    """
    center, alpha = best.consensus[0], float(best.alpha[0])
    least = tally.curve(center)(alpha) - math.log(RARE) - n_items / 2
    seed, stream = int(rng.integers(2**63)), np.empty(1, dtype=np.uint64)
    furthest, most = center, -1
    for number in range(N_TRIES):
        consensus = rank_randomly(np.zeros(n_items), rng)
        start_stream(seed, number, CENTRE, stream)
        tally.move(stream, alpha, Proposals(TRY_MOVES * n_items), consensus)
        away = int(np.abs(consensus - center).sum())
        if away > most and tally.curve(consensus)(alpha) >= least:
            furthest, most = consensus, away
    return Clusters(furthest[None], best.alpha)


def best_on_grid(value: Callable[[float], float], alpha: float) -> float:
    """Where a function of alpha with one top is highest, to a tenth of a step or so.

    >>> round(best_on_grid(lambda alpha: -((math.log(alpha) - 2) ** 2), 1.0), 6) == round(
    ...     math.exp(2), 6
    ... )
    True
    """
    place = round(math.log(alpha) / CLIMB)
    known: dict[int, float] = {}

    def at(near: int) -> float:
        if near not in known:
            known[near] = value(math.exp(near * CLIMB))
        return known[near]

    lowest, highest = (round(math.log(end) / CLIMB) for end in (LOWEST_START, HIGHEST_START))
    while place < highest and at(place + 1) > at(place):
        place += 1
    while place > lowest and at(place - 1) > at(place):
        place -= 1
    bend = at(place - 1) - 2 * at(place) + at(place + 1)
    step = (at(place - 1) - at(place + 1)) / (2 * bend) if bend < 0 else 0.0
    return math.exp((place + min(max(step, -1.0), 1.0)) * CLIMB)


def unbounded(chain: Chain) -> list[bool]:
    """``[cluster]``: does nothing in the data bound its alpha from above?

    That is so if some consensus leaves no user in disagreement: then the likelihood does not fall
    from the present alpha to infinity. An additive law is far from the exact one there.
    """
    if chain.law.has_latent:
        return [False] * chain.state.n_clusters
    state, law, tallies = chain.state, chain.law, chain.tallies
    sharp = np.maximum(SHARP * law.n_items, 10 * state.alpha)
    best = np.stack([tally.best(alpha) for tally, alpha in zip(tallies, sharp, strict=True)])
    there, labels = Clusters(best, sharp), state.labels_or_none
    if law.is_exact:
        gained = curves_at(tallies, there) - curves_at(tallies, state.clusters)
    else:
        gained = law.weigh(there, labels) - law.weigh(state.clusters, labels)
    return (gained >= -FALL).tolist()  # also of a cluster without users


# Clusters


class Comparison(NamedTuple):
    """The best start against the next: how much higher its log likelihood is, and the share of
    users that they divide the same way."""

    gap: float | None
    same_users: float
    n_starts: int


class _Run(NamedTuple):
    """A chain on some of the rows, and how likely it makes them."""

    chain: Chain
    value: float


def start_clusters(
    law: Law,
    n_clusters: int,
    alpha: float | None,
    moves: Moves,
    rng: np.random.Generator,
    report: Callable[[], None] = lambda: None,
) -> tuple[State, Comparison]:
    """The best of many short runs on some of the rows goes on with all rows."""
    if law.n_items > DENSE_ITEMS:
        return start_by_popular_items(law, n_clusters, alpha, moves, rng, report)
    some = some_rows(law, n_clusters, rng)
    on_the_way = replace_moves(moves, some)
    n_runs = int(np.clip(WORK / (some.n_rows * some.n_items * n_clusters), LEAST_RUNS, MOST_RUNS))
    n_means = LEAST_RUNS // 2
    features = some.features(min(n_clusters, some.n_items - 1))
    first = FIRST_ALPHA if alpha is None else alpha

    def run(task: tuple[int, np.random.Generator]) -> _Run:
        number, child = task
        if number % (n_runs // n_means) == 0:
            labels = k_means(features, n_clusters, child)
        else:
            labels = near_people(some, n_clusters, child)
        chain = begin(some, labels, n_clusters, first, on_the_way, child)
        return run_sweeps(chain, FIRST_SWEEPS)

    def go_on(each: _Run) -> _Run:
        return run_sweeps(each.chain, RUN_SWEEPS)

    tasks, good = list(enumerate(rng.spawn(n_runs))), list[_Run]()
    n_good = max(LEAST_RUNS, n_runs // GOOD_SHARE) / n_runs
    for n_begun in range(0, n_runs, BATCH):
        runs = []
        for each in some.executor.map(run, tasks[n_begun : n_begun + BATCH]):
            runs.append(each)
            report()
        runs.sort(key=lambda run: -run.value)
        runs = runs[: math.ceil(n_good * len(runs))]
        good = distinct_runs([*good, *some.executor.map(go_on, runs)])
        if len(good) == 1:
            break
    runs = good[: min(N_FINALISTS, n_runs // 2)]

    def improve(task: tuple[_Run, np.random.Generator]) -> _Run:
        finalist, child = task
        return run_sweeps(split_clusters(finalist, some, child).chain, LAST_SWEEPS)

    finalists = []
    for each in some.executor.map(improve, list(zip(runs, rng.spawn(len(runs)), strict=True))):
        finalists.append(each)
        report()
    finalists = distinct_runs(finalists)
    if some.n_rows < law.n_rows:  # what is best for some rows need not be so for all
        children = rng.spawn(len(finalists))
        settled = [
            settle(law, each.chain.state, on_the_way, child, report)
            for each, child in zip(finalists, children, strict=True)
        ]
        finalists = distinct_runs(settled)
    return finalists[0].chain.state, compare_runs(finalists, n_runs)


def divide(
    law: Law,
    n_clusters: int,
    alpha: float | None,
    prior: AlphaPrior,
    weight_prior: float,
    rng: np.random.Generator,
) -> tuple[State, Floats, Any]:
    """The users divided by a short exact run: a state with labels, the mean memberships, and
    whether nothing bounds the alpha of a cluster."""
    own = prior if alpha is None else None
    moves = Moves(prior=own, weight_prior=weight_prior, is_corrected=False)
    moves = replace_moves(moves, law)
    state, _ = start_clusters(law, n_clusters, alpha, moves, rng)
    chain, alphas = Chain(law, fresh_steps(state, law, moves), moves, rng), []
    memberships = np.zeros((law.n_rows, n_clusters))
    for sweep in range(N_SETTLING + N_DIVISIONS):
        chain.sweep(adapt=sweep < N_SETTLING, weighs=sweep >= N_SETTLING)
        if sweep >= N_SETTLING:
            alphas.append(chain.state.alpha)
            memberships += chain.memberships.probabilities / N_DIVISIONS
    is_free = unbounded(chain) if alpha is None else [False] * n_clusters
    state = chain.state._replace(alpha=np.mean(alphas, axis=0))
    return state, memberships, np.array(is_free)


def start_by_popular_items(
    law: Law,
    n_clusters: int,
    alpha: float | None,
    moves: Moves,
    rng: np.random.Generator,
    report: Callable[[], None],
) -> tuple[State, Comparison]:
    """Clusters of a large catalogue, by its most clicked items.

    An item that one user clicked tells nothing of the clusters, yet it would stand far higher in
    that user's cluster than in any other, and hold the user there.
    """
    n_items, by_clicks = law.n_items, np.argsort(law.mean_ranks, kind="stable")
    popular = np.sort(by_clicks[:DENSE_ITEMS])
    some: Any = some_rows(law, POPULAR_ROWS * n_clusters, rng)
    share, prior = DENSE_ITEMS / n_items, moves.prior  # alpha / n_items is the same for few items
    few_alpha = None if alpha is None else share * alpha
    few_prior = None if prior is None else AlphaPrior(prior.shape, prior.rate / share)
    inner = replace(moves, prior=few_prior, n_moves=None)
    few, comparison = start_clusters(
        some.of_items(popular), n_clusters, few_alpha, inner, rng, report
    )
    consensus = np.empty((n_clusters, n_items), dtype=np.int32)
    consensus[:, by_clicks] = np.arange(1, n_items + 1)
    consensus[:, popular] = few.consensus
    rate = float(few.weights @ few.alpha) / DENSE_ITEMS  # one: the other items tell nothing
    labels = law.nearest(Clusters(consensus, np.full(n_clusters, rate * n_items)), few.weights)
    first = FIRST_ALPHA if alpha is None else alpha
    chain = begin(law, labels, n_clusters, first, replace_moves(moves, law), rng)
    return run_sweeps(chain, SETTLE_SWEEPS // 3).chain.state, comparison


def settle(
    law: Law, state: State, moves: Moves, rng: np.random.Generator, report: Callable[[], None]
) -> _Run:
    """A run on some rows goes on with all rows."""
    labels = law.nearest(state.clusters, state.weights)
    first = new_state(law, state.clusters, state.weights, labels, moves)
    run = run_sweeps(Chain(law, first, moves, rng), SETTLE_SWEEPS)
    report()
    return run


def n_steps(n_clusters: int) -> int:
    """How often `start_clusters` reports, at most."""
    return 0 if n_clusters < 2 else MOST_RUNS + 2 * N_FINALISTS


def replace_moves(moves: Moves, law: Law) -> Moves:
    """Moves of short runs: on the additive law, with few proposals in a sweep."""
    n_moves = law.n_moves // 2 if law.n_moves else ROUND_MOVES * law.n_items
    return replace(moves, n_moves=max(1, n_moves), is_corrected=False)


def some_rows(law: Law, n_clusters: int, rng: np.random.Generator) -> Law:
    """Rows enough to find the clusters from, at hand."""
    n_rows = max(START_ROWS, START_ROWS_EACH * n_clusters)
    if law.n_rows <= n_rows:
        return law.select(np.arange(law.n_rows)) if is_remote(law.executor) else law
    return law.select(np.sort(rng.choice(law.n_rows, min(n_rows, law.n_rows), replace=False)))


def begin(
    law: Law, labels: Labels, n_clusters: int, alpha: float, moves: Moves, rng: np.random.Generator
) -> Chain:
    """A chain whose clusters are the best for these labels."""
    orders = np.tile(rank_randomly(law.mean_ranks, rng), (n_clusters, 1))
    clusters = Clusters(orders, np.full(n_clusters, alpha))
    weights = np.full(n_clusters, 1 / n_clusters)
    chain = Chain(law, new_state(law, clusters, weights, labels, moves), moves, rng)
    climb(chain, range(n_clusters))
    return chain


def climb(chain: Chain, clusters: Any) -> None:
    """The best consensus and alpha of some clusters, given their users."""
    consensus, alpha = chain.state.consensus.copy(), chain.state.alpha.copy()
    prior = chain.moves.prior
    for cluster in clusters:
        tally = chain.tallies[cluster]
        if tally.n_users:
            given = float(alpha[cluster]) if prior is None else None
            best = best_place(tally, given, prior)
            consensus[cluster], alpha[cluster] = best.consensus[0], best.alpha[0]
    state = chain.state._replace(consensus=consensus, alpha=alpha)
    chain.go_to(state)


def k_means(features: Floats, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Labels by k-means."""
    from scipy.cluster.vq import kmeans2

    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty clusters, which the chain fills
        labels = kmeans2(features, n_clusters, minit="++", iter=20, seed=rng)[1]
    return np.asarray(labels, dtype=np.int32)


def near_people(law: Law, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Labels by the nearest of the rankings of some people."""
    people = rng.choice(law.n_rows, n_clusters, replace=False)
    centers = law.rankings_of(people, law.mean_ranks + 1e-9 * rng.random(law.n_items))
    clusters = Clusters(centers, np.full(n_clusters, FIRST_ALPHA))
    given: Any = law
    if law.has_latent:
        given = given.given(law.rankings_of(np.arange(law.n_rows), law.mean_ranks))
    return given.nearest(clusters, np.full(n_clusters, 1 / n_clusters))


def run_sweeps(chain: Chain, n_sweeps: int) -> _Run:
    """So many sweeps; the value is a mean over the last fifth."""
    values = []
    for left in range(n_sweeps, 0, -1):
        is_last = left <= max(1, n_sweeps // 5)
        chain.sweep(adapt=True, weighs=is_last)
        if is_last:
            values.append(chain.memberships.log_likelihood)
    return _Run(chain, float(np.mean(values)))


def split_clusters(run: _Run, law: Law, rng: np.random.Generator) -> _Run:
    """Split clusters, those of the least agreement first, and dissolve the smallest one for each:
    where two were taken for one, and one for two, sweeps alone would never mend it."""
    chain, value = run
    n_failures, tried = 0, set[int]()
    if chain.state.n_clusters < 2 or law.has_latent:
        return run
    for _ in range(MOST_SPLITS):
        before = chain.state
        sizes = np.bincount(before.labels, minlength=before.n_clusters)
        smallest = int(sizes.argmin())
        left = [
            number
            for number in np.argsort(before.alpha, kind="stable").tolist()
            if sizes[number] >= LEAST_SPLIT and number != smallest and number not in tried
        ]
        if not left or n_failures == N_FAILURES:
            break
        labels = split_labels(before.labels, left[0], smallest, law, rng)
        chain.go_to(before._replace(labels=labels))
        climb(chain, (left[0], smallest))
        new = run_sweeps(chain, SPLIT_SWEEPS)
        if new.value > value:
            n_failures, tried, value = 0, set(), new.value
        else:
            chain.go_to(before)
            n_failures += 1
            tried.add(left[0])
    return _Run(chain, value)


def split_labels(
    labels: Labels, split: int, smallest: int, law: Law, rng: np.random.Generator
) -> Labels:
    """Labels with one cluster in two, and the users of the smallest one elsewhere."""
    rows = np.flatnonzero(labels == split)
    features = law.select(rows).features(2)
    new, orphaned = labels.copy(), np.flatnonzero(labels == smallest)
    new[orphaned] = rng.choice(np.setdiff1d(np.unique(labels), [smallest]), len(orphaned))
    new[rows[k_means(features, 2, rng) == 1]] = smallest
    return new


def distinct_runs(runs: list[_Run]) -> list[_Run]:
    """The runs by their values, of those in the same mode the best alone."""
    kept: list[_Run] = []
    for run in sorted(runs, key=lambda run: -run.value):
        if all(same_users(likeliest(run), likeliest(other)) < SAME for other in kept):
            kept.append(run)
    return kept


def likeliest(run: _Run) -> Labels:
    """The likeliest label of each row."""
    chain = run.chain
    return chain.given.nearest(chain.state.clusters, chain.state.weights)


def compare_runs(runs: list[_Run], n_starts: int) -> Comparison:
    """The best run against the next, in another mode; no gap if there is none."""
    if len(runs) == 1:
        return Comparison(None, 1.0, n_starts)
    best, other = (likeliest(run) for run in runs[:2])
    return Comparison(runs[0].value - runs[1].value, same_users(best, other), n_starts)


def same_users(labels: Labels, others: Labels) -> float:
    """The share of users that two divisions treat alike."""
    from scipy.optimize import linear_sum_assignment

    n_clusters = int(max(labels.max(), others.max())) + 1
    counts: Counts = np.zeros((n_clusters, n_clusters), dtype=np.int64)
    np.add.at(counts, (labels, others), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(labels))
