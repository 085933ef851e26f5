"""fit: one door to every method."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._version import __version__
from .alpha import estimate_alpha
from .clicks import ClickLatent, MetropolisLatent
from .diagnostics import (
    ADVICE,
    EFFECTIVE_SIZE_LIMIT,
    RHAT_LIMIT,
    AgreementWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
)
from .executors import Executor
from .latent import Latent, RankingLatent
from .mcmc import Chain, ChainOptions, best_log_posterior, stuck_chains
from .options import Options, check_options
from .posterior import Posterior
from .preferences import Clicks, Preferences, Rankings
from .pseudo import PseudoMallows
from .rankings import check_alpha, rank_randomly

METHODS = ("pseudo", "balanced", "mcmc")
N_CANDIDATES = 20  # among which a sweep of "balanced" chooses, for partial rankings
SLOW_ADVICE = (
    "the consensus of Algorithm 5 moves slowly, since it sees its own latent rankings, so its "
    "intervals are too short: use method='mcmc' or 'balanced', or try sigma above 0"
)
Progress = Callable[[int, int], None]


def fit(
    prefs: Preferences,
    method: str = "pseudo",
    alpha: float | None = None,
    n_draws: int | None = None,
    n_clusters: int = 1,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    **options: Any,
) -> Posterior:
    """Learn the consensus of the users, and how sure one can be of it.

    Parameters
    ----------
    prefs : Preferences
        What is known of the users: full rankings, partial rankings, top-k lists, clicks.
    method : str
        "pseudo": the Pseudo-Mallows of the paper: fast, approximate. "balanced": the same with a
        price for each rank, and with importance weights that make up for the approximation.
        "mcmc": the exact posterior.
    alpha : float, optional
        Concentration of the users. Without it, "pseudo" and "balanced" estimate it
        (:func:`estimate_alpha`), and "mcmc" samples it along with the consensus.
    n_draws : int, optional
        Draws kept from each chain: 200, or 4,000 weighted ones for "balanced" on full rankings.
    n_clusters : int
        1.
    rng : numpy.random.Generator or seed, optional
        Source of randomness; the same seed gives the same draws, whatever the number of threads.
    progress : callable, optional
        Called as ``progress(done, total)``.
    executor : optional
        Anything with a `map`, to run blocks of users; default: threads on all cores.
    **options
        n_chains : int
            Number of chains: 4 for "mcmc", else 1.
        warmup : int
            Sweeps thrown away at the start of a Markov chain; default half of ``n_draws * thin``,
            at least 100 (a tenth, at least 10, for "pseudo" on clicks). Draws of "pseudo" and
            "balanced" are a Markov chain for partial rankings and clicks only.
        thin : int
            Sweeps for each draw that is kept; default 1; for partial rankings and clicks 5, or 10
            with one chain only (but 1 for "pseudo" on clicks).
        sigma : float
            For "pseudo": noise on the V-ranking; default 0.
        order : str
            For "pseudo" on clicks: how a user's items are visited (section 3.3 of the paper):
            "uniform" (default), "v" or "top_bottom".
        keep_latent : list
            For clicks: names of users whose latent rankings are kept with the draws; default none.
            They are those drawn at the start of a sweep, before the consensus moved.
        augmentation, n_swaps
            For "mcmc" on clicks: "exact" (default), or "metropolis", the paper's opponent, with
            `n_swaps` proposals for each user and sweep (default 1).
        weighted : bool
            For "balanced": make up for the approximation with importance weights; default True. On
            full rankings the draws carry them; on partial ones each sweep chooses by them.
        move, leap, n_moves
            For "mcmc": "swap" (default) or "leap_and_shift", with leaps of up to `leap` places
            (default n_items / 5); proposals in a sweep (default 10 n_items).
        start : str
            For "mcmc": "map" (default) or "random".
        alpha_prior : (shape, rate)
            For "mcmc": gamma prior of alpha; the default (1, 0.001) is nearly flat, exponential.
        distance : str
            "footrule".

    Returns
    -------
    Posterior

    Warns
    -----
    ConvergenceWarning
        When the chains do not agree, are too short, or are stuck.
    EffectiveSizeWarning
        When few draws carry all the weight.
    AgreementWarning
        When alpha is estimated as 0: the users agree no more than by chance.
    BalanceWarning
        When the balancing of the weights stopped early.

    Examples
    --------
    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
    >>> posterior = fit(prefs, alpha=3, rng=1)
    >>> posterior.point_consensus()
    array([1, 2, 3], dtype=int32)
    """
    if not isinstance(prefs, Preferences):
        raise TypeError(
            f"prefs must be Preferences, got {type(prefs).__name__}: "
            "use pm.Preferences.from_rankings, from_orderings or from_clicks"
        )
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    if n_clusters != 1:
        raise ValueError(f"n_clusters must be 1 in this version, got {n_clusters!r}")
    started = time.perf_counter()
    seed = int(rng) if isinstance(rng, int | np.integer) else None
    alpha = None if alpha is None else check_alpha(alpha)
    plan = check_options(prefs, method, n_draws, options)
    generator = np.random.default_rng(rng)
    latent = make_latent(prefs, executor, plan)
    if alpha is None and method != "mcmc":
        how = (
            "likelihood"
            if isinstance(latent, RankingLatent) and not latent.is_full
            else "similarity"
        )
        alpha = estimate_alpha(prefs, how, rng=generator, executor=executor)
        if alpha == 0:
            warnings.warn(AgreementWarning(latent.n_users), stacklevel=2)

    job = _Job(latent, method, alpha, plan, generator, progress or _no_progress)
    draws = job.run()
    settings = {
        "version": __version__,
        "method": method,
        "seed": seed,
        "alpha": alpha,
        "n_users": latent.n_users,
        "options": plan.as_settings(),
        "seconds": round(time.perf_counter() - started, 3),
    }
    posterior = Posterior(
        **draws,
        items=prefs.items,
        settings=settings,
        clicks=prefs if isinstance(prefs, Clicks) else None,
    )
    _warn_if_doubtful(posterior, job)
    return posterior


def make_latent(prefs: Preferences, executor: Executor | None, plan: Options) -> Latent:
    """The latent rankings of one kind of data."""
    if isinstance(prefs, Rankings):
        return RankingLatent(prefs, executor)
    assert isinstance(prefs, Clicks)
    if plan.augmentation == "metropolis":
        return MetropolisLatent(prefs, executor, plan.n_swaps)
    return ClickLatent(prefs, executor)


def _no_progress(done: int, total: int) -> None:
    pass


class _Job:
    """One fit: the same arrays, filled by one of three methods."""

    def __init__(
        self,
        latent: Latent,
        method: str,
        alpha: float | None,
        plan: Options,
        rng: np.random.Generator,
        progress: Progress,
    ):
        self.latent, self.method, self.alpha = latent, method, alpha
        self.plan, self.rng, self.progress = plan, rng, progress
        shape = (plan.n_chains, plan.n_draws)
        self.consensus = np.empty((*shape, 1, latent.n_items), dtype=np.int32)
        self.alphas = np.full((*shape, 1), np.nan if alpha is None else alpha)
        self.log_posterior = np.full(shape, np.nan)
        self.log_weights = np.zeros(shape)
        self.costs = np.zeros((1, latent.n_items, latent.n_items))
        self.latents = np.zeros((*shape, len(plan.keep_latent), latent.n_items), dtype=np.int32)

    @property
    def is_markov(self) -> bool:
        """Are the draws of a chain, or independent?"""
        return self.method == "mcmc" or not self.latent.is_full

    def run(self) -> dict[str, NDArray[Any]]:
        """Fill the arrays."""
        for chain, rng in enumerate(self.rng.spawn(self.plan.n_chains)):
            if self.method == "mcmc":
                self._run_mcmc(chain, rng)
            elif self.latent.is_full:
                self._draw_independent(chain, rng)
            else:
                self._run_augmented(chain, rng)
        weights = np.exp(self.log_weights - self.log_weights.max())
        return {
            "consensus": self.consensus,
            "alpha": self.alphas,
            "weights": weights / weights.sum(),
            "log_posterior": self.log_posterior,
            "costs": self.costs / (self.plan.n_chains * self.plan.n_draws),
            "latent": self.latents,
        }

    def _law(self, costs: NDArray[np.int64]) -> PseudoMallows:
        assert self.alpha is not None
        balanced = self.method == "balanced"
        return PseudoMallows.from_costs(costs, self.alpha, self.plan.sigma, balanced)

    def _draw_independent(self, chain: int, rng: np.random.Generator) -> None:
        """Full rankings: all draws at once (Algorithm 3, or balanced)."""
        costs = self.latent.known_costs
        draws = self._law(costs).draw_weighted(self.plan.n_draws, rng)
        self.consensus[chain, :, 0] = draws.rankings
        if self.plan.weighted:
            self.log_weights[chain] = draws.log_weights
        self.costs += costs * self.plan.n_draws
        self.progress(chain + 1, self.plan.n_chains)

    def _run_augmented(self, chain: int, rng: np.random.Generator) -> None:
        """What is known in part: latent rankings given the consensus, consensus given the latent.

        For clicks and "pseudo" this is Algorithm 5.
        """
        assert self.alpha is not None
        latent, order = self.latent, None
        consensus = rank_randomly(latent.mean_ranks, rng)
        seed = int(rng.integers(2**63))
        for sweep in range(self.plan.warmup + self.plan.n_draws * self.plan.thin):
            before = consensus.copy()
            if self.method == "pseudo" and isinstance(latent, ClickLatent):
                order = self.plan.order
                costs = latent.draw_pseudo(consensus, self.alpha, seed, sweep, order)
            else:
                costs = latent.draw(consensus, self.alpha, seed, sweep)
            law = self._law(costs)
            if self.plan.weighted:
                consensus = law.redraw(consensus, N_CANDIDATES, rng).copy()
            else:
                consensus = law.draw(1, rng)[0]
            draw = self._kept(sweep)
            if draw is not None:
                self.consensus[chain, draw, 0] = consensus
                self.costs += costs
                source = (before, self.alpha, seed, sweep, order)
                self._keep_latent(chain, draw, latent, source)
            self._report(chain, sweep)

    def _run_mcmc(self, chain: int, rng: np.random.Generator) -> None:
        """The exact posterior."""
        state = Chain(self.latent.for_chain(), self.alpha, self.plan.chain, rng)
        for sweep in range(self.plan.warmup + self.plan.n_draws * self.plan.thin):
            before = state.consensus.copy()
            state.sweep(adapt=sweep < self.plan.warmup)
            draw = self._kept(sweep)
            if draw is not None:
                self.consensus[chain, draw, 0] = state.consensus
                self.alphas[chain, draw, 0] = state.alpha
                self.log_posterior[chain, draw] = state.log_posterior()
                self.costs += state.costs
                source = (before, state.alpha, state.seed, state.n_sweeps, None)
                self._keep_latent(chain, draw, state.latent, source)
            self._report(chain, sweep)

    def _keep_latent(self, chain: int, draw: int, latent: Latent, source: tuple[Any, ...]) -> None:
        """Keep the latent rankings of the chosen users: of exact draws, from the same streams."""
        if len(self.plan.keep_latent) and isinstance(latent, ClickLatent):
            self.latents[chain, draw] = latent.latent_of(self.plan.keep_latent, *source)

    def _kept(self, sweep: int) -> int | None:
        """The number of the draw that a sweep ends with, if it is kept."""
        done, rest = divmod(sweep + 1 - self.plan.warmup, self.plan.thin)
        return done - 1 if rest == 0 and done > 0 else None

    def _report(self, chain: int, sweep: int) -> None:
        length = self.plan.warmup + self.plan.n_draws * self.plan.thin
        self.progress(chain * length + sweep + 1, self.plan.n_chains * length)


def _warn_if_doubtful(posterior: Posterior, job: _Job) -> None:
    if (
        job.plan.weighted
        and not job.is_markov
        and posterior.effective_size < min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 2)
    ):
        warning = EffectiveSizeWarning(posterior.effective_size, posterior.weights.size)
        warnings.warn(warning, stacklevel=3)
    if not job.is_markov:
        return
    diagnostics = posterior.diagnostics()
    stuck: list[int] = []
    if job.method == "mcmc" and job.plan.augmentation == "exact":
        options = ChainOptions(**(vars(job.plan.chain) | {"start": "map"}))
        best = best_log_posterior(job.latent, job.alpha, options)
        stuck = stuck_chains(posterior.log_posterior, best, posterior.n_items)
    size_limit = min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 4)
    worst, least = diagnostics.worst_rhat, diagnostics.least_effective_size
    if stuck or not (worst <= RHAT_LIMIT and least >= size_limit):
        slow = job.method == "pseudo" and posterior.clicks is not None
        advice = SLOW_ADVICE if slow else ADVICE
        warnings.warn(ConvergenceWarning(worst, least, stuck, advice), stacklevel=3)
