"""Several consensuses in one population: a mixture of Mallows distributions.

Memberships are exact: the latent rankings are summed out before a label is drawn, so labels do not
stick to the rankings that were drawn under them.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import BLOCK, blocks
from ..files.saved import Saved
from ..kernels.chain import SWAP, move_consensus
from ..kernels.mixture import draw_labels
from ..kernels.streams import CHAIN, start_stream, uniform
from ..latent.clicks import ClickLatent, redraw_latent
from ..latent.population import (
    HIGHEST_ALPHA,
    Counts,
    Latent,
    LocalLatent,
    Ranking,
    best_assignment,
    finish_draws,
    log_likelihoods_of,
)
from ..preferences.preferences import Preferences
from ..rankings import check_count, rank_randomly
from .priors import default_prior, log_density
from .states import MAX_SWEEPS, State

N_STARTS, N_FINALISTS = 6, 2  # guesses, and those that go on after two sweeps
START_ROWS, START_ROWS_EACH = 1000, 150  # rows for the guesses: in all, and for each cluster
ASSIGNED_SWEEPS, SAMPLED_SWEEPS = 4, 15  # of the best guess, on all rows
PREPARATION = 2 * N_STARTS + 4 * N_FINALISTS + ASSIGNED_SWEEPS + SAMPLED_SWEEPS
LOWEST_START = 0.05  # of alpha
Memberships = NDArray[np.float64]


def check_n_clusters(n_clusters: Any, prefs: Preferences) -> int:
    """Return a number of clusters, or say what is wrong with it."""
    if isinstance(n_clusters, str):
        raise ValueError(f'n_clusters must be a whole number or "auto", got {n_clusters!r}')
    number = check_count(n_clusters, "n_clusters")
    n_users = int(prefs.weights[prefs.is_informative].sum())
    if number > max(n_users, 1):
        raise ValueError(
            f"n_clusters must be at most the number of users who say anything, {n_users}, "
            f"got {number}"
        )
    return number


class Mixture:
    """One chain of a mixture: clusters with states of their own, and users with labels.

    A sweep moves each cluster, given its users. Every so many sweeps the labels are drawn anew
    from the exact memberships, given the clusters, and then the shares of the clusters.

    Where the law of the states is a rough one, `leaders` stand behind them: states whose consensus
    is exact, which move before each refresh only, and by which the users are told apart.

    Labels that change places would make a mean over draws senseless. So at each refresh the
    clusters take the order in which their memberships agree best with those so far.
    """

    def __init__(
        self,
        latent: Latent,
        states: Sequence[State],
        shares: NDArray[np.float64],
        refresh_every: int,
        share_prior: float,
        rng: np.random.Generator,
        leaders: Sequence[State] | None = None,
    ):
        self.latent, self.states, self.shares = latent, list(states), shares
        self._leaders = list(states if leaders is None else leaders)
        self.has_users = [True] * len(self.states)
        self.counts = np.zeros((latent.n_rows, len(self.states)), dtype=np.int64)
        self.refresh_every, self._share_prior, self._rng = refresh_every, share_prior, rng
        self._seed = int(rng.integers(2**63))
        self.n_sweeps = self.first_refresh = 0  # a refresh, and every so many sweeps after it
        self.log_likelihood = self._log_posterior = math.nan
        self._reference: Memberships | None = None
        self.is_led = leaders is not None
        self._leaders_so_far = np.empty((0, len(self.states), latent.n_items), dtype=np.int32)
        self._total = np.zeros(self.counts.shape)
        self._n_total = 0

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones included."""
        return len(self.states)

    @property
    def consensus(self) -> Ranking:
        """``consensus[cluster, item]``."""
        return np.stack([state.consensus for state in self.states])

    @property
    def alpha(self) -> NDArray[np.float64]:
        """``alpha[cluster]``."""
        return np.array([state.alpha for state in self.states])

    @property
    def costs(self) -> Counts:
        """``costs[cluster, item, rank - 1]`` of the latest draws; 0 for an empty cluster."""
        none = np.zeros((self.latent.n_items, self.latent.n_items), dtype=np.int64)
        return np.stack([none if s.costs is None else s.costs for s in self.states])

    @property
    def mean_memberships(self) -> Memberships:
        """``memberships[row, cluster]``: mean over the refreshes after the warmup, if any."""
        return self._total / self._n_total if self._n_total else self._latest

    def some_leaders(self, number: int) -> Ranking:
        """``[place, cluster, item]``: consensuses of the leaders after the warmup, evenly."""
        found = self._leaders_so_far if self._n_total else self._stacked_leaders()
        return found[np.linspace(0, len(found) - 1, number).round().astype(int)]

    def _stacked_leaders(self) -> Ranking:
        return np.stack([state.consensus for state in self._leaders])[None]

    def log_posterior(self) -> float:
        """Log posterior density, labels and latent rankings summed out.

        NaN between refreshes, and where leaders stand behind the states.
        """
        return self._log_posterior

    def begin(self, reference: Memberships | None) -> None:
        """Draw the first labels; from now on the clusters keep their order, or take that of the
        reference."""
        self._reference = reference
        self.refresh(adapt=True)
        self._reference = self._latest

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps; none of these arrays changes in place."""
        assert self._reference is not None
        kept = {
            "states": [state.to_save() for state in self.states],
            "shares": self.shares,
            "counts": self.counts,
            "seed": self._seed,
            "n_sweeps": self.n_sweeps,
            "rng": self._rng.bit_generator.state,
            "reference": self._reference,
            "total": self._total,
            "n_total": self._n_total,
        }
        if self.is_led:
            kept["leaders"] = [state.to_save() for state in self._leaders]
            kept["leaders_so_far"] = self._leaders_so_far
        return kept

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        n_clusters, weights = self.n_clusters, self.latent.row_weights
        self.shares = saved.array("shares", np.float64, (n_clusters,))
        saved.check_shares("shares", self.shares)
        self._seed = saved.count("seed", 0, 2**63 - 1)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self._rng = saved.generator("rng")
        self._n_total = saved.count("n_total", 0, MAX_SWEEPS)
        self._total, self._reference = (
            saved.array(name, np.float64, self.counts.shape) for name in ("total", "reference")
        )
        saved.check_shares("total", self._total, self._n_total)
        saved.check_shares("reference", self._reference)
        self._latest = self._reference
        counts = saved.array("counts", np.int64, self.counts.shape)
        saved.check_range("counts", counts, 0, weights.max())
        if (counts.sum(axis=1) != weights).any():
            saved.refuse("counts", "must have as many users as the data")
        self.share_out(counts)
        for state, part in zip(self.states, saved.parts("states", n_clusters), strict=True):
            state.resume(part)
        if self.is_led:
            shape = (self._n_total, n_clusters, self.latent.n_items)
            self._leaders_so_far = saved.rankings("leaders_so_far", shape)
            for state, part in zip(self._leaders, saved.parts("leaders", n_clusters), strict=True):
                state.resume(part)

    def sweep(self, adapt: bool) -> None:
        """Move every cluster, given its users; then, if it is time, draw labels and shares."""
        self.n_sweeps += 1
        self._log_posterior = math.nan
        self._drawn_states, self._drawn_counts = self.states, self.counts
        self._drawn_shares = self.shares
        self._move(self.states, adapt)
        if (self.n_sweeps - self.first_refresh) % self.refresh_every == 0:
            if self.is_led:
                self._move(self._leaders, adapt)
            self.refresh(adapt)

    def _move(self, states: list[State], adapt: bool) -> None:
        used = [state for state, has_users in zip(states, self.has_users, strict=True) if has_users]
        for state in used:
            state.n_sweeps += 1
        for _ in range(states[0].n_alpha_moves):
            self._move_alphas(used, adapt)
        unknown = [state for state in used if not state.latent.is_full]
        found = finish_draws([state.begin_draw() for state in unknown], self.latent.executor)
        for state, costs in zip(unknown, found, strict=True):
            state.costs = costs
        for state, has_users in zip(states, self.has_users, strict=True):
            if not has_users:
                state.costs = None
                state.wander()
                continue
            if state.latent.is_full:
                state.costs = state.latent.known_costs
            assert state.costs is not None
            state.move(state.costs)

    def _move_alphas(self, states: list[State], adapt: bool) -> None:
        tries = [(state, alpha) for state in states for alpha in state.alphas_to_try()]
        points = [(state.latent, state.consensus, alpha) for state, alpha in tries]
        values = log_likelihoods_of(points, self.latent.executor)
        for state in states:
            mine = [
                value for (other, _), value in zip(tries, values, strict=True) if other is state
            ]
            if mine:
                state.judge_alphas(mine, adapt)

    def refresh(self, adapt: bool) -> None:
        """Draw the labels from the exact memberships, then the shares."""
        logs = row_log_likelihoods(self.latent, [(s.consensus, s.alpha) for s in self._leaders])
        with np.errstate(divide="ignore"):
            memberships = logs + np.log(self.shares)
        log_sums, counts = np.empty(self.latent.n_rows), np.empty_like(self.counts)
        draw_labels(
            self._seed,
            self.n_sweeps,
            self.latent.row_numbers,
            self.latent.row_weights,
            memberships,
            counts,
            log_sums,
        )
        self.log_likelihood = float((self.latent.row_weights * log_sums).sum())
        if adapt:
            for cluster in self._fill_empty(counts, log_sums):
                logs[:, cluster] = np.nan  # of the consensus before
        reference = self._total if self._n_total else self._reference
        if reference is not None:
            order = self._best_order(memberships, reference)
            self._reorder(order)
            counts, logs, memberships = counts[:, order], logs[:, order], memberships[:, order]
        self._latest = memberships
        if not adapt:
            self._total = self._total + memberships  # not in place: a checkpoint may hold it
            self._n_total += 1
            if self.is_led:
                both = (self._leaders_so_far, self._stacked_leaders())
                self._leaders_so_far = np.concatenate(both)
        self.share_out(counts)
        for cluster, state in enumerate(self._leaders):
            value = float((counts[:, cluster] * logs[:, cluster]).sum())
            state.log_likelihood = None if math.isnan(value) else value
        self.shares = self._rng.dirichlet(self._share_prior + counts.sum(axis=0))
        if not self.is_led and not adapt:
            log_shares = np.log(np.maximum(self.shares, 1e-300))
            values = np.logaddexp.reduce(logs + log_shares, axis=1)
            self._log_posterior = float((self.latent.row_weights * values).sum())
            self._log_posterior += (self._share_prior - 1) * float(log_shares.sum())
            self._log_posterior += sum(state.log_prior(state.alpha) for state in self.states)

    def share_out(self, counts: Counts) -> None:
        """Give each cluster its users."""
        self.counts = counts
        before = np.cumsum(counts, axis=1) - counts  # users of the row in the clusters before
        self.has_users = (counts.sum(axis=0) > 0).tolist()
        for cluster, has_users in enumerate(self.has_users):
            if has_users:
                numbers = self.latent.row_numbers + before[:, cluster]
                mine = self.latent.select(counts[:, cluster], numbers)
                for state in (self.states[cluster], self._leaders[cluster]):
                    state.latent, state.log_likelihood = mine, None

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """The latest latent rankings of some users of clicks, each in the cluster of its label.

        Of several users of a row it is the last; a user who says nothing has a label by the shares.
        """
        assert isinstance(self.latent, ClickLatent)
        found = np.empty((len(users), self.latent.n_items), dtype=np.int32)
        stream = np.empty(1, dtype=np.uint64)
        for place, user in enumerate(users):
            clicks, number, row = self.latent.row_of(int(user))
            if row is None:
                start_stream(self._seed, self.n_sweeps, number, stream)
                edges = np.cumsum(self._drawn_shares)
                label = int(np.searchsorted(edges, uniform(stream) * edges[-1], "right"))
                state, weight = self._drawn_states[label], 1
            else:
                counts = self._drawn_counts[row]
                last = int(np.flatnonzero(counts)[-1])
                state, weight = self._drawn_states[last], int(counts[last])
                number += int(counts[:last].sum())
            clicks = replace(clicks, weights=np.array([weight]))
            found[place] = redraw_latent(clicks, np.array([number]), state.source)[0]
        return found

    def _best_order(self, memberships: Memberships, reference: Memberships) -> NDArray[np.int64]:
        """The order of the clusters that agrees best with the memberships of reference."""
        from scipy.optimize import linear_sum_assignment

        weights = self.latent.row_weights
        overlap = np.einsum("r,rj,rk->jk", weights, reference, memberships, optimize=False)
        return np.asarray(linear_sum_assignment(-overlap)[1])

    def _reorder(self, order: NDArray[np.int64]) -> None:
        self.states = [self.states[cluster] for cluster in order]
        self._leaders = [self._leaders[cluster] for cluster in order]
        self.shares = self.shares[order]

    def _fill_empty(self, counts: Counts, log_sums: NDArray[np.float64]) -> list[int]:
        """Give each empty cluster the users that the others explain worst, against chance.

        It starts anew from them; return which clusters did.
        """
        empty, refilled = np.flatnonzero(counts.sum(axis=0) == 0), list[int]()
        if not len(empty):
            return refilled
        alpha = float(np.median(np.delete(self.alpha, empty)))
        chance = row_log_likelihoods(self.latent, [(self.states[0].consensus, 0.0)])[:, 0]
        n_rows = max(1, self.latent.n_rows // (2 * self.n_clusters))
        worst = np.argsort(log_sums - chance, kind="stable")[: n_rows * len(empty)]
        for cluster, rows in zip(empty, np.array_split(worst, len(empty)), strict=True):
            if len(rows):
                counts[rows] = 0
                counts[rows, cluster] = self.latent.row_weights[rows]
                chosen = self.latent.select(counts[:, cluster], self.latent.row_numbers)
                consensus = rank_randomly(chosen.mean_ranks, self._rng)
                for state in (self.states[cluster], self._leaders[cluster]):
                    state.consensus, state.alpha = consensus.copy(), alpha
                refilled.append(int(cluster))
        return refilled


def row_log_likelihoods(
    latent: Latent, clusters: Sequence[tuple[Ranking, float]]
) -> NDArray[np.float64]:
    """``values[row, cluster]``: log probability of what is known of a user, in each cluster."""
    tasks = [(*place, clusters) for place in latent.places(blocks(latent.n_rows, BLOCK // 2))]
    return np.concatenate(list(latent.executor.map(_row_log_likelihoods, tasks)))


def _row_log_likelihoods(
    task: tuple[LocalLatent, slice | None, Sequence[tuple[Ranking, float]]],
) -> NDArray[np.float64]:
    latent, rows, clusters = task
    chosen = slice(0, latent.n_rows) if rows is None else rows
    return np.stack(
        [latent.row_log_likelihoods(chosen, center, alpha) for center, alpha in clusters], axis=1
    )


class StartState(State):
    """A cluster on its way to a good start: the consensus by assignment, then by moves; alpha by
    climbing its exact likelihood times its prior: a cluster without disagreement has a likelihood
    that rises for ever."""

    def __init__(
        self,
        latent: Latent,
        consensus: Ranking,
        alpha: float,
        is_fixed: bool,
        rng: np.random.Generator,
    ):
        super().__init__(latent, consensus, alpha, rng)
        self.is_fixed, self.is_sampled = is_fixed, False
        self._reach = 0.5  # of the next steps of log alpha
        self._prior = default_prior(latent.n_items)

    def alphas_to_try(self) -> list[float]:
        """Three alphas in a row; with full rankings the best one is known without."""
        if self.is_fixed or self.latent.is_full:
            return []
        return [self.alpha * math.exp(step * self._reach) for step in (-1, 0, 1)]

    def judge_alphas(self, values: list[float], adapt: bool) -> None:
        """Go to the top of the parabola through three points, at most two steps away."""
        steps = (-self._reach, 0.0, self._reach)
        low, middle, high = (
            value + log_density(self._prior, self.alpha * math.exp(step))
            for value, step in zip(values, steps, strict=True)
        )
        bend = low - 2 * middle + high
        step = (low - high) / (2 * bend) if bend < 0 else math.copysign(2.0, high - low)
        self._set_alpha(self.alpha * math.exp(self._reach * min(max(step, -2.0), 2.0)))
        self._reach = max(0.1, self._reach * (1.0 if abs(step) > 1 else 0.7))

    def _set_alpha(self, alpha: float) -> None:
        highest = min(HIGHEST_ALPHA, 10.0 * self.latent.n_items)
        self.alpha = min(max(alpha, LOWEST_START), highest)

    def move(self, costs: Counts) -> None:
        """The best consensus, or a sampled one."""
        if not self.is_sampled:
            self.consensus = best_assignment(costs)
        else:
            stream, n_items = np.empty(1, dtype=np.uint64), self.latent.n_items
            start_stream(self.seed, self.n_sweeps, CHAIN, stream)
            lam = self.alpha / n_items
            move_consensus(stream, costs, lam, SWAP, 1, 10 * n_items, self.consensus)
        if self.latent.is_full and not self.is_fixed:
            self._set_alpha(self.latent.best_alpha(self.consensus, self._prior))


def find_start(
    latent: Latent,
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
    report: Callable[[], None] = lambda: None,
) -> Mixture:
    """A good start: several cheap guesses on some of the rows, the best by likelihood on all.

    A guess is k-means on the leading axes of the data, improved by stochastic EM: labels from
    exact memberships, exact latent rankings, the best consensus by assignment. From the end on the
    consensus is sampled, since the best one would have too large an alpha.
    """
    some = _some_rows(latent, n_clusters, rng)
    features = some.features(min(n_clusters, latent.n_items - 1))
    guesses = [
        _guess(some, features, n_clusters, alpha, share_prior, child)
        for child in rng.spawn(N_STARTS)
    ]
    for n_sweeps, n_left in ((2, N_FINALISTS), (4, 1)):
        for guess in guesses:
            _run(guess, n_sweeps, report)
        guesses = sorted(guesses, key=lambda guess: -guess.log_likelihood)[:n_left]
    best = Mixture(latent, guesses[0].states, guesses[0].shares, 1, share_prior, rng)
    best.refresh(adapt=True)
    _run(best, ASSIGNED_SWEEPS, report)
    for state in best.states:
        assert isinstance(state, StartState)
        state.is_sampled = True
    best.refresh_every = 3
    return best


def prepare(
    latent: Latent,
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
    report: Callable[[], None],
) -> Mixture:
    """The clusters to start from, alpha a mean over some sweeps, and fixed from then on."""
    mixture = find_start(latent, n_clusters, alpha, share_prior, rng, report)
    _run(mixture, SAMPLED_SWEEPS // 3, report)
    alphas = []
    for _ in range(SAMPLED_SWEEPS - SAMPLED_SWEEPS // 3):
        _run(mixture, 1, report)
        alphas.append(mixture.alpha)
    for state, mean in zip(mixture.states, np.mean(alphas, axis=0).tolist(), strict=True):
        assert isinstance(state, StartState)
        state.alpha, state.is_fixed = mean, True
    return mixture


def _run(mixture: Mixture, n_sweeps: int, report: Callable[[], None]) -> None:
    for _ in range(n_sweeps):
        mixture.sweep(adapt=True)
        report()


def _some_rows(latent: Latent, n_clusters: int, rng: np.random.Generator) -> LocalLatent:
    n_rows = max(START_ROWS, START_ROWS_EACH * n_clusters)
    if latent.n_rows <= n_rows:
        return latent.gather(latent.row_weights)
    weights = np.zeros_like(latent.row_weights)
    chosen = rng.choice(latent.n_rows, n_rows, replace=False)
    weights[chosen] = latent.row_weights[chosen]
    return latent.gather(weights)


def _guess(
    latent: Latent,
    features: NDArray[np.float64],
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
) -> Mixture:
    """Clusters by k-means, each with its mean ranks as consensus."""
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty clusters, which the mixture fills
        labels = kmeans2(features, n_clusters, minit="++", iter=20, seed=rng)[1]
    counts = np.zeros((latent.n_rows, n_clusters), dtype=np.int64)
    counts[np.arange(latent.n_rows), labels] = latent.row_weights
    states = []
    for cluster, child in enumerate(rng.spawn(n_clusters)):
        mine = counts[:, cluster] if counts[:, cluster].any() else latent.row_weights
        chosen = latent.select(mine, latent.row_numbers)
        consensus = rank_randomly(chosen.mean_ranks, child)
        first = 5.0 if alpha is None else alpha
        states.append(StartState(chosen, consensus, first, alpha is not None, child))
    sizes = counts.sum(axis=0)
    shares = (share_prior + sizes) / (share_prior + sizes).sum()
    mixture = Mixture(latent, states, shares, 1, share_prior, rng)
    mixture.share_out(counts)
    return mixture
