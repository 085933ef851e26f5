"""choose_distance: which distance describes unseen users best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..data.preferences import Preferences, check_preferences
from ..distances.distance import alpha_for_distance
from ..distances.tallies import Ranking
from ..engines.progress import Progress, shown
from ..kernels.footrule.latent_blocks import draw_latent
from ..kernels.streams import Streams
from ..laws.block_laws import ranking_log_likelihoods
from ..laws.full import full_log_likelihoods
from ..laws.law import Clusters, Law
from ..laws.registry import find_law, make_law
from ..rankings import as_rng
from .chain import Chain, Moves
from .choose_clusters import N_FOLDS, HeldOutScores
from .options import N_MOVES, check_prior
from .priors import AlphaPrior, default_prior
from .start import start_one

MAX_ROWS = 1000  # of more, some are left out: a mean score is known to 1/32 of the users' spread
# Sweeps of the chain on the other users. With half and with twice of each, the distance of six sets
# of 120 partial rankings was chosen as well, and mean log likelihoods were the same to 0.02.
WARMUP, N_SNAPSHOTS, THIN = 60, 10, 4
# Latent rankings for each user, where the likelihood is estimated: its log is known to
# 1 / sqrt(200) = 0.07 at best, and `effective_sizes` says how many count.
N_PROPOSED = 200
BROADER = 0.7  # times the alpha of the law they are drawn from: it must be the broader one


@dataclass(frozen=True, eq=False)
class DistanceScores(HeldOutScores):
    """How well each distance describes unseen users.

    Attributes
    ----------
    distances : list of str
        The distances that were tried.
    scores : (n_tried, n_users) array
        Log likelihood of each user, under a consensus and alpha learnt from other users.
    effective_sizes : (n_tried,) array
        Where the likelihood of users known in part is estimated: the effective number of latent
        rankings behind it, of 200, for the median user. Infinite where the likelihood is exact.
    """

    distances: list[str]
    scores: NDArray[np.float64]
    effective_sizes: NDArray[np.float64]

    @property
    def chosen(self) -> str:
        """The distance with the best mean score."""
        return self.distances[int(self.means.argmax())]

    @property
    def rivals(self) -> list[str]:
        """Others within two standard errors of the best: the data cannot separate them."""
        near = self.means.max() - self.means <= 2 * self.errors
        pairs = zip(self.distances, near, strict=True)
        return [name for name, is_near in pairs if is_near and name != self.chosen]

    def __repr__(self) -> str:
        order = np.argsort(-self.means, kind="stable")
        listed = ", ".join(f"{self.distances[place]} {self.means[place]:.2f}" for place in order)
        also = f"; nearly as good: {' and '.join(self.rivals)}" if self.rivals else ""
        return f"DistanceScores({self.chosen} is best{also}; mean scores {listed})"


def choose_distance(
    prefs: Preferences,
    names: Sequence[str] | None = None,
    *,
    alpha_prior: Any = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | bool | None = None,
) -> DistanceScores:
    """Choose the distance by the likelihood of users held out.

    The users are cut into three parts. For each distance, consensus and alpha are sampled from two
    of them, and the third is scored. Where users known in part have no exact likelihood (Spearman,
    Cayley, Ulam; Kendall with gaps), it is estimated by importance sampling, with
    latent rankings drawn from the footrule's exact law.

    Parameters
    ----------
    prefs : Preferences
        What is known about the users; if there are more than 1,000, a random part is used.
    names : sequence of str, optional
        The distances to try; default: all that work for this many items.
    alpha_prior : (shape, rate) or "flat", optional
        The prior of alpha, the same for all distances; as in :func:`fit`.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.
    progress : bool or callable, optional
        As in :func:`fit`.

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> rankings = Mallows(range(1, 9), 12, distance="cayley").draw(60, rng=1)
    >>> choose_distance(Preferences.from_rankings(rankings), ["footrule", "cayley"], rng=1).chosen
    'cayley'
    """
    rng = as_rng(rng)
    check_preferences(prefs)
    data = prefs.one_row_each()[0].as_rankings()  # clicks are two ties
    data = data.take(data.is_informative)
    rows = rng.permutation(data.n_users)[:MAX_ROWS]
    if len(rows) < 2 * N_FOLDS:
        raise ValueError(
            f"comparing distances needs {2 * N_FOLDS} informative users or more, got {len(rows)}"
        )
    tried = _names(names, data.n_items)
    prior = default_prior(data.n_items) if alpha_prior is None else check_prior(alpha_prior, "")
    folds, scores, sizes = np.array_split(rows, N_FOLDS), [], []
    with shown(progress, "comparing distances") as report:
        for done, name in enumerate(tried):
            parts = [_score_fold(data, rows, fold, name, prior, rng) for fold in folds]
            scores.append(np.concatenate([values for values, _ in parts]))
            sizes.append(float(np.median(np.concatenate([size for _, size in parts]))))
            report(done + 1, len(tried))
    return DistanceScores(tried, np.array(scores), np.array(sizes))


def _names(names: Sequence[str] | None, n_items: int) -> list[str]:
    """The distances to try; those that cannot take so many items only if they are asked for."""
    if names is not None:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"names must be a list of distances, got {names!r}")
        if not len(list(names)):
            raise ValueError("names must have at least one distance, got none")
        return [distances.get(name).name for name in names]
    return [name for name, each in distances.DISTANCES.items() if n_items <= each.most_items]


def _score_fold(
    data: Any,
    rows: NDArray[np.int64],
    fold: NDArray[np.int64],
    name: str,
    prior: AlphaPrior,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log of the mean likelihood of each user of a fold, and effective sizes behind it."""
    law = make_law(data.take(np.setdiff1d(rows, fold)), None, name)
    users = data.take(fold)
    logs, sizes = [], []
    for consensus, alpha in _sample(law, prior, rng):
        values, size = _score(users, consensus, alpha, name, int(rng.integers(2**63)))
        logs.append(values)
        sizes.append(size)
    return np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)), np.median(sizes, axis=0)


