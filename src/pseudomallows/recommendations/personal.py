"""A consensus of one's own: each user's law is centred on a ranking made from the user's clicks.

The score of an item for a user comes from the user's other clicks, by a regression of each item on
the others. The ranking of the scores is the user's consensus, and alpha, by the exact likelihood of
the clicks, says how closely the user keeps to it. The score of an item never uses the click on it,
so that likelihood is honest without holding anything out.
"""

import copy
import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances.footrule import log_partition
from ..engines.executors import BLOCK, Executor, blocks
from ..kernels.footrule.matching import N_GAPS, grid_weights
from ..kernels.footrule.personal import (
    LEAST_SCORE,
    correct_chances,
    draw_last_clicks,
    look_up_personal,
    nonnegative_weights,
    personal_log_likelihoods,
    weigh_alphas,
)
from ..preferences.hide import hide_clicks, without_clicks
from ..preferences.preferences import (
    Clicks,
    DroppedRowsWarning,
    Preferences,
    rows_of_pairs,
    rows_of_users,
)
from .corrections import Correction, learn_correction
from .tables import GridTables, Table

ALPHAS = np.geomspace(0.75, 64, 8)  # ratio 1.9
RIDGES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)  # in units of the mean number of clicks of an item
WINDOWS = (1, 3, 10)  # numbers of next items for which a correction is learnt
DEFAULT_RIDGE, N_SPLITS = 0.3, 6
N_REPORTS = 2 + len(WINDOWS)
MIN_USERS, MAX_USERS, MAX_HELD_OUT = 50, 5000, 10_000  # behind a correction
N_STEPS = 100  # of EM for the distribution of alpha
LEAST_ALPHA_SHARE = 0.01  # of an alpha in the population, for it to stay in the grid
Floats = NDArray[np.float64]
Train = Callable[[Any], ArrayLike]
Others = Callable[[Clicks, int], Floats]


