"""What each user of a personal fit clicks next: the first places of their own order, and the
probabilities there."""

from __future__ import annotations  # those of inner functions are not made for each request

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..kernels.click_rows import slice_clicks
from ..kernels.correct import (
    CorrectionArrays,
    GridProbabilities,
    correct_probabilities,
)
from ..kernels.items.top_items import fill_tops
from ..kernels.items.top_places import fill_from_places, fill_unclicked, look_up_places
from .corrections import N_LEARNT
from .next_tables import GridTables
from .personal_fit import PersonalModel

Floats = NDArray[np.float64]


class OwnOrder(NamedTuple):
    """The first places of each user's own order: `items[row, place]`, -1 where there are no more,
    and their scores; how many unseen items there are, the user's shares of the alphas, and
    1 / (1 + clicks)."""

    items: NDArray[np.int64]
    scores: Floats
    sizes: NDArray[np.int64]
    shares: Floats
    few: Floats

    def take(self, rows: NDArray[np.int64]) -> OwnOrder:
        """Some of the users."""
        items, scores, sizes, shares, few = self
        return OwnOrder(items[rows], scores[rows], sizes[rows], shares[rows], few[rows])


class PersonalProbabilities:
    """The probabilities of each user's next items; tables are made when they are asked for, and
    kept."""

    def __init__(self, model: PersonalModel, tables: GridTables | None = None):
        self.model = model
        self.tables = tables or GridTables(model.law)

    def prepare(self, seen: Clicks, window: int) -> GridProbabilities:
        """The look-up tables that these users need."""
        correction = self.model.correction
        window = 1 if correction is not None and correction.per_click else window
        if len(seen.starts) == 2:  # one user, as a service asks
            return self.tables.of(window, (self.model.n_items - len(seen.codes),))
        return self.tables.of(window, np.unique(self.model.n_items - seen.n_clicks).tolist())

    def probabilities(
        self,
        tables: GridProbabilities,
        seen: Clicks,
        rows: slice,
        window: int,
        users: NDArray[np.int64] | None = None,
    ) -> Floats:
        """``probabilities[row, item]`` that an unclicked item is among the next `window`.

        `tables` come from `prepare`; `users` are the rows of given scores that belong to `seen`.
        """
        order = self.order(seen, rows, self.model.n_items, users)
        by_item = np.zeros((len(order.items), self.model.n_items + 1))  # the last is of no item
        np.put_along_axis(by_item, order.items, self._corrected(tables, order, window), axis=1)
        by_item = by_item[:, :-1]
        is_new = order.sizes == self.model.n_items
        if is_new.any() and not self.model.is_given:
            by_item[is_new] = self.model.first_probabilities(window)
        return by_item

    def order(
        self, seen: Clicks, rows: slice, n_places: int, users: NDArray[np.int64] | None = None
    ) -> OwnOrder:
        """The first places; with very many items, without an order of all of them."""
        model, clicks = self.model, slice_clicks(seen, rows)
        items = np.empty((len(clicks.starts) - 1, n_places), dtype=np.int64)
        scores: NDArray[Any]
        if model.is_sparse and n_places < model.n_items:
            scores = model.single_scores_of(seen, rows)
            fill_tops(clicks, scores, model.tie_ranks, items)
            shares = model.shares_by(*model.click_ranks_of(clicks, scores))
        else:
            scores = model.scores_for(seen, rows, users)
            rankings = model.rankings_of(scores)
            fill_unclicked(clicks, rankings, items)
            shares = model.shares_by(clicks, rankings)
        of_items = np.take_along_axis(scores, np.maximum(items, 0), axis=1).astype(np.float64)
        n_clicks = np.diff(clicks.starts)
        return OwnOrder(items, of_items, model.n_items - n_clicks, shares, 1 / (1 + n_clicks))

    def look_up(self, tables: GridProbabilities, order: OwnOrder) -> Floats:
        """``probabilities[row, place]`` by rank and alpha alone; `tables` come from `prepare`."""
        probabilities = np.empty(order.items.shape)
        look_up_places(order.sizes, order.shares, tables, probabilities)
        return probabilities

    def fill_top(
        self,
        tables: GridProbabilities,
        seen: Clicks,
        rows: slice,
        window: int,
        best: tuple[NDArray[np.int64], Floats],
    ) -> None:
        """Fill items and probabilities of the best, from the places that the correction was learnt
        from, if these are enough: their probabilities do not depend on the others."""
        n_places = N_LEARNT if best[0].shape[1] <= N_LEARNT else self.model.n_items
        order = self.order(seen, rows, n_places)
        probabilities = self._corrected(tables, order, window)
        is_new = order.sizes == self.model.n_items
        if is_new.any():
            probabilities[is_new] = self.model.first_probabilities(window)[order.items[is_new]]
        fill_from_places(order.items, probabilities, *best)

    def _corrected(self, tables: GridProbabilities, order: OwnOrder, window: int) -> Floats:
        """``probabilities[row, place]`` of what is observed."""
        probabilities = self.look_up(tables, order)
        correction = self.model.correction_for(window)
        if correction is not None:
            users = (order.scores, order.few, order.sizes)
            n_learnt = N_LEARNT if self.model.is_sparse else 0
            correct_probabilities(*users, self._arrays, window, n_learnt, probabilities)
        return probabilities

    @cached_property
    def _arrays(self) -> CorrectionArrays:
        correction = self.model.correction
        assert correction is not None
        return CorrectionArrays(
            correction.coefficients,
            correction.marks,
            correction.knots,
            correction.values,
            correction.slopes,
            correction.per_click,
        )
