"""Clicks and partial rankings: the latent rankings (Algorithm 4), the chain that
draws these and the consensus in turn (Algorithm 5), and recommendations by counting (section 3.4).
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks
from ..data.preferences import Preferences
from ..distances import price_of
from ..distances.tallies import Counts, Ranking, RankTally, best_assignment, rank_tally
from ..engines.progress import Progress
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.groups import draw_users
from ..kernels.streams import Streams
from ..laws.full import FullLaw
from ..laws.law import Clusters, Law, order_like
from ..rankings import (
    as_rng,
    check_alpha,
    check_count,
    check_name,
    check_rankings,
    orderings_of,
    rank_randomly,
)
from .anytime import FullPosterior, answer_in_time
from .pseudo import PseudoMallows
from .visit_orders import ORDERS

Floats = NDArray[np.float64]
# Among which "balanced" chooses: of 20 one has weight enough, and they cost little beside the tally
# of all users.
N_CANDIDATES = 20


def draw_latent(
    clicks: ClickRows,
    streams: Streams,
    consensus: Ranking,
    alpha: float,
    order: str,  # in which a user's items are visited
    latent: Ranking,
) -> Counts:
    """Algorithm 4: draw latent rankings, into `latent` if it has rows, and count them:
    ``counts[item, rank - 1]``."""
    ordering, rate = orderings_of(consensus), alpha / len(consensus)
    counts = np.zeros((len(consensus), len(consensus)), dtype=np.int64)
    draw_users(streams, clicks, ordering, rate, ORDERS[order], counts, latent)
    return counts


@dataclass(frozen=True)
class PseudoMoves:
    """How the consensus is drawn from a Pseudo-Mallows law, and the latent rankings before it."""

    balanced: bool = False
    weighted: bool = False
    sigma: float | str = 0.0
    order: str | None = None  # of Algorithm 4; None: latent rankings are drawn exactly


class PseudoChain:
    """Algorithm 5: the latent rankings given the consensus, then the consensus given them.

    The users of several clusters are divided before, as in the case study of the paper, so that
    each cluster is a chain of its own. Partial rankings have exact latent rankings in place of
    Algorithm 4; full ones need none, and their draws are independent.
    """

    def __init__(
        self,
        law: Law,
        consensus: Ranking,  # [cluster, item]
        alpha: Floats,  # [cluster]
        labels: NDArray[np.int32] | None,  # of the rows; None: one cluster
        moves: PseudoMoves,
        rng: np.random.Generator,
    ):
        self.law, self.consensus, self.alpha, self.labels = law, consensus, alpha, labels
        self._moves, self._rng, self.n_sweeps = moves, rng, 0
        self.seeds = rng.integers(2**63, size=len(alpha)).tolist()
        self.before = consensus  # that the latest rankings were drawn from

    def sweep(self) -> None:
        """Latent rankings of all users, then the consensus of each cluster."""
        self.n_sweeps += 1
        self.before = self.consensus
        self.consensus = np.stack([self._draw_consensus(k) for k in range(len(self.alpha))])

    def tally(self, cluster: int) -> RankTally:
        """The tally of the latent rankings of a cluster, drawn anew, or of full ones."""
        law, prices = self.law, price_of(self.law.distance)
        if isinstance(law, FullLaw):
            tallies: Any = law.tallies(self.labels, len(self.alpha))
            return rank_tally(tallies[cluster].known)
        where = (self.consensus[cluster], float(self.alpha[cluster]), self.seeds[cluster])
        messages = [
            (None if self.labels is None else self.labels[rows] == cluster, *where, self.n_sweeps)
            for rows in law.slices
        ]
        tasks = [
            (rows, self._moves.order, *each)
            for rows, each in zip(law.blocks, messages, strict=True)
        ]
        counts = sum(law.executor.map(_count_latent, tasks))
        return RankTally(prices, np.asarray(counts))

    def _draw_consensus(self, cluster: int) -> Ranking:
        """Algorithm 3, or a choice by weight among balanced draws; anything for nobody."""
        moves, tally = self._moves, self.tally(cluster)
        if not tally.counts.any():
            return rank_randomly(np.zeros(self.law.n_items), self._rng)
        alpha, old = float(self.alpha[cluster]), self.consensus[cluster]
        law = PseudoMallows.from_tally(tally, alpha, moves.sigma, moves.balanced)
        if moves.weighted:
            return law.redraw(old, N_CANDIDATES, self._rng).copy()
        return law.draw(1, self._rng)[0]

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """The latest latent rankings of some users of one cluster."""
        law: Any = self.law
        clusters = Clusters(self.before, self.alpha)
        labels, where = np.zeros(len(users), dtype=np.int32), (self.seeds[0], self.n_sweeps)
        if self._moves.order is None:
            return law.draw_latent(users, labels, clusters, *where)
        clicks, latent = law.everyone.take(users), np.zeros((len(users), law.n_items), np.int32)
        rows = ClickRows(clicks.starts, clicks.codes)
        streams = Streams(*where, users, np.ones(len(users), dtype=np.int64))
        draw_latent(rows, streams, self.before[0], float(self.alpha[0]), self._moves.order, latent)
        return latent


def _count_latent(task: Any) -> Counts:
    """``counts[item, rank - 1]`` of latent rankings of the users of a block: by Algorithm 4 in this
    order of visits, or exact ones."""
    rows, order, is_member, consensus, alpha, seed, number = task
    weights = rows.weights if is_member is None else rows.weights * is_member
    if order is None:
        return rows.count_latent(consensus, alpha, seed, number, weights)
    streams, nobody = Streams(seed, number, rows.numbers, weights), np.empty((0, 0), dtype=np.int32)
    return draw_latent(rows.clicks, streams, consensus, alpha, order, nobody)


class PseudoRun:
    """A fit by Pseudo-Mallows: independent draws of full rankings, else chains of Algorithm 5."""

    thinning, can_temper = 1, False

    def __init__(
        self,
        law: Law,
        prefs: Preferences,
        owners: NDArray[np.int64],
        options: Any,  # of the fit
        divide: Callable[..., tuple[Any, Floats, Any]],  # makes the clusters
        rng: np.random.Generator,
        progress: Progress,
    ):
        self.law, self.prefs, self._divide = law, prefs, divide
        self.alpha, self.n_clusters = options.alpha, options.case.n_clusters
        self.n_chains, self.n_draws = options.n_chains, options.n_draws
        self.warmup, self.thin = options.warmup, options.thin
        self.is_markov, self.kept_rows = options.case.is_markov, options.kept_rows
        self._share_prior, is_balanced = options.share_prior, options.method == "balanced"
        if is_balanced:
            self._moves = PseudoMoves(balanced=True, weighted=options.weighted)
        else:
            self._moves = PseudoMoves(sigma=options.sigma, order=options.order)
        self._prior, self._seconds = options.alpha_prior, options.seconds
        if self._seconds is not None and self.n_chains > 1:
            raise ValueError(
                f"seconds decides how many chains there are: leave out n_chains={self.n_chains}"
            )
        self._sigma: float | None = None
        self._in_time: dict[str, Any] | None = None
        self.rng, self._progress = rng, progress
        self.last_rows = np.searchsorted(owners, np.arange(owners[-1] + 1), "right") - 1

    @property
    def how_latent(self) -> str:
        """How latent rankings were drawn, for the report."""
        if isinstance(self.law, FullLaw):
            return self.law.how_latent
        by_paper = self._moves.order is not None
        return f"drawn anew in each sweep, {'by Algorithm 4' if by_paper else 'exactly'}"

    @property
    def is_best_proved(self) -> bool:
        """Is the most probable consensus exact?"""
        return self.n_clusters == 1 and isinstance(self.law, FullLaw)

    def stuck(self) -> list[int]:
        """None: there is no exact posterior to compare with."""
        return []

    def checks(self) -> dict[str, Any]:
        """The sigma that was chosen; the evidence, where draws have weights."""
        checks: dict[str, Any] = {} if self._sigma is None else {"sigma": self._sigma}
        if self._moves.weighted and not self.is_markov:
            logs = self._evidence
            weights = np.exp(logs - logs.max())
            error = float(weights.std() / weights.mean() / math.sqrt(len(weights)))
            value = float(np.log(weights.mean()) + logs.max())
            checks["evidence"] = {"log_evidence": value, "log_evidence_error": error}
            if self._in_time is not None:
                checks["in_time"] = self._in_time
            if self.alpha is None:  # does nothing but the prior bound it from above?
                checks["unbounded"] = [] if self._least_distance else [0]
        return checks

    def run(self, file: Any = None) -> None:
        """Fill the arrays."""
        started = time.perf_counter()
        if not self.is_markov:
            self._draw_all(started)
            return
        self._make_arrays()
        self._reference: Floats | None = None
        for chain, child in enumerate(self.rng.spawn(self.n_chains)):
            self._run_chain(chain, child)

    def _make_arrays(self) -> None:
        n_items, shape = self.law.n_items, (self.n_chains, self.n_draws)
        self.consensus = np.empty((*shape, self.n_clusters, n_items), dtype=np.int32)
        self.alphas, self.log_weights = np.empty((*shape, self.n_clusters)), np.zeros(shape)
        self.latent = np.zeros((*shape, len(self.kept_rows), n_items), dtype=np.int32)
        self.memberships = np.ones((self.n_chains, self.prefs.n_users, self.n_clusters), np.float32)
        self.costs = np.zeros((self.n_clusters, n_items, n_items))
        self.unbounded = np.zeros((self.n_chains, self.n_clusters), dtype=np.bool_)

    def _draw_all(self, started: float) -> None:
        """All draws of full rankings at once (Algorithm 3, or balanced), or those of a given
        time."""
        assert isinstance(self.law, FullLaw)
        moves, prior = self._moves, self._prior
        kind = {"sigma": moves.sigma, "balanced": moves.balanced}

        def log_prior(alpha: float) -> float:
            return float(prior.log_density(alpha) + prior.log_constant)

        posterior = FullPosterior(
            self.law, self.law.tallies(None, 1)[0], self.alpha, log_prior, self.rng, **kind
        )
        if self._seconds is not None:
            limits = self.n_draws, self._seconds
            answer = answer_in_time(posterior, *limits, self.rng, started)
            self._evidence, self._in_time = answer.drawn.log_weights, answer.settings()
            parts: Iterable[Any] = zip(
                answer.consensus, answer.alphas, answer.log_weights, strict=True
            )
            self.n_chains, self.n_draws = answer.alphas.shape
        else:
            drawn = [posterior.draw(self.n_draws, rng) for rng in self.rng.spawn(self.n_chains)]
            self._evidence = np.concatenate([draws.log_weights for draws in drawn])
            parts = ((draws.rankings, draws.alphas, draws.log_weights) for draws in drawn)
        self._make_arrays()
        for chain, (rankings, alphas, log_weights) in enumerate(parts):
            self.consensus[chain, :, 0], self.alphas[chain, :, 0] = rankings, alphas
            self.log_weights[chain] = log_weights if moves.weighted else 0.0
        self._sigma = posterior.pseudo.sigma if moves.sigma == "auto" else None
        self._least_distance = posterior.tally.distance(posterior.best)
        self.costs[0] = posterior.tally.costs
        self._progress(1, 1)

    def _begin(self, chain: int, rng: np.random.Generator) -> PseudoChain:
        """One cluster begins at the ranking of the mean ranks."""
        if self.n_clusters == 1:
            consensus, alpha = rank_randomly(self.law.mean_ranks, rng)[None], np.array([self.alpha])
            return PseudoChain(self.law, consensus, alpha, None, self._moves, rng)
        model = (self.n_clusters, self.alpha, self._prior, self._share_prior)
        state, memberships, is_unbounded = self._divide(self.law, *model, rng)
        order = np.arange(self.n_clusters)
        if self._reference is not None:
            order = order_like(self._reference, state.labels)
        memberships, self.unbounded[chain] = memberships[:, order], is_unbounded[order]
        self._reference = memberships if self._reference is None else self._reference
        self.memberships[chain] = memberships.mean(axis=0)  # of uninformative users
        self.memberships[chain, self.prefs.is_informative] = memberships
        labels = np.argsort(order).astype(np.int32)[state.labels]
        where = (state.consensus[order], state.alpha[order], labels)
        return PseudoChain(self.law, *where, self._moves, rng)

    def _run_chain(self, number: int, rng: np.random.Generator) -> None:
        chain, n_sweeps = self._begin(number, rng), self.warmup + self.n_draws * self.thin
        for sweep in range(n_sweeps):
            chain.sweep()
            draw, left = divmod(sweep + 1 - self.warmup, self.thin)
            if draw > 0 and left == 0:
                where = (number, draw - 1)
                self.consensus[where], self.alphas[where] = chain.consensus, chain.alpha
                if len(self.kept_rows):
                    self.latent[where] = chain.latent_of(self.last_rows[self.kept_rows])
            self._progress(number * n_sweeps + sweep + 1, self.n_chains * n_sweeps)
        self.costs += np.stack([chain.tally(k).costs for k in range(self.n_clusters)])

    def results(self) -> dict[str, NDArray[Any]]:
        """The arrays of a posterior, the largest cluster first."""
        order = np.argsort(-self.memberships.sum(axis=(0, 1), dtype=np.float64), kind="stable")
        self.unbounded = self.unbounded[:, order]
        weights = np.exp(self.log_weights - self.log_weights.max())
        shares = self.memberships[:, self.prefs.is_informative].mean(axis=1, dtype=np.float64)
        shape = (self.n_chains, self.n_draws, self.n_clusters)
        return {
            "consensus": np.ascontiguousarray(self.consensus[:, :, order]),
            "alpha": np.ascontiguousarray(self.alphas[:, :, order]),
            "weights": weights / weights.sum(),
            "log_posterior": np.full(shape[:2], np.nan),
            "best": np.stack([best_assignment(costs) for costs in self.costs[order]]),
            "latent": self.latent,
            "shares": np.ascontiguousarray(np.broadcast_to(shares[:, None, order], shape)),
            "chain_memberships": self.memberships[:, self.last_rows][:, :, order],
            "errors": np.zeros((0, 0, 0)),
        }


def count_next(
    clicks: Clicks,
    consensus: ArrayLike,
    alpha: float,
    k: int,
    *,
    order: str = "uniform",
    rng: np.random.Generator | int | None = None,
) -> Floats:
    """P(c < rank <= c + k) of each item, for users with c clicks (equation 25), by counting.

    As the paper does: one latent ranking of each user for each draw of the consensus (Algorithm 4).
    200 draws leave an error of up to 0.035. :func:`recommend` has exact sums instead.

    Parameters
    ----------
    clicks : Clicks
        Of the users.
    consensus : (n_draws, n_items) array_like of int
        Draws, such as ``posterior.consensus[0, :, 0]``.
    alpha : float
        Concentration of the users.
    k : int
        How many ranks after the clicks.
    order : str
        How a user's items are visited: "uniform", "v" or "top_bottom".

    Returns
    -------
    (n_users, n_items) array
        Clicked items have 0.

    Examples
    --------
    >>> from pseudomallows import Preferences
    >>> clicks = Preferences.from_clicks([[1, 0, 0, 0]])
    >>> count_next(clicks, [[1, 2, 3, 4]] * 1000, 8.0, 1, rng=1).round(1)
    array([[0. , 0.9, 0.1, 0. ]])
    """
    draws, k = check_rankings(consensus, "consensus"), check_count(k, "k")
    if draws.shape[1] != clicks.n_items:
        raise ValueError(f"consensus must have {clicks.n_items} items, got {draws.shape[1]}")
    alpha, order = check_alpha(alpha), check_name(order, "order", ORDERS)
    seed = int(as_rng(rng).integers(2**63))
    users, ones = np.arange(clicks.n_users), np.ones(clicks.n_users, dtype=np.int64)
    rows, n_clicks = slice_clicks(clicks, slice(0, clicks.n_users)), clicks.n_clicks[:, None]
    ranks = np.zeros((clicks.n_users, clicks.n_items), dtype=np.int32)
    hits = np.zeros(ranks.shape)
    for number, ranking in enumerate(draws):
        draw_latent(rows, Streams(seed, number, users, ones), ranking, alpha, order, ranks)
        hits += (ranks > n_clicks) & (ranks <= n_clicks + k)
    return hits / len(draws)