@dataclass(frozen=True, eq=False)
class Personal:
    """What a consensus of one's own needs: for every user, also one never seen before.

    Attributes
    ----------
    item_weights : (n_items, n_items) array
        ``item_weights[clicked, item]``: what a click adds to the score of an item; 0 on the
        diagonal. Empty if the scores were given.
    popularity : (n_items,) array
        Share of the users who clicked each item: the scores of a user without clicks.
    ties : (n_items,) array
        The items by popularity, equal ones in random order: of equal scores, the first here wins.
    alphas, alpha_shares : arrays
        Grid of alphas, and their distribution in the population.
    corrections : dict
        ``corrections[window]``: from the probability to be among the next `window` ranks, the
        score and the number of clicks to what comes true. Empty without calibration.
    scores : (n_users, n_items) array
        The scores that were given, scaled to mean 0 and deviation 1; else empty.
    """

    item_weights: Floats
    popularity: Floats
    ties: NDArray[np.int64]
    alphas: Floats
    alpha_shares: Floats
    corrections: dict[int, Correction] = field(default_factory=dict)
    scores: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.popularity)

    @property
    def is_given(self) -> bool:
        """Were the scores given?"""
        return self.scores.size > 0

    @cached_property
    def _grid(self) -> tuple[Floats, Floats, Any]:
        """Lam, log partition function and weights of the walks for each alpha."""
        lams = self.alphas / self.n_items
        logs = np.array([log_partition(self.n_items, float(alpha)) for alpha in self.alphas])
        return lams, logs, grid_weights(lams, self.n_items, N_GAPS)

    @cached_property
    def tables(self) -> GridTables:
        """Look-up tables, made when they are asked for; see `prepare`."""
        return GridTables(self.n_items, self.alphas)

    @cached_property
    def _ranks(self) -> NDArray[np.int32]:
        return np.arange(1, self.n_items + 1, dtype=np.int32)

    @cached_property
    def _logs(self) -> Floats:
        return np.asarray(np.log(np.maximum(self.alphas, 1e-3)))

    def scores_of(self, seen: Clicks, rows: slice) -> Floats:
        """``scores[row, item]`` of some users; without clicks, the popularity."""
        starts = seen.starts[rows.start : rows.stop + 1]
        if len(starts) == 2 and starts[1] > starts[0]:  # one user, as a service asks
            return np.add.reduce(self.item_weights[seen.codes[starts[0] : starts[1]]])[None]
        found = clicks_matrix(starts, seen.codes, self.n_items) @ self.item_weights
        found[starts[1:] == starts[:-1]] = self.popularity
        return np.asarray(found)

    def scores_for(self, seen: Clicks, rows: slice, users: NDArray[np.int64] | None) -> Floats:
        """The same, or the scores that were given for these users."""
        if not self.is_given:
            return self.scores_of(seen, rows)
        if users is None:
            raise ValueError(
                "new users need scores, and those of this fit were given: fit again with theirs"
            )
        return np.asarray(self.scores[users[rows]])

    def rankings_of(self, scores: Floats) -> NDArray[np.int32]:
        """Each user's own consensus: the ranking of the scores, ties in the order of `ties`."""
        order = self.ties[(-scores[:, self.ties]).argsort(axis=1, kind="stable")]
        rankings = np.empty(scores.shape, dtype=np.int32)
        if len(rankings) == 1:
            rankings[0, order[0]] = self._ranks
            return rankings
        rankings[np.arange(len(scores))[:, None], order] = self._ranks
        return rankings

    def log_likelihoods(self, seen: Clicks, rows: slice, rankings: NDArray[np.int32]) -> Floats:
        """``values[row, g]``: exact log probability of a user's clicks at each alpha."""
        values = np.empty((rows.stop - rows.start, len(self.alphas)))
        starts = seen.starts[rows.start : rows.stop + 1]
        lams, logs, weights = self._grid
        personal_log_likelihoods(starts, seen.codes, rankings, lams, logs, weights, values)
        return values

    def alpha_shares_of(self, seen: Clicks, rows: slice, rankings: NDArray[np.int32]) -> Floats:
        """``shares[row, g]``: each user's own posterior over the alphas."""
        values = self.log_likelihoods(seen, rows, rankings)
        weigh_alphas(values, self.alpha_shares)
        return values

    def draw_last_clicks(
        self, seen: Clicks, rows: slice, users: NDArray[np.int64], n_last: int, seed: int
    ) -> NDArray[np.bool_]:
        """For each click of some users: is it one of the last, in a draw from the user's law?"""
        rankings = self.rankings_of(self.scores_for(seen, rows, users))
        shares = self.alpha_shares_of(seen, rows, rankings)
        starts = seen.starts[rows.start : rows.stop + 1]
        last = np.empty(starts[-1] - starts[0], dtype=bool)
        lams, _, weights = self._grid
        draw_last_clicks(
            seed, rows.start, starts, seen.codes, rankings, lams, weights, shares, n_last, last
        )
        return last

    def prepare(self, seen: Clicks, window: int) -> Table:
        """The look-up tables that these users need."""
        return self.tables.of(window, np.unique(self.n_items - seen.n_clicks).tolist())

    def law(
        self,
        tables: Table,
        seen: Clicks,
        rows: slice,
        users: NDArray[np.int64] | None,
    ) -> tuple[Floats, Floats, Floats]:
        """Probabilities by rank and alpha alone, before any correction; the scores; and what a
        correction sees of the users: ``of_users[row, feature]``, clicks and alpha.

        `tables` come from `prepare`; `users` are the rows of given scores that belong to `seen`.
        """
        scores = self.scores_for(seen, rows, users)
        rankings = self.rankings_of(scores)
        shares = self.alpha_shares_of(seen, rows, rankings)
        starts = seen.starts[rows.start : rows.stop + 1]
        chances, of_users = np.zeros(scores.shape), np.empty((len(scores), 2))
        look_up_personal(
            starts, seen.codes, rankings, tables, shares, self._logs, of_users, chances
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
        """``chances[row, item]`` that an unclicked item is among the next `window`: see `law`.

        `others` are the probabilities of clusters to blend with.
        """
        chances, scores, of_users = self.law(tables, seen, rows, users)
        correction = self._correction_for(window)
        if correction is None:
            return chances
        correct_chances(
            seen.starts[rows.start : rows.stop + 1],
            seen.codes,
            scores,
            self.is_given,
            np.empty((0, 0)) if others is None else others,
            of_users,
            correction.coefficients,
            correction.knots,
            correction.values,
            window,
            chances,
        )
        return chances

    def _correction_for(self, window: int) -> Correction | None:
        """The one learnt for the nearest window, if that is at most half as large again."""
        nearest = min(self.corrections, key=lambda known: abs(math.log(known / window)), default=0)
        if not nearest or max(nearest / window, window / nearest) > 1.5:
            return None
        return self.corrections[nearest]

    @property
    def score_features(self) -> list[int]:
        """Which of the features come from scores and users, not from probabilities."""
        return ([1] if self.is_given else [1, 2]) + [-2, -1]

    def features(
        self, chances: Floats, scores: Floats, of_users: Floats, others: Floats | None
    ) -> Floats:
        """``[row, item, feature]``: odds by rank and alpha, score, odds of clusters; then those of
        the user."""
        logs = scores if self.is_given else np.log(np.maximum(scores, LEAST_SCORE))
        plain = [] if self.is_given else [scores]
        blend = [] if others is None else [_log_odds(others)]
        of_items = np.stack([_log_odds(chances), logs, *plain, *blend], axis=-1)
        same = np.broadcast_to(of_users[:, None], (*scores.shape, of_users.shape[1]))
        return np.concatenate([of_items, same], axis=-1)


def _log_odds(chances: Floats) -> Floats:
    inside = np.clip(chances, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def clicks_matrix(starts: NDArray[np.int64], codes: NDArray[np.int32], n_items: int) -> Any:
    """Clicks as a sparse matrix of ones."""
    from scipy.sparse import csr_array

    mine = codes[starts[0] : starts[-1]]
    shape = (len(starts) - 1, n_items)
    return csr_array((np.ones(len(mine)), mine, starts - starts[0]), shape=shape)


def products_of(clicks: Clicks, executor: Executor) -> Floats:
    """How many people clicked both of two items: all that the scores need of the users.

    Whole numbers, so that sums over blocks of users are exact in any order.
    """

    def count(rows: slice) -> Any:
        starts = clicks.starts[rows.start : rows.stop + 1]
        matrix = clicks_matrix(starts, clicks.codes, clicks.n_items)
        weighted = matrix.multiply(clicks.weights[rows][:, None]).tocsr()
        return (weighted.T @ matrix).toarray()

    total = np.zeros((clicks.n_items, clicks.n_items))
    for part in executor.map(count, blocks(clicks.n_users, 64 * BLOCK)):
        total += part
    return total


def ridge_weights(products: Floats, ridge: float, nonnegative: bool = True) -> Floats:
    """Regression of each item on the others, from their products, with a zero diagonal.

    `ridge` is in units of the mean diagonal. With weights of any sign this is the closed form of
    Steck (2019); weights of 0 or more recommend better on the data we have seen.

    >>> ridge_weights(np.array([[4.0, 2.0], [2.0, 4.0]]), ridge=0.5)
    array([[0.        , 0.33333333],
           [0.33333333, 0.        ]])
    """
    scale = max(ridge * float(np.trace(products)) / len(products), 1e-6)
    weights = np.zeros_like(products)
    if nonnegative:
        nonnegative_weights(products, scale, 1e-5, weights)
        return weights
    inverse = np.linalg.inv(products + scale * np.eye(len(products)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def check_held_out(held_out: Any, prefs: Clicks) -> Clicks:
    """Later clicks, in any form of `from_clicks`, with the items of the fit, of users of the fit.

    What the fit does not know is left out, with a warning that counts it.
    """
    given = _as_clicks(held_out, prefs)
    items, users = _places(given.items, prefs.items), _places(given.users, prefs.users)
    if given.items.tolist() == prefs.items.tolist() and (users >= 0).all():
        return given
    owners, codes = np.repeat(users, given.n_clicks), items[given.codes]
    is_known = (owners >= 0) & (codes >= 0)
    if not is_known.any():
        first = [names[:1].tolist()[0] for names in (given.users, prefs.users, given.items)]
        first += prefs.items[:1].tolist()
        raise ValueError(
            "held_out has no click of a user of the fit on an item of the fit; its users are like "
            "{!r}, those of the fit like {!r}; its items like {!r}, those of the fit like {!r}"
            "".format(*first)
        )
    if (items < 0).any() or (users < 0).any():
        warnings.warn(
            DroppedRowsWarning(
                f"held_out: {int((items < 0).sum())} of {len(items)} items and "
                f"{int((users < 0).sum())} of {len(users)} users are not in the fit, so "
                f"{int((~is_known).sum())} of {len(codes)} clicks are left out"
            ),
            stacklevel=2,
        )
    pairs = rows_of_pairs(owners[is_known], codes[is_known], prefs.n_users, prefs.n_items)
    return Clicks(prefs.weights, prefs.users, prefs.items, *pairs)


def _with_other_items(held_out: Any, prefs: Clicks) -> Clicks:
    try:
        return Preferences.from_clicks(held_out)
    except ValueError as error:
        few = prefs.items[:3].tolist()
        raise ValueError(f"held_out must have items of the fit, such as {few}: {error}") from None


def _as_clicks(held_out: Any, prefs: Clicks) -> Clicks:
    """Clicks by name; a matrix, which has none, has the rows and columns of the fit."""
    if isinstance(held_out, Clicks):
        return held_out
    if isinstance(held_out, Preferences):
        raise TypeError("held_out must be clicks, got rankings")
    is_named = hasattr(held_out, "columns") or isinstance(held_out, Mapping)
    if is_named and not hasattr(held_out, "tocsr"):
        try:
            return Preferences.from_clicks(held_out, items=prefs.items.tolist())
        except ValueError:  # there are other items too
            return _with_other_items(held_out, prefs)
    try:
        return Preferences.from_clicks(
            held_out, users=prefs.users.tolist(), items=prefs.items.tolist()
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            "held_out must be clicks: a dict {user: [item, ...]}, a data frame, Clicks, or a "
            f"matrix with the users and items of the fit; {error}"
        ) from None


def _places(names: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Where each name stands among those that are known, -1 for a stranger."""
    places = {name: place for place, name in enumerate(known.tolist())}
    return np.array([places.get(name, -1) for name in names.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class PersonalOptions:
    """How scores and probabilities are made; see :func:`pseudomallows.fit`."""

    ridge: float | None
    nonnegative: bool
    scores: Any
    calibrate: bool
    held_out: Clicks | None
    others: Others | None  # probabilities of clusters to blend with


class Learner:
    """Learns the scores, the distribution of alpha, and the corrections."""

    def __init__(
        self,
        prefs: Clicks,
        alpha: float | None,
        options: PersonalOptions,
        rng: np.random.Generator,
        executor: Executor,
    ):
        self.prefs, self._options, self._rng, self._executor = prefs, options, rng, executor
        alphas = ALPHAS if alpha is None else np.array([alpha])
        popularity = prefs.item_counts() / max(int(prefs.weights.sum()), 1)
        ties = np.lexsort((rng.random(prefs.n_items), -popularity))
        shares = np.full(len(alphas), 1 / len(alphas))
        self._blank = Personal(np.empty((0, 0)), popularity, ties, alphas, shares)
        self.ridge = options.ridge or 0.0

    def learn(self, report: Callable[[], None]) -> Personal:
        """All of it, in `N_REPORTS` steps."""
        if self._options.ridge is None and self._options.scores is None:
            self.ridge = self._choose_ridge()
        report()
        personal = self.scored(self.prefs)
        shares = _alpha_distribution(personal, self.prefs, self._rng, self._executor)
        used = shares > LEAST_ALPHA_SHARE
        law = {"alphas": personal.alphas[used], "alpha_shares": shares[used] / shares[used].sum()}
        personal = replace(personal, **law)
        self._blank = replace(self._blank, **law)
        report()
        corrections: dict[int, Correction] = {}
        if self._options.calibrate and self._options.held_out is not None:
            window, correction = self._learn_held_out(personal, self._options.held_out)
            corrections[window] = correction
        for window in WINDOWS:
            if self._options.calibrate and self._options.held_out is None:
                found = self._learn_window(personal, window)
                corrections |= {} if found is None else {window: found}
            report()
        return replace(personal, corrections=corrections)

    def scored(self, clicks: Clicks) -> Personal:
        """Scores learnt from these clicks."""
        if self._options.scores is not None:
            return replace(self._blank, scores=_given_scores(self._options.scores, clicks))
        products = products_of(clicks, self._executor)
        weights = ridge_weights(products, self.ridge, self._options.nonnegative)
        return replace(self._blank, item_weights=weights)

    def _choose_ridge(self) -> float:
        """The ridge with most hits on inner splits: one or two clicks of each user hidden, and
        found again among the best ten. Of those within the error of the best, the most usual."""
        prefs = self.prefs
        hide = 2 if np.median(prefs.n_clicks[prefs.is_informative]) >= 6 else 1
        if not (prefs.n_clicks > hide).any():
            return DEFAULT_RIDGE
        found = []
        for _ in range(N_SPLITS):
            shown, hidden = hide_clicks(prefs, hide, self._rng)
            judged = np.flatnonzero(hidden.any(axis=1))
            products = products_of(shown, self._executor)
            judge = functools.partial(
                self._judge_ridge, products, shown.take(judged), hidden[judged]
            )
            found.append(np.array(list(self._executor.map(judge, RIDGES))))
        hits = np.concatenate(found, axis=1)  # [ridge, user of a split]
        behind = hits[hits.sum(axis=1).argmax()] - hits
        near = behind.sum(axis=1) <= np.sqrt((behind.astype(np.float64) ** 2).sum(axis=1))
        return min(np.array(RIDGES)[near].tolist(), key=lambda r: abs(math.log(r / DEFAULT_RIDGE)))

    def _judge_ridge(
        self, products: Floats, seen: Clicks, hidden: NDArray[np.bool_], ridge: float
    ) -> NDArray[np.int64]:
        weights = ridge_weights(products, ridge, self._options.nonnegative)
        return _count_hits(replace(self._blank, item_weights=weights), seen, hidden)

    def _learn_window(self, personal: Personal, window: int) -> Correction | None:
        """Hide the last clicks of a part of the users, score them by what is left, and see what
        comes true; None if too few users have enough clicks.

        Which clicks came last is drawn from the law of each user. If that law is right, what is
        left are the first ranks and what is hidden the next ones, so that there is nothing to
        correct; clicks hidden at random would be any of the ranks.
        """
        prefs = self.prefs
        able = np.flatnonzero((prefs.n_clicks >= window + 2) & prefs.is_informative)
        n_users = min(MAX_USERS, len(able), max(prefs.n_users // 2, MIN_USERS))
        if n_users < MIN_USERS:
            return None
        chosen = np.sort(self._rng.choice(able, n_users, replace=False))
        seen = prefs.take(chosen)
        seed = int(self._rng.integers(2**63))
        parts = [
            personal.draw_last_clicks(seen, rows, chosen, window, seed) for rows in blocks(n_users)
        ]
        last = np.concatenate(parts)
        hidden = np.zeros((n_users, prefs.n_items), dtype=bool)
        owners = np.repeat(np.arange(n_users), seen.n_clicks)
        hidden[owners[last], seen.codes[last]] = True
        of_chosen = np.repeat(np.isin(np.arange(prefs.n_users), chosen), prefs.n_clicks)
        taken = np.zeros(len(prefs.codes), dtype=bool)
        taken[of_chosen] = last
        shown = without_clicks(prefs, taken)
        return self._correct(self.scored(shown), shown, chosen, hidden, window, of_scores=False)

    def _learn_held_out(self, personal: Personal, held_out: Clicks) -> tuple[int, Correction]:
        """Learn from clicks that came later than those of the fit."""
        prefs = self.prefs
        held_out = held_out.take(held_out.n_clicks > 0)
        if held_out.n_users > MAX_HELD_OUT:
            rows = self._rng.choice(held_out.n_users, MAX_HELD_OUT, replace=False)
            held_out = held_out.take(np.sort(rows))
        chosen = rows_of_users(prefs, held_out.users.tolist())
        known = seen_table(prefs.take(chosen), slice(0, len(chosen)))
        later = seen_table(held_out, slice(0, len(chosen))) & ~known
        chosen, later = chosen[later.any(axis=1)], later[later.any(axis=1)]
        if len(chosen) < MIN_USERS:
            raise ValueError(
                f"held_out must have clicks that are not in the fit, of {MIN_USERS} users or more, "
                f"got {len(chosen)} such users"
            )
        window = max(1, round(float(later.sum(axis=1).mean())))
        return window, self._correct(personal, prefs, chosen, later, window, of_scores=True)

    def _correct(
        self,
        personal: Personal,
        shown: Clicks,
        users: NDArray[np.int64],
        hidden: NDArray[np.bool_],
        window: int,
        of_scores: bool,
    ) -> Correction:
        """Learn from what is hidden; without `of_scores`, from the probabilities alone: one
        monotone map, which the change in scores when clicks are hidden cannot mislead."""
        seen = shown.take(users)
        tables = personal.prepare(seen, window)
        others = None if self._options.others is None else self._options.others(seen, window)
        features = []
        for rows in blocks(seen.n_users):
            blend = None if others is None else others[rows]
            features.append(personal.features(*personal.law(tables, seen, rows, users), blend))
        unseen = ~seen_table(seen, slice(0, seen.n_users))
        all_features = np.concatenate(features)
        if not of_scores:
            all_features[..., personal.score_features] = 0.0
        weights = seen.weights.astype(np.float64)
        return learn_correction(all_features, hidden, unseen, weights, window, n_free=2)


def seen_table(seen: Clicks, rows: slice) -> NDArray[np.bool_]:
    """``table[row, item]``: has the user clicked the item?"""
    starts = seen.starts[rows.start : rows.stop + 1]
    table = np.zeros((len(starts) - 1, seen.n_items), dtype=bool)
    owners = np.repeat(np.arange(len(table)), np.diff(starts))
    table[owners, seen.codes[starts[0] : starts[-1]]] = True
    return table


def _count_hits(personal: Personal, seen: Clicks, hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many hidden clicks of each user, times the weight, are among ten best unseen items."""
    counts, n_best = np.empty(seen.n_users, np.int64), max(1, min(10, seen.n_items // 4))
    for rows in blocks(seen.n_users, 8 * BLOCK):
        scores = np.where(seen_table(seen, rows), -np.inf, personal.scores_of(seen, rows))
        top = np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]
        counts[rows] = seen.weights[rows] * np.take_along_axis(hidden[rows], top, axis=1).sum(
            axis=1
        )
    return counts


def _given_scores(scores: Any, clicks: Clicks) -> Floats:
    """Scores of all users from an array, or from a function that learns them from the clicks."""
    matrix = clicks_matrix(clicks.starts, clicks.codes, clicks.n_items)
    found = scores(matrix) if callable(scores) else scores
    found = found.toarray() if hasattr(found, "toarray") else found
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scores must be an array of numbers, users x items: {error}") from None
    if values.shape != (clicks.n_users, clicks.n_items):
        raise ValueError(
            f"scores must have {clicks.n_users} users and {clicks.n_items} items, got an array of "
            f"shape {values.shape}"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        user, item = np.argwhere(wrong)[0]
        raise ValueError(
            f"scores must be finite numbers, got {values[user, item]} for user {user} and item "
            f"{item}; {int(wrong.sum())} of {values.size} are wrong"
        )
    if np.ptp(values) == 0:
        raise ValueError(f"scores must not be all the same, got {values.flat[0]} everywhere")
    if np.abs(values).max() > 1e100:
        raise ValueError(f"scores must be at most 1e100, got {np.abs(values).max():.3g}")
    return np.asarray((values - values.mean()) / values.std())


def _alpha_distribution(
    personal: Personal, prefs: Clicks, rng: np.random.Generator, executor: Executor
) -> Floats:
    """The distribution of alpha in the population, by EM on the exact likelihoods of the users."""
    if len(personal.alphas) == 1:
        return np.ones(1)
    chosen = np.flatnonzero(prefs.is_informative)
    if len(chosen) > 2 * MAX_USERS:
        chosen = np.sort(rng.choice(chosen, 2 * MAX_USERS, replace=False))
    seen = prefs.take(chosen)

    def work(rows: slice) -> Floats:
        scores = personal.scores_for(seen, rows, chosen)
        return personal.log_likelihoods(seen, rows, personal.rankings_of(scores))

    values = np.concatenate(list(executor.map(work, blocks(seen.n_users, BLOCK // 2))))
    likelihoods = np.exp(values - values.max(axis=1, keepdims=True))
    shares = np.full(len(personal.alphas), 1 / len(personal.alphas))
    weights = seen.weights / seen.weights.sum()
    for _ in range(N_STEPS):
        own = likelihoods * shares
        shares = weights @ (own / own.sum(axis=1, keepdims=True))
    return np.asarray(shares)


def scores_from(model: Any) -> Train:
    """Adapter for the recommenders of `implicit`: their scores, learnt anew from given clicks.

    Give a model that is not fitted, for instance
    ``pm.fit(clicks, "personal", scores=pm.scores_from(AlternatingLeastSquares(factors=64)))``.
    Works with anything that has a `fit` for a sparse matrix and, after it, `user_factors` and
    `item_factors`, or a `similarity` of items.
    """

    def train(clicks: Any) -> ArrayLike:
        fitted, matrix = copy.deepcopy(model), clicks.tocsr().astype(np.float32)
        fitted.fit(matrix, show_progress=False)
        if hasattr(fitted, "user_factors"):
            return np.asarray(fitted.user_factors) @ np.asarray(fitted.item_factors).T
        return np.asarray((matrix @ fitted.similarity).todense())

    return train
