"""The chains of a fit: they fill the arrays of a posterior, from the start or from a checkpoint."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions.scores import weighted_effective_size
from ..engines.executors import StoppedError, Threads, run_together
from ..engines.progress import Progress
from ..files.saved import Saved
from ..latent.population import Population
from ..preferences import Preferences
from ..rankings import MAX_ALPHA
from .chains.clustered import Chain, Earlier
from .chains.make_chains import make_chains
from .chains.matched_starts import N_STARTS, Comparison
from .checkpoint import Checkpoint
from .methods.method import Plan

N_CHECKS = 3  # draws of each chain on which the matched law is compared with the exact one
ROOM = 2**26  # bytes, 64 MB, of a chain that may run beside others: some of them fit anywhere


@dataclass(frozen=True)
class _Place:
    """Where a fit goes on."""

    chain: int
    sweep: int
    mixture: Chain


def _reordered(consensus: NDArray[np.int32], order: NDArray[np.int64]) -> NDArray[np.int32]:
    """The draws with their clusters in this order; in place, since there may be room for one
    only."""
    if (np.diff(order) < 0).any():
        for draw in consensus.reshape(-1, *consensus.shape[2:]):
            draw[:] = draw[order]
    return consensus


class Run:
    """One fit: arrays, filled by the chains of a plan."""

    def __init__(
        self,
        prefs: Preferences,
        owners: NDArray[np.int64],  # the row of the data behind each row of `prefs`
        population: Population,
        plan: Plan,
        rng: np.random.Generator,
        progress: Progress,
    ):
        self.prefs, self.population, self.plan = prefs, population, plan
        # of several rows for one row of the data, the last; they have the same memberships
        self.last_rows = np.searchsorted(owners, np.arange(owners[-1] + 1), "right") - 1
        self.kept_users = self.last_rows[plan.kept_rows]
        self.rng, self._progress = rng, progress
        n_chains, n_clusters = plan.method.n_chains, plan.case.n_clusters
        shape, alpha = (n_chains, plan.n_draws), plan.alpha
        self.consensus = np.empty((*shape, n_clusters, population.n_items), dtype=np.int32)
        self.alphas = np.full((*shape, n_clusters), np.nan if alpha is None else alpha)
        self.shares = np.ones((*shape, n_clusters))
        self.log_posterior = np.full(shape, np.nan)
        self.log_weights = np.zeros(shape)
        self.latents = np.zeros((*shape, len(plan.kept_rows), population.n_items), dtype=np.int32)
        self.memberships = np.ones((n_chains, prefs.n_users, n_clusters), dtype=np.float32)
        n_values = len(population.error_values)
        self.errors = np.zeros((*shape, n_values) if n_values else (0, 0, 0))
        self.unbounded = np.zeros((n_chains, n_clusters), dtype=np.bool_)
        self.differences = np.full((n_chains, N_CHECKS), np.nan)
        self._warmup, self._thin = plan.warmup, plan.thin
        self._comparison = np.full(len(Comparison._fields), np.nan)
        *self._rngs, shared = rng.spawn(n_chains + 1)
        self._chains = make_chains(population, plan, shared)
        self.evidence = np.zeros((n_clusters, *self._chains.evidence_shape))  # sums over the draws
        self._n_done = self._n_before = 0  # steps that are done, and those of earlier rounds
        self._latest: dict[str, Any] | None = None  # state between two sweeps, for a checkpoint
        self._ends: list[Chain | None] = [None] * n_chains  # where they stand, if they may go on
        self._lock = threading.Lock()  # of what chains side by side have in common
        self._has_others, self._is_well = False, True  # are there any, and shall they go on?
        self.thinning = 1  # how much further apart the draws are than was planned

    @property
    def _has_clusters(self) -> bool:
        return self.plan.case.has_clusters

    def run(self, file: Checkpoint | None = None) -> dict[str, NDArray[Any]]:
        """Fill the arrays; from where they were saved, if they were.

        However it ends before its end, the state after the last sweep is saved on the way out.
        """
        resumed = None if file is None else self._resume(file)
        if resumed is None:
            self._chains.make_ready(self._report)
        if file is None and self._is_together:
            self._run_together(lambda chain: self._start(chain, self._rngs[chain]))
            return self._results()
        try:
            for chain, rng in enumerate(self._rngs):
                if not self.plan.is_markov:
                    self._draw_independent(chain, rng)
                elif resumed is None or chain > resumed.chain:
                    self._run_chain(chain, self._start(chain, rng), 0, file)
                elif chain == resumed.chain:
                    self._run_chain(chain, resumed.mixture, resumed.sweep, file)
        except BaseException:
            if file is not None and self._latest is not None:
                file.save(self._latest)
            raise
        return self._results()

    def go_on(self, factor: int) -> dict[str, NDArray[Any]]:
        """All draws anew, so many times further apart; the chains go on from where they stand, so
        that what was drawn before is a warmup."""
        self._n_before += self.plan.method.n_chains * self._n_sweeps
        self.thinning, self._thin, self._warmup = self.thinning * factor, self._thin * factor, 0
        self.evidence = np.zeros_like(self.evidence)
        ends = [mixture for mixture in self._ends if mixture is not None]
        if self._is_together:
            self._run_together(lambda chain: ends[chain])
            return self._results()
        for chain, mixture in enumerate(ends):
            self._run_chain(chain, mixture, 0, None)
        return self._results()

    @property
    def _is_together(self) -> bool:
        """Do the chains run side by side? They do if they know nothing of each other, and there are
        cores and room for them."""
        executor = self.population.executor
        if not self.plan.is_matched or not isinstance(executor, Threads) or executor.n_threads == 1:
            return False
        of_users = 3 * 8 * self.population.n_rows * self.plan.case.n_clusters
        return of_users + 2 * self.evidence.nbytes <= ROOM

    def _run_together(self, start: Callable[[int], Chain]) -> None:
        """All chains, each on one thread; progress is told by this one."""
        n_chains, executor = self.plan.method.n_chains, self.population.executor
        assert isinstance(executor, Threads)
        n_seen = self._n_done

        def watch(is_well: bool) -> None:
            nonlocal n_seen
            self._is_well = is_well
            while is_well and n_seen < self._n_done:
                n_seen += 1
                self._progress(n_seen, self._total)

        def run_one(chain: int) -> None:
            self._run_chain(chain, start(chain), 0, None)

        self._has_others = True
        run_together(run_one, n_chains, executor.n_threads, watch)
        self._has_others = False

    @property
    def _n_sweeps(self) -> int:
        return self._warmup + self.plan.n_draws * self._thin

    def _results(self) -> dict[str, NDArray[Any]]:
        """The arrays of the posterior, the largest cluster first."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        order = np.argsort(-self.memberships.sum(axis=(0, 1)), kind="stable")
        self.unbounded = self.unbounded[:, order]
        memberships = self.memberships[:, self.last_rows][:, :, order]
        best = self._best()[order]  # before the draws take that order
        return {
            "consensus": _reordered(self.consensus, order),
            "alpha": np.ascontiguousarray(self.alphas[:, :, order]),
            "weights": weights / weights.sum(),
            "log_posterior": self.log_posterior,
            "best": best,
            "latent": self.latents,
            "shares": np.ascontiguousarray(self.shares[:, :, order]),
            "chain_memberships": memberships,
            "errors": self.errors,
        }

    def _best(self) -> NDArray[np.int32]:
        """``best[cluster, item]``, by what the users said in all draws."""
        is_alone = self.population.is_full and not self._has_clusters
        if not self.evidence.size and not is_alone:
            clusters = range(self.plan.case.n_clusters)
            return np.stack([most_frequent(self.consensus[:, :, each]) for each in clusters])
        means = self.evidence / self.log_posterior.size
        pairs = zip(means, self.consensus[0, -1], strict=True)
        return np.stack([self._chains.best_of(mean, draw) for mean, draw in pairs])

    @property
    def is_best_proved(self) -> bool:
        """Is `best` sure to be the most likely consensus?"""
        is_alone = self.population.is_full and not self._has_clusters
        return is_alone and self.population.known.is_proved

    def checks(self) -> dict[str, Any]:
        """For the settings of a posterior: how far the matched law is from the exact one, if it
        stands for it; how the best start of clusters differs from the next."""
        checks: dict[str, Any] = self.population.notes()
        found = self.differences[np.isfinite(self.differences)]
        if len(found):
            share = weighted_effective_size(np.exp(found - found.max())) / len(found)
            checks["matched"] = {"differences": found.tolist(), "effective_share": share}
        if np.isfinite(self._comparison).all():
            compared = Comparison(*self._comparison.tolist())._asdict()
            checks["starts"] = {"n_starts": N_STARTS} | compared
        return checks

    def _draw_independent(self, chain: int, rng: np.random.Generator) -> None:
        """Full rankings: all draws at once (Algorithm 3, or balanced)."""
        rankings, log_weights = self.plan.method.draw_all(self.population, self.plan, rng)
        self.consensus[chain, :, 0], self.log_weights[chain] = rankings, log_weights
        self.evidence += self.population.known.evidence * self.plan.n_draws
        self._progress(chain + 1, self.plan.method.n_chains)

    def _start(self, chain: int, rng: np.random.Generator) -> Chain:
        """The first state of a chain."""
        earlier = None
        if chain > 0 and self._has_clusters:
            memberships = self.memberships[0][self.prefs.is_informative]
            earlier = Earlier(memberships, self.consensus[0, -1], self.alphas[0, -1])
        started = self._chains.start(chain, earlier, rng, self._report)
        if self._chains.comparison is not None:
            self._comparison = np.array(self._chains.comparison)
        return started

    def _resume(self, file: Checkpoint) -> _Place | None:
        """Take up what was saved."""
        saved = file.load()
        if saved is None:
            return None
        with file.refuse_damage():
            n_chains, n_sweeps = self.plan.method.n_chains, self.plan.n_sweeps
            chain, sweep = saved.count("chain", 0, n_chains - 1), saved.count("sweep", 1, n_sweeps)
            self._fill(saved.part("filled"), chain, sweep)
            mixture = self._chains.empty()
            mixture.resume(saved.part("state"))
            if mixture.n_sweeps != sweep:
                saved.refuse("sweep", "must be that of the state")
            saved.check_all_used()
        preparation = self._chains.preparation
        self._n_done = chain * (self.plan.n_sweeps + preparation) + preparation + sweep
        self._n_done += self._chains.guesses
        return _Place(chain, sweep, mixture)

    def _fill(self, saved: Saved, chain: int, sweep: int) -> None:
        """Take the arrays from a file; what is not drawn yet is never looked at."""
        drawn = np.zeros((self.plan.method.n_chains, self.plan.n_draws), dtype=bool)
        drawn[:chain] = True
        drawn[chain, : max(0, sweep - self._warmup) // self._thin] = True
        given = {
            name: saved.array(name, mine.dtype, mine.shape) for name, mine in self._filled().items()
        }
        saved.check_rankings("consensus", given["consensus"][drawn])
        saved.check_range("alphas", given["alphas"][drawn], 0, MAX_ALPHA)
        saved.check_range("evidence", given["evidence"], 0, 2.0**63)
        if np.isinf(given["log_posterior"][drawn]).any():
            saved.refuse("log_posterior", "must be finite")
        self.consensus, self.alphas, self.evidence = (
            given[name] for name in ("consensus", "alphas", "evidence")
        )
        self.log_posterior, self.unbounded = given["log_posterior"], given["unbounded"]
        self.differences = given.get("differences", self.differences)
        if "latents" in given:
            saved.check_rankings("latents", given["latents"][drawn])
            self.latents = given["latents"]
        if "memberships" in given:
            saved.check_shares("shares", given["shares"][drawn])
            saved.check_shares("memberships", given["memberships"][:chain])
            self.shares, self.memberships = given["shares"], given["memberships"]
            self._comparison = given["comparison"]

    def _filled(self) -> dict[str, NDArray[Any]]:
        """The arrays that chains fill, and that are as long from the start."""
        filled: dict[str, NDArray[Any]] = {
            "consensus": self.consensus,
            "alphas": self.alphas,
            "log_posterior": self.log_posterior,
            "evidence": self.evidence,
            "unbounded": self.unbounded,
        }
        if len(self.kept_users):
            filled["latents"] = self.latents
        if self.plan.method.is_checked:
            filled["differences"] = self.differences
        if self._has_clusters:
            filled |= {"shares": self.shares, "memberships": self.memberships}
            filled["comparison"] = self._comparison
        return filled

    def _to_save(self, chain: int, sweep: int, mixture: Chain) -> dict[str, Any]:
        """What a checkpoint keeps; of the arrays, only what is not drawn yet will change."""
        kept = {"chain": chain, "sweep": sweep}
        return kept | {"filled": self._filled(), "state": mixture.to_save()}

    def _run_chain(self, chain: int, mixture: Chain, first: int, file: Checkpoint | None) -> None:
        """Sweeps of a Markov chain, and the draws that are kept."""
        for sweep in range(first, self._n_sweeps):
            mixture.sweep(adapt=sweep < self._warmup)
            done, left = divmod(sweep + 1 - self._warmup, self._thin)
            if done > 0 and left == 0:
                self._keep_draw(chain, done - 1, mixture)
            self._report()
            if file is not None:
                self._latest = self._to_save(chain, sweep + 1, mixture)
                file.save_if_due(self._latest)
        if self._has_clusters:
            self._keep_memberships(chain, mixture)
        self._look_for_bounds(chain, mixture)
        if self.plan.goes_on:
            mixture.forget()
            self._ends[chain] = mixture

    def _keep_draw(self, chain: int, draw: int, mixture: Chain) -> None:
        self.consensus[chain, draw] = mixture.consensus
        self.alphas[chain, draw] = mixture.alpha
        self.log_posterior[chain, draw] = mixture.log_posterior()
        evidence = mixture.evidence
        with self._lock:
            if self._latest is not None:  # which a checkpoint may hold
                self.evidence = self.evidence.copy()
            self.evidence += evidence
        self.shares[chain, draw] = mixture.shares
        if self.errors.size:
            self.errors[chain, draw] = mixture.errors
        if len(self.kept_users):
            self.latents[chain, draw] = mixture.latent_of(self.kept_users)
        check, left = divmod(draw + 1, max(1, self.plan.n_draws // N_CHECKS))
        if self.plan.method.is_checked and left == 0 and check <= N_CHECKS:
            difference = mixture.difference()
            with self._lock:
                self.differences = self.differences.copy()  # a checkpoint may hold the old one
                self.differences[chain, check - 1] = difference

    def _keep_memberships(self, chain: int, mixture: Chain) -> None:
        """Those of users who say nothing are the shares."""
        self.memberships[chain] = self.shares[chain].mean(axis=0)
        self.memberships[chain, self.prefs.is_informative] = mixture.mean_memberships

    def _look_for_bounds(self, chain: int, mixture: Chain) -> None:
        """Note the clusters whose alpha, unless it was given, nothing in the data bounds."""
        if self.plan.alpha is None and self.population.sums_out:
            self.unbounded[chain] = self._chains.unbounded(mixture)

    @property
    def _total(self) -> int:
        """Steps of the whole fit."""
        n_chains = self.plan.method.n_chains
        total = n_chains * (self._n_sweeps + self._chains.preparation) + self._chains.guesses
        return total + self._n_before

    def _report(self) -> None:
        """One step is done."""
        with self._lock:
            self._n_done += 1
        if not self._has_others:
            self._progress(self._n_done, self._total)
        elif not self._is_well:
            raise StoppedError


def most_frequent(draws: NDArray[np.int32]) -> NDArray[np.int32]:
    """The ranking that comes up most often among ``draws[..., item]``.

    >>> most_frequent(np.array([[[1, 2], [2, 1], [2, 1]]], dtype=np.int32))
    array([2, 1], dtype=int32)
    """
    rankings, counts = np.unique(draws.reshape(-1, draws.shape[-1]), axis=0, return_counts=True)
    return np.asarray(rankings[counts.argmax()])
