"""Method "personal": an order of each user's own, learnt from the user's clicks."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import distances
from ...engines.executors import BLOCK, Executor, Threads, blocks, check_local
from ...kernels.click_rows import slice_clicks
from ...kernels.footrule.personal import OwnLaws
from ...latent.own_laws import OWN_LAWS
from ...latent.population import check_informative
from ...posteriors.corrections import Correction, features_of, marks_of
from ...posteriors.personal import PersonalFit, PersonalModel
from ...posteriors.posterior import Posterior
from ...preferences import Clicks, Preferences, rows_of_users
from ...preferences.held_out import check_held_out
from ...preferences.hide import hide_clicks, without_clicks
from ...rankings import check_number
from ...recommendations.personal import PersonalChances
from ...recommendations.recommenders import chances_of
from ..personal.blend import Blend, choose_blend, sample_of, why_not
from ..personal.corrections import Cases, learn_correction, thin_places
from ..personal.item_scores import given_scores, products_of, ridge_weights
from .method import Case, Options, flag, option

RIDGES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)  # in units of the mean number of clicks of an item
WINDOWS = (1, 2, 4, 7, 10, 20, 30)  # numbers of next items for which what comes true is looked at
DEFAULT_RIDGE, N_SPLITS = 0.3, 6
USUAL_BEST = 10  # recommendations that the scores are made for
N_REPORTS = 3
MIN_USERS, MAX_USERS, MAX_HELD_OUT = 50, 5000, 10_000  # behind a correction
MAX_OF_WINDOW = 2500  # users who are looked at for each window
N_STEPS = 100  # of EM for the distribution of alpha
LEAST_ALPHA_SHARE = 0.01  # of an alpha in the population, for it to stay in the grid
Floats = NDArray[np.float64]
Others = Callable[[Clicks, int], Floats]


@dataclass(frozen=True, kw_only=True)
class Personal(Options):
    """Every user has a consensus of their own: the ranking of scores from their other clicks."""

    name: ClassVar[str] = "personal"
    words: ClassVar[str] = "an order of each user's own"

    ridge: float | None = option(
        None,
        "One regression with this penalty, in units of the mean number of clicks of an item; "
        "default: a blend of several scores.",
        check=check_number,
    )
    nonnegative: bool = option(True, "False: one regression, with weights of any sign.", check=flag)
    blend: bool = option(
        True,
        "Blend regressions, factors and popularity, with weights learnt on inner splits, where one "
        "click of each user is hidden. False, or for fewer than 10 or more than 4,000 items, or "
        "fewer than 50 users with two clicks: one regression, its penalty the best of a few.",
        check=flag,
    )
    scores: Any = option(
        None,
        "Scores of your own, (n_users, n_items), or a function that learns them from a sparse "
        "matrix of clicks, so that they can be learnt again without hidden clicks; for the "
        "recommenders of `implicit` see `scores_from`. Scores that use a user's click on the item "
        "itself look surer than they are: give `held_out` with them.",
    )
    held_out: Any = option(
        None,
        "Later clicks of some of the users, 50 or more, in the forms of `Preferences.from_clicks`. "
        "The probabilities are corrected by what came true of them, for all windows up to twice "
        "the largest number of them that 50 users have. "
        "Users and items that the fit does not have are left out, with a warning that counts them.",
    )
    calibrate: bool = option(
        True,
        "Without `held_out`: correct by an inner split, for all windows up to twice the largest "
        "that 50 users have clicks for. The last clicks of a part of the users are hidden; which "
        "were the last is drawn from the law of each, so that the map is the identity where the "
        "law is right. An array of scores cannot be learnt again without the hidden clicks: "
        "if it was learnt from them, give False.",
        check=flag,
    )
    with_clusters: Posterior | None = option(
        None,
        "A fit of the same clicks with clusters, to blend with; how much is learnt along with the "
        "correction.",
    )

    @property
    def is_single(self) -> bool:
        """Is one regression asked for, or no scores at all?"""
        return self.ridge is not None or not self.nonnegative or not self.blend

    @property
    def n_best(self) -> int:
        """For how many recommendations the scores are made: as many as come later."""
        if self.held_out is None:
            return USUAL_BEST
        n_later = self.held_out.n_clicks
        return max(1, round(float(n_later[n_later > 0].mean()))) if n_later.any() else USUAL_BEST

    @property
    def others(self) -> Others | None:
        """The probabilities of the clusters."""
        clusters = self.with_clusters
        return None if clusters is None else functools.partial(chances_of, clusters)

    def checked(self, prefs: Clicks) -> "Personal":
        """The same, what was given with it checked against the data."""
        if self.with_clusters is not None:
            _check_clusters(self.with_clusters, prefs, self.calibrate)
        if self.held_out is None:
            return self
        return replace(self, held_out=check_held_out(self.held_out, prefs))

    def settings(self) -> dict[str, Any]:
        """For the settings of a fit; data that was given is told by a mark only."""
        return {
            "nonnegative": self.nonnegative,
            "blend": self.blend,
            "ridge_given": self.ridge is not None,
            "calibrate": self.calibrate,
            "held_out": self.held_out is not None,
            "given_scores": self.scores is not None,
            "with_clusters": self.with_clusters is not None,
        }


def _check_clusters(clusters: Any, prefs: Clicks, calibrate: bool) -> None:
    if not isinstance(clusters, Posterior) or clusters.clicks is None:
        raise TypeError("with_clusters must be a posterior from a fit of clicks")
    if clusters.items.tolist() != prefs.items.tolist():
        raise ValueError("with_clusters must have the items of the fit, in its order")
    if not calibrate:
        raise ValueError("with_clusters needs calibrate=True, to learn how to blend")


def _check_call(prefs: Preferences, wanted: dict[str, Any]) -> Clicks:
    """The clicks to learn from; refuse other data, and what has no meaning for this method."""
    if not isinstance(prefs, Clicks):
        raise TypeError("method='personal' needs clicks (pm.Preferences.from_clicks)")
    if wanted["n_draws"] is not None or wanted["n_clusters"] != 1:
        raise ValueError(
            "method='personal' has neither draws nor clusters; to blend it with clusters, give "
            "with_clusters=posterior"
        )
    if distances.get(wanted["distance"]).name not in OWN_LAWS:
        raise ValueError(
            f"method='personal' needs distance='footrule' or 'kendall', got {wanted['distance']!r}"
        )
    check_informative(prefs.is_informative)
    return prefs


def fit_personal(
    prefs: Preferences,
    alpha: float | None,
    wanted: dict[str, Any],  # n_draws, n_clusters and distance, as `fit` was asked
    options: dict[str, Any],
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Callable[[int, int], None],
) -> PersonalFit:
    """Learn an order of each user's own."""
    check_local(executor, "method='personal'")
    clicks = _check_call(prefs, wanted)
    method = Personal.make(Case.of(clicks), options).checked(clicks)
    distance = distances.get(wanted["distance"]).name
    learner = Learner(clicks, alpha, distance, method, rng, executor or Threads())
    steps = iter(range(1, N_REPORTS + 1))
    model = learner.learn(lambda: progress(next(steps), N_REPORTS))
    more = {"alpha_given": alpha is not None, "order": None} | learner.scores_settings()
    settings = {
        "method": "personal",
        "distance": distance,
        "alpha": model.mean_alpha,
        "n_users": int(clicks.weights[clicks.is_informative].sum()),
        "kind": clicks.kind,
        "is_full": False,
        "options": method.settings() | more,
    }
    return PersonalFit(
        **{each.name: getattr(model, each.name) for each in fields(model)},
        items=clicks.items,
        users=clicks.users,
        data=clicks,
        settings=settings,
        clusters=method.with_clusters,
    )


