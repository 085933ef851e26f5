"""A call of `fit` for draws: plan, run, check."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from .._warn import warn
from ..engines.executors import Executor, is_remote
from ..engines.progress import Progress
from ..posteriors.diagnose import (
    ContradictionWarning,
    contradiction_check,
    describe_contradictions,
    diagnose,
    is_apart,
    thinning_needed,
    warn_of,
)
from ..posteriors.model_check import check_model
from ..posteriors.posterior import Posterior
from ..preferences import Preferences
from ..rankings import check_count
from .alpha import estimate_alpha
from .checkpoint import Checkpoint, describe_call
from .choose_clusters import check_not_votes, choose_clusters
from .fit_mcmc import contradictions_of
from .methods import Case, Method, Plan

FEW_DRAWS = 5  # of a chain, too few to say whether people share one order


class Call:
    """A call of `fit` for draws."""

    def __init__(
        self,
        prefs: Preferences,
        method: type[Method],
        alpha: float | None,
        rng: np.random.Generator,
        executor: Executor | None,
        progress: Progress,
    ):
        self.prefs, self.method, self.alpha = prefs, method, alpha
        self.rng, self.executor, self.progress = rng, executor, progress

    def draw(
        self,
        n_draws: int | None,
        n_clusters: int | str,
        options: dict[str, Any],
        checkpoint: str | os.PathLike[str] | None,
    ) -> Posterior:
        """Plan, run and check the chains; warn if their draws are doubtful."""
        plan, curve = self.plan(n_draws, n_clusters, options)
        if plan.case.is_contradictory and options.get("errors") is None:
            contradictions = contradictions_of(self.prefs)
            if contradictions is not None:
                words = describe_contradictions(*contradictions)
                figures = dict(
                    zip(("n_users", "n_all", "user", "cycle"), contradictions, strict=True)
                )
                warn(ContradictionWarning(contradiction_check(words, figures)))
                curve |= {"contradictions": words}
        if checkpoint is not None:
            plan = replace(plan, goes_on=False)
        file = self.open(checkpoint, plan)
        run = self.begin(plan)
        result = self.until_good(run, plan, file, curve)
        if file is not None:
            file.remove()
        return result

    def plan(
        self, n_draws: int | None, n_clusters: int | str, options: dict[str, Any]
    ) -> tuple[Plan, dict[str, Any]]:
        """The plan, checked; and for the settings how the number of clusters was chosen."""
        if is_remote(self.executor) and options.get("keep_latent"):
            raise ValueError("keep_latent does not work with Dask workers: leave executor out")
        curve: dict[str, Any] = {}
        if isinstance(n_clusters, str) and n_clusters == "auto":
            check_not_votes(self.prefs)
            n_clusters, curve = self._choose(n_draws, options)
            known = self.method.option_names(Case.of(self.prefs, n_clusters))
            options = {name: value for name, value in options.items() if name in known}
        number = check_n_clusters(n_clusters, self.prefs)
        plan = Plan.make(self.prefs, self.method, n_draws, number, options, self.alpha)
        plan.check_memory(self.prefs.n_users)
        plan.check_work(self.prefs)
        return plan, curve

    def _choose(self, n_draws: int | None, options: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The number of clusters, and for the settings how it was chosen."""
        self._check_either(n_draws, options)
        curve = choose_clusters(
            self.prefs,
            alpha=self.alpha,
            share_prior=options.get("share_prior", 1.0),
            alpha_prior=options.get("alpha_prior"),
            rng=self.rng,
            executor=self.executor,
            progress=self.progress,
            distance=options["distance"],
        )
        return curve.chosen, {"curve": curve.as_settings()}

    def _check_either(self, n_draws: int | None, options: dict[str, Any]) -> None:
        """Refuse options that are wrong whatever the number of clusters will be."""
        strange = set(options)
        for n_clusters in (1, 2):
            known = self.method.option_names(Case.of(self.prefs, n_clusters))
            mine = {name: value for name, value in options.items() if name in known}
            plan = Plan.make(self.prefs, self.method, n_draws, n_clusters, mine)
            plan.check_memory(self.prefs.n_users)
            strange -= set(known)
        self.method.make(Case.of(self.prefs, 2), {name: options[name] for name in strange})

    def open(self, checkpoint: str | os.PathLike[str] | None, plan: Plan) -> Checkpoint | None:
        """The checkpoint, if there is to be one."""
        if checkpoint is None:
            return None
        if getattr(plan.method, "temperatures", None) is not None:
            raise ValueError(
                "a checkpoint does not keep the replicas of temperatures: leave one of them out"
            )
        return Checkpoint(checkpoint, describe_call(self.prefs, plan.call(), self.rng))

    def begin(self, plan: Plan) -> Any:
        """What makes the draws, with an estimate of alpha where the method needs one."""
        rows = (self.prefs, np.arange(self.prefs.n_users))
        rows = self.prefs.one_row_each() if plan.case.has_clusters else rows
        law = plan.method.law(rows[0], self.executor)
        if self.alpha is None and not plan.method.samples_alpha and not plan.case.has_clusters:
            distance = plan.method.distance
            by_likelihood = plan.case.is_partial or distance != "footrule"
            how = "likelihood" if by_likelihood else "similarity"
            estimate = estimate_alpha(
                self.prefs, how, rng=self.rng, executor=self.executor, distance=distance
            )
            plan = replace(plan, alpha=estimate)
        return plan.method.make_run(law, *rows, plan, self.rng, self.progress)

    def until_good(
        self, run: Any, plan: Plan, file: Checkpoint | None, curve: dict[str, Any]
    ) -> Posterior:
        """The result of the chains, which go on, if the plan lets them, until the draws are good or
        at the limit; checked, with a warning of each check that is not passed.

        Chains of one consensus that disagree may be in different modes: then they are tempered.
        """
        run.run(file)
        result, noted = self.posterior(run, plan, curve), dict[str, Any]()
        if plan.goes_on:
            if run.can_temper and is_apart(result):
                run.temper()
                result = self.posterior(run, plan, curve)
            while (factor := thinning_needed(result, run.thinning)) > 1:
                run.go_on(factor)
                result = self.posterior(run, plan, curve)
            noted["thinning"] = run.thinning
        return self.checked(result, run, plan, noted)

    def checked(self, result: Posterior, run: Any, plan: Plan, noted: dict[str, Any]) -> Posterior:
        """The result with what its checks need to know, and with their answers, which are warned
        of."""
        if plan.is_markov:
            is_unbounded = run.unbounded.mean(axis=0) >= 0.5  # by half of the chains
            noted["unbounded"] = np.flatnonzero(is_unbounded).tolist()
            noted["stuck"] = run.stuck()
        is_lost = plan.is_markov and (noted["stuck"] or plan.n_draws < FEW_DRAWS)
        if plan.method.samples_alpha and self.alpha is None and not is_lost:
            noted["model_check"] = check_model(self.prefs, result)
        result = replace(result, settings=result.settings | noted)
        checks = diagnose(result)
        warn_of([check for check in checks if check.warning is not ContradictionWarning])
        rows = [check.row() for check in checks]
        return replace(result, settings=result.settings | {"checks": rows})

    def posterior(self, run: Any, plan: Plan, curve: dict[str, Any]) -> Posterior:
        """The result, with how it was made."""
        draws = run.results()
        settings = {
            "method": self.method.name,
            "distance": plan.method.distance,
            "alpha": run.alpha,
            "n_users": run.law.n_users,
            "kind": plan.case.kind,
            "is_full": plan.case.is_full,
            "latent": run.how_latent,
            "is_best_proved": run.is_best_proved,
            "options": plan.settings(),
        }
        data = self.prefs.kept()
        if data is not None and data.n_users < self.prefs.n_users:  # on workers, without rows
            draws["chain_memberships"] = draws["chain_memberships"][:, :0]
        names = {"items": self.prefs.items, "users": self.prefs.users}
        settings |= curve | run.checks()
        return Posterior(**draws, **names, settings=settings, data=data)


def check_n_clusters(n_clusters: Any, prefs: Preferences) -> int:
    """Return a number of clusters, or say what is wrong with it."""
    if isinstance(n_clusters, str):
        raise ValueError(f'n_clusters must be a whole number or "auto", got {n_clusters!r}')
    number = check_count(n_clusters, "n_clusters")
    if number > 1:
        check_not_votes(prefs)
    n_users = int(prefs.weights[prefs.is_informative].sum())
    if number > max(n_users, 1):
        raise ValueError(
            f"n_clusters must be at most the number of users who say anything, {n_users}, "
            f"got {number}"
        )
    return number
