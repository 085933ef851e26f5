"""The way to recommend that suits a posterior: by its method and its distance."""

from __future__ import annotations  # those of inner functions are not made for each request

import functools
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from ..engines.executors import Executor
from ..kernels.click_rows import slice_clicks
from ..personal.personal_fit import Fit, PersonalFit
from ..personal.probabilities import PersonalProbabilities
from ..posterior.diagnostics import UncorrectedWarning
from .average import ExactRecommender
from .kendall_recommender import KendallRecommender
from .recommender import Floats, Items, NextItems, Recommender, Users

WITH_SUMS = ("footrule", "kendall")  # over the rankings that agree with clicks
_made: WeakKeyDictionary[Fit, Recommender] = WeakKeyDictionary()


def recommender_of(posterior: Fit) -> Recommender:
    """What recommendations need of a posterior, made once and kept as long as it."""
    made = _made.get(posterior)
    return _made.setdefault(posterior, _make(posterior)) if made is None else made


def _make(posterior: Fit) -> Recommender:
    if isinstance(posterior, PersonalFit):
        return PersonalRecommender(posterior)
    distance = posterior.settings.get("distance", "footrule")
    if distance not in WITH_SUMS:
        raise ValueError(
            f"for clicks by distance={distance!r} no sum over rankings is known, so `recommend` "
            "answers users of the fit alone, from latent rankings (keep_latent=True); for new "
            "users, files and the service fit again with distance='footrule' or 'kendall'"
        )
    is_kendall = distance == "kendall"
    return KendallRecommender(posterior) if is_kendall else ExactRecommender(posterior)


class PersonalRecommender(Recommender):
    """By the scores of a personal fit."""

    def __init__(self, fit: PersonalFit):
        super().__init__(fit.items, fit.popularity_ranking(), np.empty((0, 0, 0)))
        self._model = fit.model()
        self._made: dict[bool, PersonalProbabilities] = {}
        self._warned = 0  # the largest window that was warned of
        self.tables = self._personal_for(None).tables

    def _personal_for(self, users: Users | None) -> PersonalProbabilities:
        """That of the model which holds for such users, made once."""
        model = self._model
        model = model if users is None else model.for_clicks(users.clicks, users.is_new)
        is_main = model is self._model
        if is_main not in self._made:
            same_law = np.array_equal(model.alphas, self._model.alphas)
            self._made.setdefault(
                is_main, PersonalProbabilities(model, self.tables if same_law else None)
            )
        return self._made[is_main]

    def probabilities(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> NextItems:
        """From tables; the errors are those of the correction. Warns, once, of a window without."""
        self._warn(window)
        personal = self._personal_for(users)
        tables = personal.prepare(users.clicks, window)

        def table(part: slice) -> tuple[Floats, None]:
            return personal.probabilities(tables, users.clicks, part, window, users.rows), None

        def fill(part: slice, items: Items, best: Floats, errors: Floats | None) -> None:
            personal.fill_top(tables, users.clicks, part, window, (items, best))

        correction = personal.model.correction_for(window)
        errors_of = None
        if correction is not None:
            errors_of = functools.partial(correction.errors_of, window=window)
        quick = fill if personal.model.is_sparse else None
        return NextItems(users, self.consensus, table, lambda: None, quick, errors_of)

    def _warn(self, window: int) -> None:
        correction = self._model.correction
        if correction is None or correction.covers(window) or window <= self._warned:
            return
        self._warned = window
        warn(UncorrectedWarning(window, correction.largest))

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """There are no clusters."""
        raise ValueError(
            "a personal fit has no clusters: each user has an order of their own; for memberships "
            "fit with another method and n_clusters"
        )

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user, at the alphas of the grid."""
        clicks, one = users.clicks, slice(0, 1)
        personal = self._model.for_clicks(clicks, users.is_new)
        if personal.is_sparse:
            raise ValueError(
                "intervals of a user's ranks need a table of items and ranks, and "
                f"{self.n_items:,} items are too many for one: ask recommend for the best items"
            )
        consensus = personal.rankings_of(personal.scores_for(clicks, one, users.rows))
        alpha_weights = personal.shares_by(slice_clicks(clicks, one), consensus)[0]
        return personal.law.count_ranks(clicks.codes, consensus[0], alpha_weights, n_draws, rng)