class Learner:
    """Learns the scores, the distribution of alpha, and the corrections."""

    def __init__(
        self,
        prefs: Clicks,
        alpha: float | None,
        distance: str,
        options: Personal,
        rng: np.random.Generator,
        executor: Executor,
    ):
        self.prefs, self._options, self._rng, self._executor = prefs, options, rng, executor
        grid = OWN_LAWS[distance].grid(prefs.n_items)
        alphas = grid if alpha is None else np.array([alpha])
        popularity = prefs.item_counts() / max(int(prefs.weights.sum()), 1)
        ties = np.lexsort((rng.random(prefs.n_items), -popularity))
        shares = np.full(len(alphas), 1 / len(alphas))
        blank = PersonalModel(np.empty((0, 0)), popularity, ties, alphas, shares)
        self._blank = replace(blank, distance=distance)
        self._ridge = options.ridge
        self._why_single = "one regression, as was asked for" if options.is_single else None
        self._blend: Blend | None = None

    def scores_settings(self) -> dict[str, Any]:
        """How the scores were made."""
        if self._options.scores is not None:
            return {"ridge": None}
        if self._blend is None:
            return {"ridge": self._ridge, "parts": [], "single": self._why_single}
        objective = {"objective": self._blend.objective, "n_best": self._n_best}
        return {"ridge": None, "parts": self._blend.settings()} | objective

    @property
    def _n_best(self) -> int:
        return max(1, min(self._options.n_best, self.prefs.n_items // 4))

    def learn(self, report: Callable[[], None]) -> PersonalModel:
        """All of it, in `N_REPORTS` steps."""
        if self._options.scores is None:
            self._choose_scores()
        report()
        model = self.scored(self.prefs)
        shares = _alpha_distribution(model, self.prefs, self._rng, self._executor)
        used = shares > LEAST_ALPHA_SHARE
        law = {"alphas": model.alphas[used], "alpha_shares": shares[used] / shares[used].sum()}
        model = replace(model, **law)
        self._blank = replace(self._blank, **law)
        report()
        found = replace(model, correction=self._learn_correction(model))
        report()
        return found

    def _learn_correction(self, model: PersonalModel) -> Correction | None:
        if not self._options.calibrate:
            return None
        if self._options.held_out is not None:
            return self._learn_held_out(model, self._options.held_out)
        return self._learn_inner(model)

    def scored(self, clicks: Clicks) -> PersonalModel:
        """Scores learnt from these clicks."""
        if self._options.scores is not None:
            return replace(self._blank, scores=given_scores(self._options.scores, clicks))
        if self._blend is not None:
            learnt = self._blend.learn(clicks, self._sample, self._executor)
            return replace(self._blank, item_weights=learnt.item_weights, bias=learnt.bias)
        assert self._ridge is not None
        products = products_of(clicks, self._executor)
        law = (self._ridge, self._options.nonnegative, self._executor)
        return replace(self._blank, item_weights=ridge_weights(products, *law))

    def _choose_scores(self) -> None:
        """A blend, or the ridge of a single regression."""
        self._why_single = self._why_single or why_not(self.prefs)
        if self._why_single is None:
            how = (self._rng, self._executor)
            self._blend = choose_blend(self.prefs, self._n_best, *how)
            informative = np.flatnonzero(self.prefs.is_informative)
            self._sample = sample_of(informative, self.prefs.n_items, self._rng)
        elif self._ridge is None:
            self._ridge = self._choose_ridge()

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

    def _learn_inner(self, model: PersonalModel) -> Correction | None:
        """Hide the last clicks of a part of the users, score them by what is left, and see what
        comes true; None if too few users have enough clicks.

        Which clicks came last is drawn from the law of each user. If that law is right, what is
        left are the first ranks and what is hidden the next ones, so that there is nothing to
        correct; clicks hidden at random would be any of the ranks. The number hidden is one of the
        windows, and these clicks, in the order drawn, serve all shorter windows too.
        """
        prefs = self.prefs
        most = np.where(prefs.is_informative, np.minimum(prefs.n_clicks - 2, WINDOWS[-1]), 0)
        able = np.flatnonzero(most >= 1)
        n_users = min(MAX_USERS, len(able), max(prefs.n_users // 2, MIN_USERS))
        if n_users < MIN_USERS:
            return None
        chosen = np.sort(self._rng.choice(able, n_users, replace=False))
        windows = windows_for(most[chosen])
        n_hidden = self._draw_numbers(most[chosen], windows)
        order = self._draw_orders(model, chosen, n_hidden, windows)
        of_chosen = np.repeat(np.isin(np.arange(prefs.n_users), chosen), prefs.n_clicks)
        taken = np.zeros(len(prefs.codes), dtype=bool)
        taken[of_chosen] = order > 0
        shown, seen = without_clicks(prefs, taken), prefs.take(chosen)
        owners = np.repeat(np.arange(n_users), seen.n_clicks)

        def came_true(rows: NDArray[np.int64], window: int) -> Floats:
            table = np.zeros((n_users, prefs.n_items), dtype=bool)
            is_next = (order > 0) & (order <= window)
            table[owners[is_next], seen.codes[is_next]] = True
            return table[rows].astype(np.float64)

        later = Later(chosen, n_hidden, windows, came_true, has_order=True)
        return self._correct(self.scored(shown), shown, later, of_scores=False)

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
        starts = self.prefs.take(chosen).starts
        order = np.zeros(starts[-1], dtype=np.int64)
        for number in windows:
            rows, seed = np.flatnonzero(n_hidden == number), int(self._rng.integers(2**63))
            users = self.prefs.take(chosen[rows])
            draw = functools.partial(_draw_last, model, users, chosen[rows], seed)
            is_hidden = draw(number)
            found = np.where(is_hidden, number, 0)
            for window in [each for each in windows if each < number][::-1]:
                found[is_hidden & ~draw(number - window)] = window
            order[_clicks_of_rows(starts, rows)] = found
        return order

    def _learn_held_out(self, model: PersonalModel, held_out: Clicks) -> Correction:
        """Learn from clicks that came later than those of the fit. Which of a user's came first is
        not known, so that each is among the next w of n with a chance of w / n."""
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
        n_later = later.sum(axis=1)

        def came_true(rows: NDArray[np.int64], window: int) -> Floats:
            return np.asarray(later[rows] * (window / n_later[rows])[:, None])

        found = Later(chosen, n_later, windows_for(n_later), came_true, has_order=False)
        return self._correct(model, prefs, found, of_scores=True)

    def _correct(
        self, model: PersonalModel, shown: Clicks, later: "Later", of_scores: bool
    ) -> Correction:
        """Learn from what came later; without `of_scores`, from probabilities and places alone,
        which the change in scores when clicks are hidden cannot mislead."""
        chances = PersonalChances(model)
        some = later.users[: 8 * BLOCK]
        sample = shown.take(some)
        rows = slice(0, sample.n_users)
        scores = model.scores_for(sample, rows, some)[~seen_table(sample, rows)]
        marks = marks_of(scores, later.windows[-1])
        parts = []
        for window in later.windows:
            able = np.flatnonzero(later.n_clicks >= window)
            if len(able) > MAX_OF_WINDOW:
                able = np.sort(self._rng.choice(able, MAX_OF_WINDOW, replace=False))
            parts += self._cases(chances, shown, later, able, window, marks)
        return learn_correction(Cases.joined(parts), marks, of_scores)

    def _cases(
        self,
        chances: PersonalChances,
        shown: Clicks,
        later: "Later",
        able: NDArray[np.int64],
        window: int,
        marks: Floats,
    ) -> list[Cases]:
        """What the law said of a window, and what came true, block by block."""
        users = later.users[able]
        seen, parts = shown.take(users), []
        tables = chances.prepare(seen, window)
        others = None if self._options.others is None else self._options.others(seen, window)
        for rows in blocks(seen.n_users):
            law = chances.uncorrected(tables, seen, rows, users)
            places = places_of(law.rankings, seen_table(seen, rows))
            stands_for = thin_places(places, shown.n_items - seen.n_clicks[rows], window)
            is_case = stands_for > 0
            blend = None if others is None else others[rows]
            numbers = (law.chances, law.scores, law.of_users, blend)
            features = features_of(numbers, places, window, marks)
            weights = stands_for * seen.weights[rows, None] * later.weight(window)
            targets = later.came_true(able[rows], window)
            parts.append(Cases(features[is_case], targets[is_case], weights[is_case]))
        return parts


class Later(NamedTuple):
    """Clicks that came later, or were hidden: `n_clicks[user]` of `users`; the windows to look at;
    and ``came_true(rows, window)[row, item]``, the chance that the item was among the next.

    Where the order is not known, the longest window tells most, and the others by their share."""

    users: NDArray[np.int64]
    n_clicks: NDArray[np.int64]
    windows: list[int]
    came_true: Callable[[NDArray[np.int64], int], Floats]
    has_order: bool

    def weight(self, window: int) -> float:
        """How much a case of this window tells."""
        return 1.0 if self.has_order else window / self.windows[-1]


def windows_for(n_later: NDArray[np.int64]) -> list[int]:
    """The windows to look at: 1, 3, 10 and so on, and the largest for which there are users
    enough with so many clicks."""
    largest = min(int(np.sort(n_later)[-MIN_USERS]), WINDOWS[-1])
    return [*(window for window in WINDOWS if window < largest), largest]


def places_of(rankings: NDArray[np.int32], seen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """``places[row, item]`` among the unseen items of a user, from 0; what is seen comes last."""
    order = np.argsort(rankings + seen * np.int64(rankings.shape[1]), axis=1)
    places = np.empty(rankings.shape, dtype=np.int64)
    np.put_along_axis(places, order, np.arange(rankings.shape[1])[None], axis=1)
    return places


def _clicks_of_rows(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the clicks of some rows among all clicks."""
    ranges = [np.arange(starts[row], starts[row + 1]) for row in rows.tolist()]
    return np.concatenate([np.empty(0, dtype=np.int64), *ranges])


def _draw_last(
    model: PersonalModel, seen: Clicks, users: NDArray[np.int64], seed: int, n_last: int
) -> NDArray[np.bool_]:
    """For each click of these users: is it one of the last, in a draw from the user's law?"""
    last = np.empty(len(seen.codes), dtype=bool)
    for rows in blocks(seen.n_users):
        rankings = model.rankings_of(model.scores_for(seen, rows, users))
        own_laws = OwnLaws(rankings, model.alpha_shares_of(seen, rows, rankings))
        clicks = slice_clicks(seen, rows)
        mine = slice(clicks.starts[0], clicks.starts[-1])
        last[mine] = model.law.draw_last(seed, rows.start, clicks, own_laws, n_last)
    return last


def seen_table(seen: Clicks, rows: slice) -> NDArray[np.bool_]:
    """``table[row, item]``: has the user clicked the item?"""
    starts = seen.starts[rows.start : rows.stop + 1]
    table = np.zeros((len(starts) - 1, seen.n_items), dtype=bool)
    owners = np.repeat(np.arange(len(table)), np.diff(starts))
    table[owners, seen.codes[starts[0] : starts[-1]]] = True
    return table


def _count_hits(model: PersonalModel, seen: Clicks, hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many hidden clicks of each user, times the weight, are among ten best unseen items."""
    counts, n_best = np.empty(seen.n_users, np.int64), max(1, min(10, seen.n_items // 4))
    for rows in blocks(seen.n_users, 8 * BLOCK):
        scores = np.where(seen_table(seen, rows), -np.inf, model.scores_of(seen, rows))
        top = np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]
        counts[rows] = seen.weights[rows] * np.take_along_axis(hidden[rows], top, axis=1).sum(
            axis=1
        )
    return counts


def _alpha_distribution(
    model: PersonalModel, prefs: Clicks, rng: np.random.Generator, executor: Executor
) -> Floats:
    """The distribution of alpha in the population, by EM on the exact likelihoods of the users."""
    if len(model.alphas) == 1:
        return np.ones(1)
    chosen = np.flatnonzero(prefs.is_informative)
    if len(chosen) > 2 * MAX_USERS:
        chosen = np.sort(rng.choice(chosen, 2 * MAX_USERS, replace=False))
    seen = prefs.take(chosen)

    def work(rows: slice) -> Floats:
        scores = model.scores_for(seen, rows, chosen)
        return model.log_likelihoods(seen, rows, model.rankings_of(scores))

    values = np.concatenate(list(executor.map(work, blocks(seen.n_users, BLOCK // 2))))
    likelihoods = np.exp(values - values.max(axis=1, keepdims=True))
    shares = np.full(len(model.alphas), 1 / len(model.alphas))
    weights = seen.weights / seen.weights.sum()
    for _ in range(N_STEPS):
        own = likelihoods * shares
        shares = weights @ (own / own.sum(axis=1, keepdims=True))
    return np.asarray(shares)
