"""fit: one door to every method."""

import functools
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..distributions.pseudo import PseudoMallows
from ..engines.executors import Executor, Threads, check_local, is_remote
from ..files.parquet_parts import Parts
from ..files.saved import Saved
from ..latent.clicks import MetropolisLatent
from ..latent.population import Latent, Ranking, check_informative
from ..latent.rankings import RankingLatent
from ..latent.shards import ShardedClicks, make_latent, open_parts
from ..posteriors.diagnostics import (
    ADVICE,
    EFFECTIVE_SIZE_LIMIT,
    RHAT_LIMIT,
    AgreementWarning,
    AlphaWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
)
from ..posteriors.posterior import Posterior
from ..preferences.preferences import Clicks, Preferences, check_preferences
from ..rankings import MAX_ALPHA, check_alpha, check_number, rank_randomly
from ..recommendations.personal import N_REPORTS, Learner, Personal, PersonalOptions, check_held_out
from ..recommendations.recommenders import chances_of
from .alpha import estimate_alpha
from .checkpoint import Checkpoint, describe_call
from .choose_clusters import choose_clusters
from .mcmc import Chain, ChainOptions, best_log_posterior, is_unbounded, stuck_chains
from .mixture import PREPARATION, Mixture, StartState, check_n_clusters, prepare
from .options import (
    METHODS,
    Options,
    check_memory,
    check_options,
    check_options_of_either,
    known_options,
)
from .states import PseudoState, State

N_LEADERS = 4  # exact consensuses kept of each chain of a mixture of rough ones
SLOW_ADVICE = (
    "the consensus of Algorithm 5 moves slowly, since it sees its own latent rankings, so its "
    "intervals are too short: use method='mcmc' or 'balanced', or try sigma above 0"
)
CLUSTER_ADVICE = (
    "raise n_draws or thin; if the chains have found different clusters (compare "
    "posterior.chain_memberships), take fewer clusters"
)
Progress = Callable[[int, int], None]


