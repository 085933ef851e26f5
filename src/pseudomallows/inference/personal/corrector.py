"""Corrector: learns from hidden or later clicks how to correct the probabilities of a fit."""

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import BLOCK, blocks
from ...kernels.click_rows import ClickRows
from ...kernels.items.top_places import find_places
from ...posteriors.corrections import N_LEARNT, Correction, features_of, marks_of
from ...posteriors.personal import PersonalModel
from ...preferences import Clicks, rows_of_users
from ...recommendations.recommenders.personal import PersonalChances, Top
from .corrections import Cases, learn_correction, thin_places
from .later import (
    MAX_HELD_OUT,
    MIN_USERS,
    Later,
    most_users,
    places_in_time,
    seen_table,
    windows_for,
)

MAX_USERS = 5000  # behind the distribution of alpha, half as many
MAX_OF_WINDOW = 2500  # users who are looked at for each window
MAX_CELLS = 4_000_000  # of a table of scores
MARK_CELLS = 250_000  # scores behind the marks of a correction
Floats = NDArray[np.float64]


class Corrector:
    """Learns corrections of a model that was learnt from these clicks."""

    def __init__(self, prefs: Clicks, rng: np.random.Generator):
        self._prefs, self._rng = prefs, rng

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
        has_new = (later.n_clicks > 0) & (known.n_clicks > 0)  # others need no correction
        chosen, later = chosen[has_new], later.take(has_new)
        if len(chosen) < MIN_USERS:
            raise ValueError(
                f"held_out must have clicks that are not in the fit, of {MIN_USERS} users or more, "
                f"got {len(chosen)} such users"
            )
        windows, places = windows_for(later.n_clicks), places_in_time(later, self._rng)
        found = Later(chosen, later.starts, later.codes, places, windows)
        return self._correct(model, prefs, found)

    def _correct(self, model: PersonalModel, shown: Clicks, later: Later) -> Correction:
        """Learn from what came later."""
        some = later.users[: min(8 * BLOCK, max(BLOCK // 4, MARK_CELLS // shown.n_items))]
        sample = shown.take(some)
        rows = slice(0, sample.n_users)
        scores = model.scores_for(sample, rows, some)[~seen_table(sample, rows)]
        marks = marks_of(scores, later.windows[-1])
        parts = self._cases(PersonalChances(model), shown, later, marks)
        return learn_correction(parts, marks)

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
        numbers = (law.chances[user, place], law.scores[user, place], law.few[user])
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
