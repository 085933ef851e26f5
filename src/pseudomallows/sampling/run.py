"""The chains of a fit: they fill the arrays of a posterior, from the start or from a checkpoint."""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.preferences import Preferences
from ..distances.tallies import Counts, Ranking
from ..engines.executors import StoppedError, Threads, run_together
from ..engines.progress import Progress
from ..laws.law import Clusters, ClusterTally, Law, order_like
from ..scores import weighted_effective_size
from .chain import Chain, Moves, State, fresh_steps, new_state
from .checkpoint import Checkpoint, Saved
from .options import TEMPERED_DRAWS, Options
from .start import Comparison, best_place, n_steps, start_clusters, start_one, unbounded
from .temper import Ladder, TemperedChain, log_evidence, make_ladder

KEEP_EVERY = 5  # draws for one whose exact memberships are kept, which take as long as several
# Draws of each chain on which the additive law is compared with the exact one, each a pass over all
# users: 12 of 4 chains tell the spread to a fifth. To fit a hundred million clicks took 295 s
# with 12, reading included, and 224 s with 8 (docs/measurements.md, Scale).
N_CHECKS = 3
OF_DRAWS = {"consensus", "alpha", "shares", "log_posterior", "latent", "errors"}  # [chain, draw]
ROOM = 2**26  # bytes, 64 MB, of a chain that may run beside others: some of them fit anywhere