def fit(
    prefs: Preferences | Parts,
    method: str = "pseudo",
    alpha: float | None = None,
    n_draws: int | None = None,
    n_clusters: int | str = 1,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Posterior:
    """Learn the consensus of the users, and how sure one can be of it.

    Parameters
    ----------
    prefs : Preferences or Parts
        What is known of the users: full rankings, partial rankings, top-k lists, clicks. With
        :class:`Parts`, which the workers of a cluster read, the posterior keeps no users.
    method : str
        "pseudo": the Pseudo-Mallows of the paper: fast, approximate. "balanced": the same with a
        price for each rank, and with importance weights that make up for the approximation.
        "mcmc": the exact posterior. "personal", for clicks: every user has a consensus of the
        user's own, the ranking of scores that come from the user's other clicks.
    alpha : float, optional
        Concentration of the users. Without it, "pseudo" and "balanced" estimate it
        (:func:`estimate_alpha`; with clusters, each chain by the exact likelihood, for each
        cluster), and "mcmc" samples it along with the consensus.
    n_draws : int, optional
        Draws kept from each chain: 200, or 4,000 weighted ones for "balanced" on full rankings
        with one cluster.
    n_clusters : int or "auto"
        Groups of users, each with a consensus and an alpha of its own. "auto": as many as describe
        unseen users well, see :func:`choose_clusters`.
    rng : numpy.random.Generator or seed, optional
        Source of randomness; the same seed gives the same draws, whatever the number of threads.
    progress : callable, optional
        Called as ``progress(done, total)``.
    executor : optional
        Anything with a `map`, to run blocks of users; default: threads on all cores. For clicks,
        a :class:`DaskExecutor` runs them on a cluster, with the same draws.
    checkpoint : path, optional
        A file to save the state of a Markov chain in, every half minute or so, and when the fit is
        interrupted. It goes on from there when it is called again in the same way, and has the
        same draws as one that was not. It needs `rng`; the file is deleted at the end.
    **options
        n_chains : int
            Number of chains: 4 for "mcmc", else 1.
        warmup : int
            Sweeps thrown away at the start of a Markov chain; default half of ``n_draws * thin``,
            at least 100 (a tenth, at least 10, for "pseudo" on clicks; with clusters a fifth, at
            least 50). Draws of "pseudo" and "balanced" are a Markov chain for partial rankings,
            clicks and clusters only.
        thin : int
            Sweeps for each draw that is kept; default 1; for partial rankings and clicks 5, or 10
            for "balanced" with one cluster (but 1 for "pseudo" on clicks).
        sigma : float
            For "pseudo": noise on the V-ranking; default 0, but n_items / 5 for clusters of clicks,
            where 0 ranks the best items of a cluster badly.
        order : str
            For "pseudo" on clicks: how a user's items are visited (section 3.3 of the paper):
            "uniform" (default), "v" or "top_bottom".
        update : str
            For "pseudo" on clicks: "sampled" (default) draws the latent rankings of all users in
            each sweep, as Algorithm 5 does; "expected" takes the mean over such draws, which is
            one pass of additions and right for a million users.
        refresh : int
            With clusters: sweeps between two draws of the users' labels and the shares; default 20
            for "pseudo" on clicks, 5 for partial rankings and clicks, else 1.
        share_prior : float
            With clusters: the Dirichlet prior of their shares; default 1, uniform.
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
            For "mcmc": gamma prior of alpha. The default, (2, 2 / n_items + 1 / 20), has a mean of
            n_items for few items and of 40 for many; "flat" is (1, 0.001), nearly flat.
        distance : str
            "footrule".
        ridge : float
            For "personal": penalty of the regression behind the scores, in units of the mean number
            of clicks of an item; default: the best of a few on inner splits, where one or two
            clicks of each user are hidden.
        nonnegative : bool
            For "personal": weights of 0 or more only; default True.
        scores : (n_users, n_items) array_like or callable
            For "personal": scores of your own, or a function that learns them from a sparse matrix
            of clicks, so that they can be learnt again without hidden clicks; for the recommenders
            of `implicit` see :func:`scores_from`. Scores that use a user's click on the item itself
            look surer than they are: give `held_out` with them.
        held_out : Clicks, data frame, dict or matrix
            For "personal": later clicks of some of the users, 50 or more, in the forms of
            :meth:`Preferences.from_clicks`. The probabilities are corrected by what came true of
            them, for windows like their number. Users and items that the fit does not have are left
            out, with a warning that counts them.
        calibrate : bool
            For "personal", without `held_out`: correct by an inner split, one monotone map of the
            probabilities for each of the windows 1, 3 and 10. The last clicks of a part of the
            users are hidden; which were the last is drawn from the law of each, so that the map is
            the identity where the law is right. Default True. An array of scores cannot be learnt
            again without the clicks that are hidden: if it was learnt from them, give False.
        with_clusters : Posterior
            For "personal": a fit of the same clicks with clusters, to blend with; how much is
            learnt along with the correction.

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
    AlphaWarning
        When nothing in the data bounds the alpha of a cluster, so that its prior decides.
    BalanceWarning
        When the balancing of the weights stopped early.

    Examples
    --------
    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
    >>> posterior = fit(prefs, alpha=3, rng=1)
    >>> posterior.point_consensus()
    array([1, 2, 3], dtype=int32)
    """
    if isinstance(prefs, Parts):
        prefs = open_parts(prefs, executor)
    check_preferences(prefs)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    started = time.perf_counter()
    seed = int(rng) if isinstance(rng, int | np.integer) else None
    alpha = None if alpha is None else check_alpha(alpha)
    generator = np.random.default_rng(rng)
    if is_remote(executor) and options.get("keep_latent"):
        raise ValueError("keep_latent does not go with a cluster: leave executor out")
    if checkpoint is not None and (rng is None or method == "personal"):
        why = "has nothing to save" if method == "personal" else "needs a seed: give rng"
        raise ValueError(f"a checkpoint of method={method!r} {why}")
    if method == "personal":
        check_local(executor, "method='personal'")
        job_progress = progress or _no_progress
        personal, found = _fit_personal(
            prefs, alpha, n_draws, n_clusters, options, generator, executor, job_progress
        )
        seconds = round(time.perf_counter() - started, 3)
        return _personal_posterior(prefs, personal, found, seed, seconds, options, generator)
    curve = None
    if n_clusters == "auto":
        check_options_of_either(prefs, method, n_draws, options)
        prior = options.get("share_prior", 1.0)
        curve = choose_clusters(
            prefs,
            alpha=alpha,
            share_prior=prior,
            rng=generator,
            executor=executor,
            progress=progress,
        )
        n_clusters = curve.chosen
        known = known_options(prefs, method, n_clusters)
        options = {name: value for name, value in options.items() if name in known}
    wanted = check_n_clusters(n_clusters, prefs)
    plan = check_options(prefs, method, n_draws, wanted, alpha is None, options)
    check_memory(plan, prefs.n_items, prefs.n_users)
    given, owners = (prefs, np.arange(prefs.n_users)) if wanted == 1 else prefs.one_row_each()
    file = None
    if checkpoint is not None:
        file = Checkpoint(checkpoint, describe_call(prefs, method, alpha, plan, generator))
    if isinstance(given, Clicks) and plan.augmentation == "metropolis":
        check_local(executor, "augmentation='metropolis'")
        if file is not None:
            raise ValueError("augmentation='metropolis' cannot be saved in a checkpoint")
        check_informative(given.is_informative)
        latent: Latent = MetropolisLatent(given, executor, plan.n_swaps)
    else:
        latent = make_latent(given, executor)
    if alpha is None and method != "mcmc" and wanted == 1:
        how = (
            "likelihood"
            if isinstance(latent, RankingLatent) and not latent.is_full
            else "similarity"
        )
        alpha = estimate_alpha(prefs, how, rng=generator, executor=executor)
        if alpha == 0:
            warnings.warn(AgreementWarning(latent.n_users), stacklevel=2)

    job = _Job(given, owners, latent, method, alpha, plan, generator, progress or _no_progress)
    draws: dict[str, Any] = job.run(file)
    settings = {
        "version": __version__,
        "method": method,
        "seed": seed,
        "alpha": alpha,
        "n_users": latent.n_users,
        "options": plan.as_settings(),
        "seconds": round(time.perf_counter() - started, 3),
    }
    if curve is not None:
        settings["curve"] = curve.as_settings()
    clicks = prefs if isinstance(prefs, Clicks) else None
    if isinstance(prefs, ShardedClicks):
        clicks, draws["chain_memberships"] = prefs.without_rows(), draws["chain_memberships"][:, :0]
    posterior = Posterior(
        **draws, items=prefs.items, users=prefs.users, settings=settings, clicks=clicks
    )
    _warn_if_doubtful(posterior, job)
    if file is not None:
        file.remove()
    return posterior


def _no_progress(done: int, total: int) -> None:
    pass


def _fit_personal(
    prefs: Preferences,
    alpha: float | None,
    n_draws: int | None,
    n_clusters: int | str,
    options: dict[str, Any],
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Progress,
) -> tuple[Personal, dict[str, Any]]:
    if not isinstance(prefs, Clicks):
        raise TypeError("method='personal' needs clicks (pm.Preferences.from_clicks)")
    if n_draws is not None or n_clusters != 1:
        raise ValueError(
            "method='personal' has neither draws nor clusters; to blend it with clusters, give "
            "with_clusters=posterior"
        )
    check_informative(prefs.is_informative)
    plan = check_personal_options(prefs, options)
    learner = Learner(prefs, alpha, plan, rng, executor or Threads())
    steps = iter(range(1, N_REPORTS + 1))
    personal = learner.learn(lambda: progress(next(steps), N_REPORTS))
    found = {
        "ridge": learner.ridge,
        "nonnegative": plan.nonnegative,
        "calibrate": plan.calibrate,
        "held_out": plan.held_out is not None,
        "given_scores": plan.scores is not None,
        "with_clusters": plan.others is not None,
        "alpha_given": alpha is not None,
    }
    return personal, found


def _personal_posterior(
    prefs: Preferences,
    personal: Personal,
    found: dict[str, Any],
    seed: int | None,
    seconds: float,
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Posterior:
    """The consensus of the draws, one only, is the population's: the ranking of the clicks."""
    assert isinstance(prefs, Clicks)
    mean_alpha = float(personal.alphas @ personal.alpha_shares)
    settings = {
        "version": __version__,
        "method": "personal",
        "seed": seed,
        "alpha": mean_alpha,
        "n_users": int(prefs.weights[prefs.is_informative].sum()),
        "options": found | {"order": None},
        "seconds": seconds,
    }
    ones = np.ones((1, 1))
    return Posterior(
        consensus=rank_randomly(-personal.popularity, rng)[None, None, None],
        alpha=np.full((1, 1, 1), mean_alpha),
        weights=ones,
        log_posterior=np.full((1, 1), np.nan),
        costs=np.zeros((1, prefs.n_items, prefs.n_items)),
        items=prefs.items,
        users=prefs.users,
        settings=settings,
        clicks=prefs,
        latent=np.empty((1, 1, 0, prefs.n_items), np.int32),
        shares=ones[None],
        chain_memberships=np.ones((1, prefs.n_users, 1), np.float32),
        leaders=np.empty((0, 0, 1, prefs.n_items), np.int32),
        personal=personal,
        clusters=options.get("with_clusters"),
    )


def check_personal_options(prefs: Clicks, options: dict[str, Any]) -> PersonalOptions:
    """Return the options of method "personal", or say which is wrong."""
    known = ("ridge", "nonnegative", "scores", "calibrate", "held_out", "with_clusters")
    strange = sorted(set(options) - set(known))
    if strange:
        raise TypeError(
            f"method='personal' has no option {strange[0]!r}; it has {', '.join(sorted(known))}"
        )
    held_out, clusters = options.get("held_out"), options.get("with_clusters")
    if held_out is not None:
        held_out = check_held_out(held_out, prefs)
    others = None
    if clusters is not None:
        if not isinstance(clusters, Posterior) or clusters.clicks is None:
            raise TypeError("with_clusters must be a posterior from a fit of clicks")
        if clusters.items.tolist() != prefs.items.tolist():
            raise ValueError("with_clusters must have the items of the fit, in its order")
        others = functools.partial(chances_of, clusters)
    ridge, calibrate = options.get("ridge"), options.get("calibrate", True)
    if not isinstance(calibrate, bool):
        raise TypeError(f"calibrate must be True or False, got {calibrate!r}")
    if clusters is not None and not calibrate:
        raise ValueError("with_clusters needs calibrate=True, to learn how to blend")
    return PersonalOptions(
        ridge=None if ridge is None else check_number(ridge, "ridge"),
        nonnegative=bool(options.get("nonnegative", True)),
        scores=options.get("scores"),
        calibrate=calibrate,
        held_out=held_out,
        others=others,
    )


@dataclass(frozen=True)
class _Place:
    """Where a fit goes on."""

    chain: int
    sweep: int
    state: State | Mixture


class _Job:
    """One fit: the same arrays, filled by one of three methods."""

    def __init__(
        self,
        prefs: Preferences,
        owners: NDArray[np.int64],
        latent: Latent,
        method: str,
        alpha: float | None,
        plan: Options,
        rng: np.random.Generator,
        progress: Progress,
    ):
        self.prefs, self.latent, self.method, self.alpha = prefs, latent, method, alpha
        # of several rows for one row of the data, the last; they have the same memberships
        self.last_rows = np.searchsorted(owners, np.arange(owners[-1] + 1), "right") - 1
        self.owners, self.kept_users = owners, self.last_rows[plan.keep_latent]
        self.plan, self.rng, self._progress = plan, rng, progress
        shape, n_clusters = (plan.n_chains, plan.n_draws), plan.n_clusters
        self.consensus = np.empty((*shape, n_clusters, latent.n_items), dtype=np.int32)
        self.alphas = np.full((*shape, n_clusters), np.nan if alpha is None else alpha)
        self.shares = np.ones((*shape, n_clusters))
        self.log_posterior = np.full(shape, np.nan)
        self.log_weights = np.zeros(shape)
        self.costs = np.zeros((n_clusters, latent.n_items, latent.n_items))
        self.latents = np.zeros((*shape, len(plan.keep_latent), latent.n_items), dtype=np.int32)
        self.memberships = np.ones((plan.n_chains, prefs.n_users, n_clusters), dtype=np.float32)
        self.leaders: list[NDArray[np.int32]] = []
        self.unbounded = np.zeros((plan.n_chains, n_clusters), dtype=np.bool_)
        self._n_done = 0
        self._latest: dict[str, Any] | None = None  # state between two sweeps, for a checkpoint

    @property
    def is_markov(self) -> bool:
        """Are the draws of a chain, or independent?"""
        return self.method == "mcmc" or not self.latent.is_full or self.plan.n_clusters > 1

    def run(self, file: Checkpoint | None = None) -> dict[str, NDArray[Any]]:
        """Fill the arrays; from where they were saved, if they were.

        However it ends before its end, the state after the last sweep is saved on the way out.
        """
        try:
            self._run_chains(file)
        except BaseException:
            if file is not None and self._latest is not None:
                file.save(self._latest)
            raise
        return self._results()

    def _run_chains(self, file: Checkpoint | None) -> None:
        resumed = None if file is None else self._resume(file)
        for chain, rng in enumerate(self.rng.spawn(self.plan.n_chains)):
            if not self.is_markov:
                self._draw_independent(chain, rng)
                continue
            if resumed is not None and chain < resumed.chain:
                continue
            if resumed is not None and chain == resumed.chain:
                state, first = resumed.state, resumed.sweep
            else:
                one = self.plan.n_clusters == 1
                state, first = self._start(rng) if one else self._start_mixture(chain, rng), 0
            self._run_chain(chain, state, first, file)
            if isinstance(state, Mixture):
                self._keep_memberships(chain, state)
            self._look_for_bounds(chain, state)

    def _results(self) -> dict[str, NDArray[Any]]:
        """The arrays of the posterior, the largest cluster first."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        order = np.argsort(-self.memberships.sum(axis=(0, 1)), kind="stable")
        self.unbounded = self.unbounded[:, order]
        memberships = self.memberships[:, self.last_rows][:, :, order]
        none = np.empty((0, 0, self.plan.n_clusters, self.latent.n_items), np.int32)
        leaders = np.stack(self.leaders) if self.leaders else none
        return {
            "consensus": self.consensus[:, :, order],
            "alpha": self.alphas[:, :, order],
            "weights": weights / weights.sum(),
            "log_posterior": self.log_posterior,
            "costs": self.costs[order] / (self.plan.n_chains * self.plan.n_draws),
            "latent": self.latents,
            "shares": self.shares[:, :, order],
            "chain_memberships": memberships,
            "leaders": leaders[:, :, order],
        }

    def _draw_independent(self, chain: int, rng: np.random.Generator) -> None:
        """Full rankings: all draws at once (Algorithm 3, or balanced)."""
        assert self.alpha is not None
        costs, options = self.latent.known_costs, self.plan.pseudo
        law = PseudoMallows.from_costs(costs, self.alpha, options.sigma, options.balanced)
        draws = law.draw_weighted(self.plan.n_draws, rng)
        self.consensus[chain, :, 0] = draws.rankings
        if options.weighted:
            self.log_weights[chain] = draws.log_weights
        self.costs += costs * self.plan.n_draws
        self._progress(chain + 1, self.plan.n_chains)

    def _start(self, rng: np.random.Generator) -> State:
        """The first state of a chain with one cluster."""
        if self.method == "mcmc":
            return Chain.start(self.latent.for_chain(), self.alpha, self.plan.chain, rng)
        assert self.alpha is not None
        return self._state(rank_randomly(self.latent.mean_ranks, rng), self.alpha, rng)

    def _state(
        self,
        consensus: Ranking,
        alpha: float,
        rng: np.random.Generator,
        latent: Latent | None = None,
    ) -> State:
        users = self.latent if latent is None else latent
        if self.method == "mcmc":
            return Chain(users, consensus, alpha, self.plan.chain, rng)
        return PseudoState(users, consensus, alpha, self.plan.pseudo, rng)

    @property
    def _is_led(self) -> bool:
        """Do exact consensuses stand behind those of the clusters?"""
        return self.method != "mcmc" and not self.plan.pseudo.weighted

    def _start_mixture(self, chain: int, rng: np.random.Generator) -> Mixture:
        """The first state of a chain with several clusters."""
        plan, latent = self.plan, self.latent
        start = prepare(latent, plan.n_clusters, self.alpha, plan.share_prior, rng, self._report)
        states = [
            self._state(first.consensus.copy(), first.alpha, child, first.latent)
            for first, child in zip(start.states, rng.spawn(plan.n_clusters), strict=True)
        ]
        mixture = self._mixture(states, start.shares, rng, start.states)
        known = self.memberships[0][self.prefs.is_informative]
        mixture.begin(known if chain > 0 else None)
        mixture.first_refresh = plan.warmup
        return mixture

    def _mixture(
        self,
        states: Sequence[State],
        shares: NDArray[np.float64],
        rng: np.random.Generator,
        leaders: Sequence[State],
    ) -> Mixture:
        how = (self.plan.refresh, self.plan.share_prior, rng)
        return Mixture(self.latent, states, shares, *how, leaders if self._is_led else None)

    def _resume(self, file: Checkpoint) -> "_Place | None":
        """Fill the arrays, and make the state, that were saved, if any."""
        saved = file.load()
        if saved is None:
            return None
        with file.refuse_damage():
            chain = saved.count("chain", 0, self.plan.n_chains - 1)
            sweep = saved.count("sweep", 1, self.plan.n_sweeps)
            self._fill(saved.part("filled"), chain, sweep)
            state = self._any_state()
            state.resume(saved.part("state"))
            if state.n_sweeps != sweep:
                saved.refuse("sweep", "must be that of the state")
            saved.check_all_used()
        preparation = PREPARATION if self.plan.n_clusters > 1 else 0
        self._n_done = chain * (self.plan.n_sweeps + preparation) + preparation + sweep
        return _Place(chain, sweep, state)

    def _any_state(self) -> State | Mixture:
        """One to be filled from a file."""
        rng, number = np.random.default_rng(0), self.plan.n_clusters  # its state comes from there
        first = np.arange(1, self.latent.n_items + 1, dtype=np.int32)
        states = [self._state(first, 1.0, rng) for _ in range(number)]
        if number == 1:
            return states[0]
        leaders = [StartState(self.latent, first, 1.0, True, rng) for _ in range(number)]
        for leader in leaders:
            leader.is_sampled = True
        mixture = self._mixture(states, np.full(number, 1 / number), rng, leaders)
        mixture.first_refresh = self.plan.warmup
        return mixture

    def _fill(self, saved: Saved, chain: int, sweep: int) -> None:
        """Take the arrays of a job from a file; what is not drawn yet is never looked at."""
        drawn = np.zeros((self.plan.n_chains, self.plan.n_draws), dtype=bool)
        drawn[:chain] = True
        drawn[chain, : max(0, sweep - self.plan.warmup) // self.plan.thin] = True
        given = {
            name: saved.array(name, mine.dtype, mine.shape) for name, mine in self._filled().items()
        }
        saved.check_rankings("consensus", given["consensus"][drawn])
        saved.check_range("alphas", given["alphas"][drawn], 0, MAX_ALPHA)
        saved.check_range("costs", given["costs"], 0, 2.0**63)
        if np.isinf(given["log_posterior"][drawn]).any():
            saved.refuse("log_posterior", "must be finite")
        self.consensus, self.alphas, self.costs, self.log_posterior, self.unbounded = (
            given[name] for name in ("consensus", "alphas", "costs", "log_posterior", "unbounded")
        )
        if "latents" in given:
            saved.check_rankings("latents", given["latents"][drawn])
            self.latents = given["latents"]
        if "memberships" in given:
            saved.check_shares("shares", given["shares"][drawn])
            saved.check_shares("memberships", given["memberships"][:chain])
            self.shares, self.memberships = given["shares"], given["memberships"]
            if self._is_led:
                shape = (chain, N_LEADERS, *self.consensus.shape[2:])
                self.leaders = list(saved.rankings("leaders", shape))

    def _filled(self) -> dict[str, NDArray[Any]]:
        """The arrays that chains fill, and that are as long from the start."""
        filled: dict[str, NDArray[Any]] = {
            "consensus": self.consensus,
            "alphas": self.alphas,
            "log_posterior": self.log_posterior,
            "costs": self.costs,
            "unbounded": self.unbounded,
        }
        if len(self.kept_users):
            filled["latents"] = self.latents
        if self.plan.n_clusters > 1:
            filled |= {"shares": self.shares, "memberships": self.memberships}
        return filled

    def _to_save(self, chain: int, sweep: int, state: State | Mixture) -> dict[str, Any]:
        """What a checkpoint keeps; of the arrays, only what is not drawn yet will change."""
        filled = self._filled()
        if isinstance(state, Mixture) and self._is_led:
            shape = (chain, N_LEADERS, *self.consensus.shape[2:])
            filled["leaders"] = np.array(self.leaders, np.int32).reshape(shape)
        return {"chain": chain, "sweep": sweep, "filled": filled, "state": state.to_save()}

    def _run_chain(
        self, chain: int, state: State | Mixture, first: int, file: Checkpoint | None
    ) -> None:
        """Sweeps of a Markov chain, and the draws that are kept."""
        for sweep in range(first, self.plan.n_sweeps):
            state.sweep(adapt=sweep < self.plan.warmup)
            draw = self._kept(sweep)
            if draw is not None:
                self.consensus[chain, draw] = state.consensus
                self.alphas[chain, draw] = state.alpha
                self.log_posterior[chain, draw] = state.log_posterior()
                costs = 0 if state.costs is None else state.costs
                self.costs = self.costs + costs  # not in place: a checkpoint may hold it
                if isinstance(state, Mixture):
                    self.shares[chain, draw] = state.shares
                if len(self.kept_users):
                    self.latents[chain, draw] = state.latent_of(self.kept_users)
            self._report()
            if file is not None:
                self._latest = self._to_save(chain, sweep + 1, state)
                file.save_if_due(self._latest)

    def _keep_memberships(self, chain: int, mixture: Mixture) -> None:
        """Those of users who say nothing are the shares."""
        self.memberships[chain] = self.shares[chain].mean(axis=0)
        self.memberships[chain, self.prefs.is_informative] = mixture.mean_memberships
        if mixture.is_led:
            self.leaders.append(mixture.some_leaders(N_LEADERS))

    def _look_for_bounds(self, chain: int, state: State | Mixture) -> None:
        """Note the clusters whose alpha, unless it was given, nothing in the data bounds."""
        if self.alpha is None and self.plan.augmentation == "exact":
            states = state.states if isinstance(state, Mixture) else [state]
            filled = state.has_users if isinstance(state, Mixture) else [True]
            for place, (mine, has_users) in enumerate(zip(states, filled, strict=True)):
                self.unbounded[chain, place] = not has_users or is_unbounded(mine)

    def _kept(self, sweep: int) -> int | None:
        """The number of the draw that a sweep ends with, if it is kept."""
        done, rest = divmod(sweep + 1 - self.plan.warmup, self.plan.thin)
        return done - 1 if rest == 0 and done > 0 else None

    def _report(self) -> None:
        self._n_done += 1
        length = self.plan.n_sweeps + (PREPARATION if self.plan.n_clusters > 1 else 0)
        self._progress(self._n_done, self.plan.n_chains * length)


def _warn_if_doubtful(posterior: Posterior, job: _Job) -> None:
    if (
        job.plan.pseudo.weighted
        and not job.is_markov
        and posterior.effective_size < min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 2)
    ):
        warning = EffectiveSizeWarning(posterior.effective_size, posterior.weights.size)
        warnings.warn(warning, stacklevel=3)
    if not job.is_markov:
        return
    unbounded = np.flatnonzero(job.unbounded.mean(axis=0) >= 0.5).tolist()
    if unbounded:
        medians = np.median(posterior.alpha, axis=(0, 1))[unbounded].tolist()
        warnings.warn(AlphaWarning(unbounded, medians, posterior.n_clusters), stacklevel=3)
    found = [posterior.diagnostics(cluster) for cluster in range(posterior.n_clusters)]
    worst = max(diagnostics.worst_rhat for diagnostics in found)
    least = min(diagnostics.least_effective_size for diagnostics in found)
    stuck: list[int] = []
    if job.method == "mcmc" and job.plan.augmentation == "exact" and job.plan.n_clusters == 1:
        options = ChainOptions(**(vars(job.plan.chain) | {"start": "map"}))
        best = best_log_posterior(job.latent, job.alpha, options)
        stuck = stuck_chains(posterior.log_posterior, best, posterior.n_items)
    if job.plan.pseudo.update == "expected":  # without the noise of draws it may never move
        moved = posterior.consensus != posterior.consensus[:, :1]
        stuck = np.flatnonzero(~moved.any(axis=(1, 2, 3))).tolist() if job.plan.n_draws > 1 else []
    size_limit = min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 4)
    if stuck or not (worst <= RHAT_LIMIT and least >= size_limit):
        slow = job.method == "pseudo" and posterior.clicks is not None
        advice = SLOW_ADVICE if slow else CLUSTER_ADVICE if posterior.n_clusters > 1 else ADVICE
        warnings.warn(ConvergenceWarning(worst, least, stuck, advice), stacklevel=3)