def _sample(law: Law, prior: AlphaPrior, rng: np.random.Generator) -> list[tuple[Ranking, float]]:
    """Draws of consensus and alpha, given some users, by the exact chain."""
    moves = Moves(n_moves=N_MOVES * law.n_items, prior=prior)
    state = start_one(law, None, moves, "map", rng)
    law.anchor(state.clusters, None)
    chain, draws = Chain(law, state, moves, rng), []
    for sweep in range(WARMUP + N_SNAPSHOTS * THIN):
        chain.sweep(adapt=sweep < WARMUP)
        if sweep >= WARMUP and (sweep - WARMUP) % THIN == THIN - 1:
            draws.append((chain.state.consensus[0], float(chain.state.alpha[0])))
    return draws


def _score(
    users: Any, consensus: Ranking, alpha: float, name: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihood of each user, and the effective number of latent rankings, if estimated."""
    if find_law(users, name) is not None:
        law = make_law(users, None, name)
        values = law.scores(Clusters(consensus[None], np.array([alpha])), np.ones(1))
        return values, np.full(len(values), np.inf)
    return estimate_log_likelihoods(users.rankings, consensus, alpha, name, seed)


def estimate_log_likelihoods(
    rankings: Ranking, consensus: Ranking, alpha: float, name: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log likelihood of each row known in part, by importance sampling, and effective sizes.

    Latent rankings are drawn from the footrule's exact law, whose alpha has the same mean footrule
    as a draw by this distance, and a little broader.
    """
    distance, footrule = distances.get(name), distances.FOOTRULE
    n_items, rate = len(consensus), alpha / len(consensus)
    start = np.arange(1, n_items + 1)
    away = footrule.between(distance.draw(n_items, alpha, N_PROPOSED, seed), start)
    near = BROADER * alpha_for_distance(footrule, n_items, max(float(away.mean()), 0.5))
    latent = _draw_by_footrule(rankings, consensus, near, seed)
    logs = ranking_log_likelihoods(rankings, consensus, near, distances.FOOTRULE)
    constant = footrule.log_partition(n_items, near)
    values, sizes = np.empty(len(rankings)), np.empty(len(rankings))
    for row, draws in enumerate(latent):
        weights = full_log_likelihoods(draws, consensus, rate * n_items, distance)
        weights = weights + near / n_items * footrule.between(draws, consensus)
        highest = weights.max()
        shares = np.exp(weights - highest)
        values[row] = highest + math.log(shares.mean()) + logs[row] + constant
        sizes[row] = shares.sum() ** 2 / (shares**2).sum()
    return values, sizes


def _draw_by_footrule(rankings: Ranking, consensus: Ranking, alpha: float, seed: int) -> Ranking:
    """``latent[row, draw, item]``, given what is known about each row."""
    n_rows, n_items = rankings.shape
    rows = np.repeat(rankings, N_PROPOSED, axis=0)
    streams = Streams(seed, 0, np.arange(len(rows)), np.ones(len(rows), dtype=np.int64))
    latent, counts = np.zeros_like(rows), np.zeros((n_items, n_items), dtype=np.int64)
    draw_latent(streams, rows, consensus, alpha / n_items, counts, latent)
    return latent.reshape(n_rows, N_PROPOSED, n_items)