class Run:
    """One fit: arrays, filled by its chains."""

    def __init__(
        self,
        law: Law,
        prefs: Preferences,  # whose informative rows are those of the law
        owners: Counts,  # the row of the data behind each row of `prefs`
        options: Options,
        rng: np.random.Generator,
        progress: Progress,
    ):
        self.law, self.prefs, self.options = law, prefs, options
        self.n_clusters, self.alpha = options.case.n_clusters, options.alpha
        self.moves = Moves(
            options.move,
            int(options.leap or 1),
            options.n_moves,
            options.alpha_prior if options.alpha is None else None,
            options.share_prior,
            # with clusters, the additive law alone would let an alpha run away with its labels
            is_corrected=options.method == "mcmc" or self.n_clusters > 1,
        )
        self.n_chains, self.n_draws = options.n_chains, options.n_draws
        self._warmup, self._thin = int(options.warmup or 0), int(options.thin or 1)
        if options.temperatures is not None and law.has_latent:
            raise ValueError(
                "temperatures: chains that keep latent rankings have no replicas: leave it out"
            )
        # are some draws of the additive law compared with the exact one?
        self._is_checked = not (self.moves.is_corrected or law.is_exact)
        # of several rows for one row of the data, the last; they have the same memberships
        self.last_rows = np.searchsorted(owners, np.arange(owners[-1] + 1), "right") - 1
        # of whom the chains keep latent rankings; where these can be drawn, they are after the fit
        self.kept_users = self.last_rows[options.kept_rows if law.has_latent else []]
        self.rng, self._progress = rng, progress
        self._make_arrays()
        *self._rngs, self._shared = rng.spawn(self.n_chains + 1)
        self._start: State | None = None
        self.comparison: Comparison | None = None
        self._reference: NDArray[np.float32] | None = None
        self.ladder: Ladder | None = None
        if options.temperatures is not None:
            self._temper(options.temperatures)
        self._n_done = self._n_before = 0  # steps that are done, and those of earlier rounds
        self._chains: list[Chain | None] = [None] * self.n_chains
        self._latest: Saved | None = None  # after the last sweep, for a checkpoint
        self._lock = threading.Lock()  # of what chains side by side have in common
        self._has_others, self._is_well = False, True  # are there any, and shall they go on?
        self.thinning = 1  # how much further apart the draws are than was planned

    def _make_arrays(self) -> None:
        """Room for all that the chains leave."""
        law, alpha, n_clusters = self.law, self.alpha, self.n_clusters
        shape = (self.n_chains, self.n_draws)
        n_values = len(law.errors.first_values()) if hasattr(law, "errors") else 0
        self.arrays: dict[str, NDArray[Any]] = {
            "consensus": np.zeros((*shape, n_clusters, law.n_items), dtype=np.int32),
            "alpha": np.full((*shape, n_clusters), np.nan if alpha is None else alpha),
            "shares": np.ones((*shape, n_clusters)),
            "log_posterior": np.full(shape, np.nan),
            "latent": np.zeros((*shape, len(self.kept_users), law.n_items), dtype=np.int32),
            "memberships": np.zeros((shape[0], law.n_rows, n_clusters), dtype=np.float32),
            "errors": np.zeros((*shape, n_values)),
            "unbounded": np.zeros((shape[0], n_clusters), dtype=np.bool_),
            "differences": np.full((shape[0], N_CHECKS), np.nan),
            "evidence": np.zeros((shape[0], n_clusters, *law.evidence_shape)),  # sums over draws
        }

    @property
    def how_latent(self) -> str:
        """What becomes of what is not known, for the report."""
        return self.law.how_latent

    @property
    def can_temper(self) -> bool:
        """Can the chains have replicas, and have none yet?"""
        is_simple = self.n_clusters == 1 and not self.law.has_latent and self.law.n_moves is None
        is_votes = hasattr(self.law, "has_free_gaps") and self.law.has_free_gaps
        return (
            is_simple and not is_votes and self.ladder is None and self.options.goes_on_from is None
        )

    # Running

    def run(self, file: Checkpoint | None = None) -> None:
        """Fill the arrays; from where they were saved, if they were.

        However it ends before its end, the state after the last sweep is saved on the way out.
        """
        self._prepare()
        if file is None:
            self._run_all(self._begin)
            return
        saved = self._load(file)
        first, chain, sweep = saved or (0, None, 0)
        try:
            for number in range(first, self.n_chains):
                begun = chain if number == first and chain is not None else self._begin(number)
                self._run_chain(number, begun, sweep if number == first else 0, file)
        except BaseException:
            if self._latest is not None:
                file.save(self._latest, at_once=True)
            raise

    def go_on(self, factor: int, keeps: bool) -> None:
        """Draws so many times further apart. Of chains that agree (`keeps`), the draws that there
        are stay, one of so many; else they were a warmup, and all are drawn anew."""
        n_kept = self.n_draws // factor if keeps else 0
        for name in OF_DRAWS:
            draws = self.arrays[name]
            draws[:, :n_kept] = draws[:, factor - 1 :: factor][:, :n_kept]
        self._n_before += self.n_chains * (self._n_sweeps - n_kept * factor * self._thin)
        self.thinning, self._thin, self._warmup = self.thinning * factor, self._thin * factor, 0
        self._run_all(self._chain_of, n_kept * self._thin)

    def temper(self) -> None:
        """All draws anew, by chains with replicas on flatter posteriors."""
        self._n_before += self.n_chains * self._n_sweeps
        self._temper(None)
        self.n_draws *= TEMPERED_DRAWS
        self._make_arrays()
        self._warmup = int(self.options.warmup or 0)
        states = [self._chain_of(number).state for number in range(self.n_chains)]
        self._run_all(
            lambda number: self._new_chain(states[number], self._rngs[number].spawn(1)[0])
        )

    def _temper(self, number: int | None) -> None:
        rng = self._shared.spawn(1)[0]
        self.ladder = make_ladder(self.law, self.alpha, self.moves, number, rng)

    def _run_all(self, begin: Callable[[int], Chain], first: int = 0) -> None:
        """The sweeps of all chains, from the `first` on: side by side, each on one thread, if there
        are cores and room for them; then this thread reports."""
        executor, n_reported = self.law.executor, self._n_done
        n_latent = self.law.n_items if self.law.has_latent else 0
        n_bytes = self.law.n_rows * (24 * self.n_clusters + 8 * n_latent)

        def run_one(number: int) -> None:
            self._run_chain(number, begin(number), first, None)

        def watch(is_well: bool) -> None:
            nonlocal n_reported
            self._is_well = is_well
            while is_well and n_reported < self._n_done:
                n_reported += 1
                self._progress(n_reported, self._total)

        has_cores = isinstance(executor, Threads) and executor.n_threads > 1
        self._has_others = has_cores and self.n_chains > 1 and n_bytes <= ROOM
        if self._has_others:
            assert isinstance(executor, Threads)
            run_together(run_one, self.n_chains, executor.n_threads, watch)
            self._has_others = False
            return
        for number in range(self.n_chains):
            run_one(number)

    def _chain_of(self, number: int) -> Chain:
        chain = self._chains[number]
        assert chain is not None
        return chain

    @property
    def _n_sweeps(self) -> int:
        return self._warmup + self.n_draws * self._thin

    @property
    def _total(self) -> int:
        """Steps of the whole fit."""
        sweeps = self.n_chains * self._n_sweeps
        return (
            sweeps + self._n_before + n_steps(0 if self.options.goes_on_from else self.n_clusters)
        )

    def _report(self) -> None:
        """One step is done."""
        with self._lock:
            self._n_done += 1
        if not self._has_others:
            self._progress(self._n_done, self._total)
        elif not self._is_well:
            raise StoppedError

    # Starts

    def _prepare(self) -> None:
        """What all chains share: the best start of clusters, and where the laws agree."""
        law = self.law
        if self.options.goes_on_from is not None:
            first = self._go_on_from(0)
        elif self.n_clusters > 1:
            first, self.comparison = start_clusters(
                law, self.n_clusters, self.alpha, self.moves, self._shared, self._report
            )
            while self._n_done < n_steps(self.n_clusters):  # there may have been fewer
                self._report()
        elif law.is_exact:
            return
        else:
            first = start_one(law, self.alpha, self.moves, "map", self._shared)
        law.anchor(first.clusters, first.labels_or_none)
        self._start = first
        if self.n_clusters > 1:
            where = (first.clusters, first.weights, False)
            self._reference = self._given(first).memberships(*where)[0]

    def _given(self, state: State) -> Law:
        law: Any = self.law
        return law.given(state.latent) if law.has_latent else law

    def _go_on_from(self, number: int) -> State:
        old = self.options.goes_on_from
        assert old is not None
        clusters, weights = (
            Clusters(old.consensus[number, -1], old.alpha[number, -1]),
            old.shares[number, -1],
        )
        labels = None if self.n_clusters == 1 else self.law.nearest(clusters, weights)
        return new_state(self.law, clusters, weights, labels, self.moves)

    def _begin(self, number: int) -> Chain:
        """The chain of this number at its start."""
        rng = self._rngs[number]
        if self.options.goes_on_from is not None:
            state = self._go_on_from(number)
        elif self.n_clusters > 1:
            assert self._start is not None
            state = fresh_steps(self._start, self.law, self.moves)
        else:
            where = self.options.start
            if where == "dispersed":
                where = "elsewhere" if number % 2 else "map"
            state = start_one(self.law, self.alpha, self.moves, where, rng)
        return self._new_chain(state, rng)

    def _new_chain(self, state: State, rng: np.random.Generator) -> Chain:
        if self.ladder is not None:
            return TemperedChain(self.law, state, self.moves, rng, self.ladder)
        return Chain(self.law, state, self.moves, rng)

    # One chain

    def _run_chain(self, number: int, chain: Chain, first: int, file: Checkpoint | None) -> None:
        """Sweeps of a chain, and the draws that are kept."""
        self._chains[number] = chain
        if first <= self._warmup:
            self.arrays["memberships"][number] = 0.0
            self.arrays["evidence"][number] = 0.0
        for sweep in range(first, self._n_sweeps):
            done, left = divmod(sweep + 1 - self._warmup, self._thin)
            is_draw = done > 0 and left == 0
            chain.sweep(adapt=sweep < self._warmup, weighs=is_draw)
            if is_draw:
                self.keep_draw(number, done - 1, chain)
            self._report()
            if file is not None:
                self._latest = self._to_save(number, sweep + 1, chain)
                file.save(self._latest, at_once=False)
        if self.alpha is None and (self.n_clusters > 1 or number == 0):
            self.arrays["unbounded"][number] = unbounded(chain)

    def keep_draw(self, number: int, draw: int, chain: Chain) -> None:
        state, arrays, place = chain.state, self.arrays, (number, draw)
        if self.n_clusters == 1:
            order, log_likelihood = np.zeros(1, dtype=np.int64), float(chain.exact[0])
        else:
            sums = arrays["memberships"][number]
            assert self._reference is not None
            order = order_like(self._reference + sums, state.labels)
            log_likelihood = np.nan
            if not chain.corrects or draw % KEEP_EVERY == 0:
                memberships, log_likelihood = chain.memberships
                sums += memberships[:, order]
        arrays["consensus"][place] = state.consensus[order]
        arrays["alpha"][place], arrays["shares"][place] = state.alpha[order], state.weights[order]
        arrays["log_posterior"][place] = log_likelihood + chain.log_prior()
        evidence = np.stack(
            [t.evidence(a) for t, a in zip(chain.tallies, state.alpha.tolist(), strict=True)]
        )[order]
        arrays["evidence"][number] += evidence
        if arrays["errors"].size:
            arrays["errors"][place] = state.errors
        if len(self.kept_users):
            arrays["latent"][place] = self._latent_of(chain)
        check, left = divmod(draw + 1, max(1, self.n_draws // N_CHECKS))
        if self._is_checked and left == 0 and check <= N_CHECKS:
            exact = float(chain.law.weigh(state.clusters, None)[0])
            arrays["differences"][number, check - 1] = exact - log_likelihood

    def _latent_of(self, chain: Chain) -> Ranking:
        """The latent rankings of the chain, of the users that are kept."""
        state, law = chain.state, chain.law
        augmented: Any = law
        rng = np.random.default_rng((chain.seed, chain.n_sweeps))  # the chain goes its way
        where = (state.labels_or_none, state.latent, state.clusters, rng)
        return np.asarray(augmented.latent_of(self.kept_users, *where))

    # Results

    def results(self) -> dict[str, NDArray[Any]]:
        """The arrays of the posterior, the largest cluster first."""
        arrays = self.arrays
        memberships = self._all_memberships()
        order = np.argsort(-memberships.sum(axis=(0, 1), dtype=np.float64), kind="stable")
        best = self._best()[order]  # before the draws take that order
        consensus = arrays["consensus"]
        if (np.diff(order) < 0).any():  # in place, since there may be room for one only
            for draw in consensus.reshape(-1, *consensus.shape[2:]):
                draw[:] = draw[order]
        self.unbounded = arrays["unbounded"][:, order]
        if self.n_clusters == 1:  # asked of the first chain: all would say the same
            self.unbounded = self.unbounded[:1]
        errors = arrays["errors"]
        return {
            "consensus": consensus,
            "alpha": np.ascontiguousarray(arrays["alpha"][:, :, order]),
            "weights": np.full(arrays["log_posterior"].shape, 1 / arrays["log_posterior"].size),
            "log_posterior": arrays["log_posterior"],
            "best": best,
            "latent": arrays["latent"],
            "shares": np.ascontiguousarray(arrays["shares"][:, :, order]),
            "chain_memberships": memberships[:, self.last_rows][:, :, order],
            "errors": errors if errors.shape[2] else np.zeros((0, 0, 0)),
        }

    def _all_memberships(self) -> NDArray[np.float32]:
        """``[chain, row, cluster]``; those of uninformative rows are the weights."""
        shape = (self.n_chains, self.prefs.n_users, self.n_clusters)
        memberships = np.ones(shape, dtype=np.float32)
        if self.n_clusters > 1:
            sums = self.arrays["memberships"]
            memberships[:] = self.arrays["shares"].mean(axis=1)[:, None]
            memberships[:, self.prefs.is_informative] = sums / sums.sum(axis=2, keepdims=True)
        return memberships

    def _best(self) -> Ranking:
        """``best[cluster, item]``: the likeliest consensus by what the users said in all draws."""
        evidence = self.arrays["evidence"].sum(axis=0) / self.arrays["log_posterior"].size
        draws = self.arrays["consensus"]
        if not evidence.size and self.n_clusters == 1 and not self.law.has_latent:
            return self._tally().best(float(self.arrays["alpha"].mean()))[None]
        return np.stack(
            [
                self.law.best_of(evidence[k], draws[:, :, k].reshape(-1, self.law.n_items))
                for k in range(self.n_clusters)
            ]
        )

    @property
    def is_best_proved(self) -> bool:
        """Is `best` sure to be the most likely consensus?"""
        if self.n_clusters > 1 or not self.law.is_exact or self.law.has_latent:
            return False
        return self._tally().is_proved

    def _tally(self) -> ClusterTally:
        """That of all users, of any chain: those before a checkpoint are not here any more."""
        return next(chain for chain in self._chains if chain is not None).tallies[0]

    def stuck(self) -> list[int]:
        """Chains whose draws cannot be typical, against the best place that is known.

        The mean gap between the mode and a draw is at most the entropy, so at most log n! for the
        consensus; a chain whose mean gap is larger has not found the bulk of the posterior.
        """
        has_free_gaps = getattr(self.law, "has_free_gaps", False)
        if self.n_clusters > 1 or not self.law.is_exact or self.law.has_latent or has_free_gaps:
            return []
        prior, (tally,) = self.moves.prior, self.law.tallies(None, 1)
        best = best_place(tally, self.alpha, prior)
        alpha = float(best.alpha[0])
        value = tally.curve(best.consensus[0])(alpha)
        value += 0.0 if prior is None else prior.log_density(alpha)
        limit = value - math.lgamma(self.law.n_items + 1) - 10
        return np.flatnonzero(self.arrays["log_posterior"].mean(axis=1) < limit).tolist()

    def checks(self) -> dict[str, Any]:
        """For the settings of a posterior: what is worth knowing of how it was made."""
        checks: dict[str, Any] = self.law.notes()
        differences = self.arrays["differences"]
        known = differences[np.isfinite(differences)]
        if len(known):
            share = weighted_effective_size(np.exp(known - known.max())) / len(known)
            checks["matched"] = {"differences": known.tolist(), "effective_share": share}
        if self.comparison is not None:
            known = {k: v for k, v in self.comparison._asdict().items() if v is not None}
            checks["starts"] = known
        if self.ladder is not None:
            chains: list[Any] = list(self._chains)
            traces = [np.array(chain.trace[-self._n_kept :]) for chain in chains]
            value, error = log_evidence(self.ladder.betas, traces, self.moves.prior)
            checks["tempered"] = {
                "powers": self.ladder.betas.tolist(),
                "log_evidence": value,
                "log_evidence_error": error,
            }
        return checks

    @property
    def _n_kept(self) -> int:
        return self.n_draws * self._thin

    # Checkpoints: a saved state, and the arrays that are filled so far

    def _to_save(self, number: int, sweep: int, chain: Chain) -> Saved:
        """What a checkpoint keeps after a sweep; sums that the next one changes are copied."""
        filled = {f"filled/{name}": array for name, array in self.arrays.items()}
        for name in ("filled/memberships", "filled/evidence"):
            filled[name] = filled[name].copy()
        state = {f"state/{name}": array for name, array in chain.state._asdict().items()}
        rng = chain.rng.bit_generator.state
        return Saved({"chain": number, "sweep": sweep, "rng": rng}, filled | state)

    def _load(self, file: Checkpoint) -> tuple[int, Chain, int] | None:
        """The number of the chain to go on with, the chain, and how many of its sweeps are done."""
        if (saved := file.load()) is None:
            return None
        number, sweep = (saved.values.get(name, 0) for name in ("chain", "sweep"))
        chain = self._begin(number)  # for its seed; then all that moves is taken from the file
        file.check(saved, self._to_save(number, sweep, chain))
        self.arrays = {name: saved.arrays[f"filled/{name}"] for name in self.arrays}
        chain.rng.bit_generator.state, chain.n_sweeps = saved.values["rng"], sweep
        chain.go_to(State(**{name: saved.arrays[f"state/{name}"] for name in State._fields}))
        self._n_done += number * self._n_sweeps + sweep
        return number, chain, sweep
