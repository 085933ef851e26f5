"""The probabilities of a user's next items, by the order of the user's own."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.footrule.personal import correct_chances, look_up_personal
from ..posteriors.personal import PersonalModel
from ..preferences.preferences import Clicks
from .tables import GridTables, Table

LEAST_ALPHA = 1e-3  # whose logarithm stands for that of alpha 0
Floats = NDArray[np.float64]


class PersonalChances:
    """The chances of each user's next items; tables are made when they are asked for, and kept."""

    def __init__(self, model: PersonalModel):
        self.model = model
        self.tables = GridTables(model.n_items, model.alphas)
        self._log_alphas = np.log(np.maximum(model.alphas, LEAST_ALPHA))

    def prepare(self, seen: Clicks, window: int) -> Table:
        """The look-up tables that these users need."""
        return self.tables.of(window, np.unique(self.model.n_items - seen.n_clicks).tolist())

    def uncorrected(
        self, tables: Table, seen: Clicks, rows: slice, users: NDArray[np.int64] | None
    ) -> tuple[Floats, Floats, Floats]:
        """Probabilities by rank and alpha alone, before any correction; the scores; and what a
        correction sees of the users: ``of_users[row, feature]``, clicks and alpha.

        `tables` come from `prepare`; `users` are the rows of given scores that belong to `seen`.
        """
        model = self.model
        scores = model.scores_for(seen, rows, users)
        rankings = model.rankings_of(scores)
        shares = model.alpha_shares_of(seen, rows, rankings)
        starts = seen.starts[rows.start : rows.stop + 1]
        chances, of_users = np.zeros(scores.shape), np.empty((len(scores), 2))
        look_up_personal(
            starts, seen.codes, rankings, tables, shares, self._log_alphas, of_users, chances
        )
        return chances, scores, of_users

    def probabilities(
        self,
        tables: Table,
        seen: Clicks,
        rows: slice,
        window: int,
        users: NDArray[np.int64] | None = None,
        others: Floats | None = None,
    ) -> Floats:
        """``chances[row, item]`` that an unclicked item is among the next `window`.

        See `uncorrected`; `others` are the probabilities of clusters to blend with.
        """
        chances, scores, of_users = self.uncorrected(tables, seen, rows, users)
        correction = self.model.correction_for(window)
        if correction is None:
            return chances
        correct_chances(
            seen.starts[rows.start : rows.stop + 1],
            seen.codes,
            scores,
            self.model.is_given,
            np.empty((0, 0)) if others is None else others,
            of_users,
            correction.coefficients,
            correction.knots,
            correction.values,
            window,
            chances,
        )
        return chances
