"""Recommendations by the order of each user's own."""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor
from ..kernels.click_rows import slice_clicks
from ..kernels.footrule.personal import (
    CorrectionArrays,
    Features,
    GridChances,
    OwnLaws,
    correct_chances,
    look_up_personal,
)
from ..posteriors.corrections import Correction, UncorrectedWarning
from ..posteriors.personal import PersonalFit, PersonalModel
from ..preferences import Clicks
from .chances import Chances, Recommender, Users
from .tables import GridTables

LEAST_ALPHA = 1e-3  # whose logarithm stands for that of alpha 0
Floats = NDArray[np.float64]


class OwnLaw(NamedTuple):
    """What the law of each user says, and what a correction sees besides: the users' own
    consensuses, the scores behind them, and ``of_users[row]``, logs of clicks and alpha."""

    chances: Floats
    rankings: NDArray[np.int32]
    scores: Floats
    of_users: Floats


class PersonalChances:
    """The chances of each user's next items; tables are made when they are asked for, and kept."""

    def __init__(self, model: PersonalModel):
        self.model = model
        self.tables = GridTables(model.law)
        self._log_alphas = np.log(np.maximum(model.alphas, LEAST_ALPHA))

    def prepare(self, seen: Clicks, window: int) -> GridChances:
        """The look-up tables that these users need."""
        return self.tables.of(window, np.unique(self.model.n_items - seen.n_clicks).tolist())

    def uncorrected(
        self, tables: GridChances, seen: Clicks, rows: slice, users: NDArray[np.int64] | None
    ) -> OwnLaw:
        """Probabilities by rank and alpha alone, before any correction, and what it needs.

        `tables` come from `prepare`; `users` are the rows of given scores that belong to `seen`.
        """
        model = self.model
        scores = model.scores_for(seen, rows, users)
        rankings = model.rankings_of(scores)
        own_laws = OwnLaws(rankings, model.alpha_shares_of(seen, rows, rankings))
        chances, of_users = np.zeros(scores.shape), np.empty((len(scores), 2))
        clicks = slice_clicks(seen, rows)
        look_up_personal(clicks, own_laws, tables, self._log_alphas, of_users, chances)
        return OwnLaw(chances, rankings, scores, of_users)

    def probabilities(
        self,
        tables: GridChances,
        seen: Clicks,
        rows: slice,
        window: int,
        users: NDArray[np.int64] | None = None,
        others: Floats | None = None,
    ) -> Floats:
        """``chances[row, item]`` that an unclicked item is among the next `window`.

        See `uncorrected`; `others` are the probabilities of clusters to blend with.
        """
        law = self.uncorrected(tables, seen, rows, users)
        correction, clicks = self.model.correction_for(window), slice_clicks(seen, rows)
        if correction is None:
            return law.chances
        if not isinstance(correction, Correction):  # of an older file
            unseen = np.ones(law.chances.shape, dtype=bool)
            unseen[np.repeat(np.arange(len(unseen)), np.diff(clicks.starts)), clicks.codes] = False
            numbers = (law.chances, law.scores, law.of_users, others)
            return correction.corrected(numbers, self.model.is_given, unseen, window)
        blend = np.empty((0, 0)) if others is None else others
        features = Features(law.rankings, law.scores, blend, law.of_users)
        arrays = CorrectionArrays(
            correction.coefficients,
            correction.marks,
            correction.knots,
            correction.values,
            correction.slopes,
        )
        correct_chances(clicks, features, arrays, window, law.chances)
        return law.chances


class PersonalRecommender(Recommender):
    """By the scores of a personal fit; blended, if it says so, with the chances of clusters."""

    def __init__(self, fit: PersonalFit, clusters: Recommender | None):
        super().__init__(fit.items, fit.popularity_ranking(), np.empty((0, 0, 0)))
        self._personal, self._clusters = PersonalChances(fit.model()), clusters
        self._is_to_correct = bool(fit.settings["options"].get("calibrate", True))
        self._told: set[int] = set()  # windows that were warned of

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """From tables; the errors are not known. Warns, once, of a window without correction."""
        self._warn(window)
        tables = self._personal.prepare(users.clicks, window)
        others = None
        if self._clusters is not None:
            others = self._clusters.all_chances(users.clicks, window)

        def table(part: slice) -> tuple[Floats, None]:
            blend = None if others is None else others[part]
            law = (window, users.rows, blend)
            return self._personal.probabilities(tables, users.clicks, part, *law), None

        return Chances(users, self.consensus, table, lambda: None)

    def _warn(self, window: int) -> None:
        model = self._personal.model
        is_right = not self._is_to_correct or model.correction_for(window) is not None
        if is_right or window in self._told:
            return
        self._told.add(window)
        largest = 0 if model.correction is None else model.correction.largest
        warnings.warn(UncorrectedWarning(window, largest), stacklevel=2)

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """There are no draws to count."""
        raise ValueError("by='draws' is not available for method='personal': use by='look_up'")

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """There are no clusters."""
        raise ValueError(
            "a personal fit has no clusters: each user has an order of their own; for memberships "
            "fit with another method and n_clusters"
        )

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user, at the alphas of the grid."""
        personal, clicks, one = self._personal.model, users.clicks, slice(0, 1)
        consensus = personal.rankings_of(personal.scores_for(clicks, one, users.rows))
        alpha_weights = personal.alpha_shares_of(clicks, one, consensus)[0]
        return personal.law.count_ranks(clicks.codes, consensus[0], alpha_weights, n_draws, rng)

    # Tables, those of the clusters too

    @property
    def _of_clusters(self) -> list[Recommender]:
        return [] if self._clusters is None else [self._clusters]

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        self._personal.tables.of(window, [self.n_items - n_clicks])
        for other in self._of_clusters:
            other.prepare_size(n_clicks, window)

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        is_ready = self._personal.tables.has(window, self.n_items - n_clicks)
        return is_ready and all(other.is_ready(n_clicks, window) for other in self._of_clusters)

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._personal.tables.nbytes + sum(
            other.table_bytes() for other in self._of_clusters
        )

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._personal.tables.drop(window)
        for other in self._of_clusters:
            other.drop_tables(window)
