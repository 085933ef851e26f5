"""Corrector: learns from hidden or later clicks how to correct the probabilities of a fit."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import BLOCK, blocks
from ...kernels.click_rows import ClickRows
from ...kernels.footrule.personal import OwnLaws
from ...kernels.items.top_places import find_places
from ...posteriors.corrections import Correction, features_of, marks_of
from ...posteriors.personal import PersonalModel
from ...preferences import Clicks, rows_of_users
from ...preferences.hide import without_clicks
from ...recommendations.recommenders.personal import PersonalChances, Top
from .corrections import Cases, learn_correction, thin_places
from .later import (
    MAX_HELD_OUT,
    MIN_USERS,
    WINDOWS,
    Later,
    clicks_of_rows,
    most_users,
    places_in_time,
    seen_table,
    windows_for,
)

MAX_USERS = 5000  # behind a correction by the law
MAX_OF_WINDOW = 2500  # users who are looked at for each window
N_LEARNT = 256  # places that are looked at with very many items
MAX_CELLS = 4_000_000  # of a table of scores
MARK_CELLS = 250_000  # scores behind the marks of a correction
Floats = NDArray[np.float64]
Others = Callable[[Clicks, int], Floats]


class Corrector:
    """Learns corrections from the clicks of a fit. `scored` learns the scores again, without what
    is hidden, if something is to be hidden; `others` are the probabilities of clusters to blend
    with."""

    def __init__(
        self,
        prefs: Clicks,
        scored: Callable[[Clicks], PersonalModel] | None,
        others: Others | None,
        rng: np.random.Generator,
    ):
        self._prefs, self._scored, self._others, self._rng = prefs, scored, others, rng

    def by_the_law(self, model: PersonalModel) -> Correction | None:
        """Hide the last clicks of a part of the users, score them by what is left, and see what
        comes true; None if too few users have enough clicks.

        Which clicks came last is drawn from the law of each user. If that law is right, what is
        left are the first ranks and what is hidden the next ones, so that there is nothing to
        correct; clicks hidden at random would be any of the ranks. The number hidden is one of the
        windows, and these clicks, in the order drawn, serve all shorter windows too.
        """
        prefs = self._prefs
        assert self._scored is not None
        most = np.where(prefs.is_informative, np.minimum(prefs.n_clicks - 2, WINDOWS[-1]), 0)
        able = np.flatnonzero(most >= 1)
        limit = most_users(MAX_USERS, prefs.n_items)
        n_users = min(limit, len(able), max(prefs.n_users // 2, MIN_USERS))
        if n_users < MIN_USERS:
            return None
        chosen = np.sort(self._rng.choice(able, n_users, replace=False))
        windows = windows_for(most[chosen])
        n_hidden = self._draw_numbers(most[chosen], windows)
        order = self._draw_orders(model, chosen, n_hidden, windows)
        of_chosen = np.repeat(np.isin(np.arange(prefs.n_users), chosen), prefs.n_clicks)
        taken = np.zeros(int(prefs.starts[-1]), dtype=bool)
        taken[of_chosen] = order > 0
        shown, seen = without_clicks(prefs, taken), prefs.take(chosen)
        hidden = seen.choose(order > 0)
        places = order[order > 0] - 1
        later = Later(chosen, hidden.starts, hidden.codes, places, windows)
        return self._correct(self._scored(shown), shown, later, of_scores=False)

    def _draw_numbers(self, most: NDArray[np.int64], windows: list[int]) -> NDArray[np.int64]:
        """How many clicks to hide from each user: any of the windows that leave two."""
        choices = np.searchsorted(windows, most, "right")
        return np.array(windows)[self._rng.integers(choices)]

    def _draw_orders(
        self,
        model: PersonalModel,
        chosen: NDArray[np.int64],
        n_hidden: NDArray[np.int64],
        windows: list[int],
    ) -> NDArray[np.int64]:
        """For each click of these users: the least window that has it among the next after those
        that are left, 0 for what is left. One draw is asked for several numbers of last clicks."""
        starts = self._prefs.take(chosen).starts
        order = np.zeros(starts[-1], dtype=np.int64)
        for number in windows:
            rows, seed = np.flatnonzero(n_hidden == number), int(self._rng.integers(2**63))
            users = self._prefs.take(chosen[rows])
            draw = functools.partial(draw_last, model, users, chosen[rows], seed)
            is_hidden = draw(number)
            found = np.where(is_hidden, number, 0)
            for window in [each for each in windows if each < number][::-1]:
                found[is_hidden & ~draw(number - window)] = window
            order[clicks_of_rows(starts, rows)] = found
        return order

    def by_later_clicks(self, model: PersonalModel, held_out: Clicks) -> Correction:
        """Learn from clicks that came later than those of the fit. Which of a user's came first is
        known by their times; without these, each is among the next w of n with a chance of w / n.
        """
        prefs = self._prefs
        rows = np.flatnonzero(held_out.n_clicks)
        most = most_users(MAX_HELD_OUT, prefs.n_items)
        if len(rows) > most:
            rows = rows[np.sort(self._rng.choice(len(rows), most, replace=False))]
        held_out = held_out.take(rows)
        chosen = rows_of_users(prefs, held_out.users.tolist())
        known = prefs.take(chosen)
        cells, old = (each.owners * prefs.n_items + each.codes for each in (held_out, known))
        later = held_out.choose(~np.isin(cells, old))
        has_new = later.n_clicks > 0
        chosen, later = chosen[has_new], later.take(has_new)
        if len(chosen) < MIN_USERS:
            raise ValueError(
                f"held_out must have clicks that are not in the fit, of {MIN_USERS} users or more, "
                f"got {len(chosen)} such users"
            )
        windows, places = windows_for(later.n_clicks), places_in_time(later, self._rng)
        found = Later(chosen, later.starts, later.codes, places, windows)
        return self._correct(model, prefs, found, of_scores=True)

    def _correct(
        self, model: PersonalModel, shown: Clicks, later: Later, of_scores: bool
    ) -> Correction:
        """Learn from what came later; without `of_scores`, from probabilities and places alone,
        which the change in scores when clicks are hidden cannot mislead."""
        some = later.users[: min(8 * BLOCK, max(BLOCK // 4, MARK_CELLS // shown.n_items))]
        sample = shown.take(some)
        rows = slice(0, sample.n_users)
        scores = model.scores_for(sample, rows, some)[~seen_table(sample, rows)]
        marks = marks_of(scores, later.windows[-1])
        parts = self._cases(PersonalChances(model), shown, later, marks)
        return learn_correction(parts, marks, of_scores)

    def _cases(
        self, personal: PersonalChances, shown: Clicks, later: Later, marks: Floats
    ) -> list[Cases]:
        """What the law said of each window, and what came true, block by block: the order of a
        user is the same for all windows. With very many items only the first places of each user
        are looked at: no other has a chance worth correcting."""
        able = {window: self._who_tells(later, window) for window in later.windows}
        tables = {
            window: personal.prepare(shown.take(later.users[rows]), window)
            for window, rows in able.items()
        }
        is_sparse, chosen = personal.model.is_sparse, np.unique(np.concatenate([*able.values()]))
        n_places, size = (N_LEARNT, BLOCK // 4) if is_sparse else (shown.n_items, BLOCK)
        parts = []
        for rows in blocks(len(chosen), size):
            some = later.take(chosen[rows])
            seen = shown.take(some.users)
            order = personal.order(seen, slice(0, seen.n_users), n_places, some.users)
            for window in later.windows:
                mine = np.flatnonzero(np.isin(chosen[rows], able[window]))
                law = personal.look_up(tables[window], order.take(mine))
                parts.append(self._cases_of(law, seen.take(mine), some.take(mine), window, marks))
        return parts

    def _who_tells(self, later: Later, window: int) -> NDArray[np.int64]:
        """The users who have so many later clicks, or some of them."""
        able = np.flatnonzero(later.n_clicks >= window)
        if len(able) > MAX_OF_WINDOW:
            able = np.sort(self._rng.choice(able, MAX_OF_WINDOW, replace=False))
        return able

    def _cases_of(self, law: Top, seen: Clicks, later: Later, window: int, marks: Floats) -> Cases:
        """The cases of some users: what the law said of places in their orders."""
        targets = came_true_at(later, law.items, window, seen.n_items)
        n_unseen = (law.items >= 0).sum(axis=1)
        user, place, stands_for = thin_places(targets, n_unseen, window)
        others = None
        if self._others is not None:
            others = self._others(seen, window)[user, law.items[user, place]]
        numbers = (law.chances[user, place], law.scores[user, place], law.of_users[user], others)
        of_users = seen.weights * later.weights(window)
        return Cases(
            features_of(numbers, place, window, marks),
            targets[user, place],
            stands_for * of_users[user],
        )


def came_true_at(later: Later, items: NDArray[np.int64], window: int, n_items: int) -> Floats:
    """``chances[row, place]`` that ``items[row, place]`` was among the next `window`."""
    places = np.empty(len(later.codes), dtype=np.int64)
    find_places(ClickRows(later.starts, later.codes), items, n_items, places)
    found, is_there = np.zeros(items.shape), places >= 0
    owners = np.repeat(np.arange(len(items)), later.n_clicks)
    found[owners[is_there], places[is_there]] = later.came_true(window)[is_there]
    return found


def draw_last(
    model: PersonalModel, seen: Clicks, users: NDArray[np.int64], seed: int, n_last: int
) -> NDArray[np.bool_]:
    """For each click of these users: is it one of the last, in a draw from the user's law?"""
    last = np.empty(len(seen.codes), dtype=bool)
    for rows in blocks(seen.n_users):
        clicks, rankings = model.orders_of(seen, rows, users)
        own_laws = OwnLaws(rankings, model.shares_by(clicks, rankings))
        mine = slice(seen.starts[rows.start], seen.starts[rows.stop])
        last[mine] = model.law.draw_last(seed, rows.start, clicks, own_laws, n_last)
    return last
