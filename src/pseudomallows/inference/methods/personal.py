"""Method "personal": an order of each user's own, learnt from the user's clicks."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import distances
from ...engines.executors import BLOCK, Executor, Threads, blocks, check_local
from ...kernels.footrule.personal import LEAST_SCORE, OwnLaws
from ...latent.own_laws import OWN_LAWS
from ...latent.population import check_informative
from ...posteriors.corrections import Correction
from ...posteriors.item_scores import ItemScores
from ...posteriors.personal import MAX_ITEMS, PersonalFit, PersonalModel
from ...posteriors.posterior import Posterior
from ...preferences import Clicks, Preferences, rows_of_users
from ...preferences.held_out import check_held_out
from ...preferences.hide import hide_clicks, without_clicks
from ...rankings import check_number
from ...recommendations.personal import PersonalChances
from ...recommendations.recommenders import chances_of
from ..personal.blend import MAX_SPREAD, Blend, Say, choose_blend, sample_of, silent, why_not
from ..personal.corrections import learn_correction
from ..personal.item_scores import given_scores, products_of, ridge_weights
from ..personal.parts import Part, Regression
from ..personal.products import Products, make_products, start_from, taken_from
from .method import Case, Options, flag, option

RIDGES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)  # in units of the mean number of clicks of an item
WINDOWS = (1, 3, 10)  # numbers of next items for which a correction is learnt
DEFAULT_RIDGE, N_SPLITS = 0.3, 6
USUAL_BEST = 10  # recommendations that the scores are made for
N_REPORTS = 2 + len(WINDOWS)
MIN_USERS, MAX_USERS, MAX_HELD_OUT = 50, 5000, 10_000  # behind a correction
MAX_PAIRS, LEAST_USERS = 2_000_000, 500  # users x items behind a correction; users at least
LEAST_OF_LARGE, N_LEARNT = 2000, 256  # the same with very many items; places that are looked at
MOST_GROWTH = 1.25  # of the clicks, up to which an update keeps the blend
MAX_CELLS = 4_000_000  # of a table of scores
N_STEPS = 100  # of EM for the distribution of alpha
LEAST_ALPHA_SHARE = 0.01  # of an alpha in the population, for it to stay in the grid
N_USER_FEATURES = 2  # clicks and alpha: they come last
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
        "click of each user is hidden. False, or for fewer than 10 items, or fewer than 50 users "
        "with two clicks: one regression, its penalty the best of a few. With more than 4,000 "
        "items the regressions are on the 200 nearest items of each.",
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
        "The probabilities are corrected by what came true of them, for windows like their number. "
        "Users and items that the fit does not have are left out, with a warning that counts them.",
    )
    calibrate: bool = option(
        True,
        "Without `held_out`: correct by an inner split, one monotone map of the probabilities for "
        "each of the windows 1, 3 and 10. The last clicks of a part of the users are hidden; which "
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
        if not self.nonnegative and prefs.n_items > MAX_ITEMS:
            raise ValueError(
                "nonnegative=False needs an array of items x items, so at most "
                f"{MAX_ITEMS:,} items, got {prefs.n_items:,}: leave it out"
            )
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
    _check_size(prefs.n_items, wanted["distance"])
    return prefs


def _check_size(n_items: int, distance: str) -> None:
    if n_items > MAX_ITEMS and distance == "footrule":
        raise ValueError(
            f"with more than {MAX_ITEMS:,} items method='personal' needs distance='kendall', its "
            f"default there, since the footrule's tables would grow with items x items; got "
            f"'footrule' and {n_items:,} items: leave distance out"
        )


def fit_personal(
    prefs: Preferences,
    alpha: float | None,
    wanted: dict[str, Any],  # n_draws, n_clusters and distance, as `fit` was asked
    options: dict[str, Any],
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Callable[[int, int], None],
    old: PersonalFit | None = None,
) -> PersonalFit:
    """Learn an order of each user's own; from an `old` fit of most of these clicks, keep the blend
    and begin with its weights. If `progress` has a `say`, it is told what is being done."""
    check_local(executor, "method='personal'")
    clicks = _check_call(prefs, wanted)
    method = Personal.make(Case.of(clicks), options).checked(clicks)
    distance = distances.get(wanted["distance"]).name
    learner = Learner(clicks, alpha, distance, method, rng, executor or Threads())
    learner.say = getattr(progress, "say", silent)
    if old is not None:
        learner.keep_blend(old)
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
        self._kept: dict[Part, ItemScores] = {}  # parts as they were learnt last, to begin with
        self._n_chosen = len(prefs.codes)  # clicks from which the blend was chosen
        self.say: Say = silent

    def keep_blend(self, old: PersonalFit) -> None:
        """Keep the blend of an old fit, unless the clicks have grown too much since it was chosen,
        and begin with its weights."""
        options = old.settings["options"]
        blend, n_chosen = Blend.from_settings(options), options.get("n_chosen")
        if blend is None or not isinstance(n_chosen, int):
            return
        if len(self.prefs.codes) > MOST_GROWTH * n_chosen or self.prefs.n_items != old.n_items:
            return
        self._blend, self._n_chosen = blend, n_chosen
        if not self._is_large and isinstance(old.item_weights, np.ndarray):
            for part in blend.parts:
                if isinstance(part, Regression):
                    law = (part.power, part.ridge)
                    self._kept[part] = start_from(old.item_weights, self._products, *law)

    @functools.cached_property
    def _products(self) -> Products:
        return make_products(self.prefs, self._executor)

    @property
    def _is_large(self) -> bool:
        return self.prefs.n_items > MAX_ITEMS

    def _products_of(self, clicks: Clicks) -> Products:
        """From those of all clicks, if these are a part of them."""
        taken = None if clicks is self.prefs else taken_from(self.prefs, clicks)
        if taken is not None:
            return self._products.without(taken)
        return self._products if clicks is self.prefs else make_products(clicks, self._executor)

    def scores_settings(self) -> dict[str, Any]:
        """How the scores were made."""
        if self._options.scores is not None:
            return {"ridge": None}
        if self._blend is None:
            return {"ridge": self._ridge, "parts": [], "single": self._why_single}
        objective: dict[str, Any] = {"objective": self._blend.objective, "n_best": self._n_best}
        objective["n_chosen"] = self._n_chosen
        return {"ridge": None, "parts": self._blend.settings()} | objective

    @property
    def _n_best(self) -> int:
        return max(1, min(self._options.n_best, self.prefs.n_items // 4))

    def learn(self, report: Callable[[], None]) -> PersonalModel:
        """All of it, in `N_REPORTS` steps."""
        if self._options.scores is None:
            self._choose_scores()
        report()
        self.say("learning the scores from all clicks")
        model = self.scored(self.prefs)
        self.say("learning how closely users keep to their order")
        shares = _alpha_distribution(model, self.prefs, self._rng, self._executor)
        used = shares > LEAST_ALPHA_SHARE
        law = {"alphas": model.alphas[used], "alpha_shares": shares[used] / shares[used].sum()}
        model = replace(model, **law)
        self._blank = replace(self._blank, **law)
        report()
        self.say("correcting the probabilities by hidden clicks")
        return replace(model, corrections=self._learn_corrections(model, report))

    def _learn_corrections(
        self, model: PersonalModel, report: Callable[[], None]
    ) -> dict[int, Correction]:
        corrections: dict[int, Correction] = {}
        if self._options.calibrate and self._options.held_out is not None:
            window, correction = self._learn_held_out(model, self._options.held_out)
            corrections[window] = correction
        for window in WINDOWS:
            if self._options.calibrate and self._options.held_out is None:
                found = self._learn_window(model, window)
                corrections |= {} if found is None else {window: found}
            report()
        return corrections

    def scored(self, clicks: Clicks) -> PersonalModel:
        """Scores learnt from these clicks."""
        if self._options.scores is not None:
            return replace(self._blank, scores=given_scores(self._options.scores, clicks))
        if self._blend is not None:
            learnt = self._blend.learn(self._products_of(clicks), self._sample, self._kept)
            return self._with_scores(learnt)
        assert self._ridge is not None
        if self._is_large:
            return self._with_scores(
                Regression(0, self._ridge).learn(self._products_of(clicks), None)
            )
        products = products_of(clicks, self._executor)
        law = (self._ridge, self._options.nonnegative, self._executor)
        return replace(self._blank, item_weights=ridge_weights(products, *law))

    def _with_scores(self, learnt: ItemScores) -> PersonalModel:
        return replace(
            self._blank,
            item_weights=learnt.weights,
            bias=learnt.bias,
            left=learnt.left,
            right=learnt.right,
        )

    def _choose_scores(self) -> None:
        """A blend, or the ridge of a single regression."""
        self._why_single = self._why_single or why_not(self.prefs)
        if self._why_single is None:
            if self._blend is None:
                how = (self._rng, self._kept, self.say)
                self._blend = choose_blend(self._products, self._n_best, *how)
            informative = np.flatnonzero(self.prefs.is_informative)
            self._sample = sample_of(informative, self._rng, MAX_SPREAD)
        elif self._ridge is None:
            self._ridge = DEFAULT_RIDGE if self._is_large else self._choose_ridge()

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

    def _learn_window(self, model: PersonalModel, window: int) -> Correction | None:
        """Hide the last clicks of a part of the users, score them by what is left, and see what
        comes true; None if too few users have enough clicks.

        Which clicks came last is drawn from the law of each user. If that law is right, what is
        left are the first ranks and what is hidden the next ones, so that there is nothing to
        correct; clicks hidden at random would be any of the ranks.
        """
        prefs = self.prefs
        able = np.flatnonzero((prefs.n_clicks >= window + 2) & prefs.is_informative)
        most = most_users(MAX_USERS, prefs.n_items)
        n_users = min(most, len(able), max(prefs.n_users // 2, MIN_USERS))
        if n_users < MIN_USERS:
            return None
        chosen = np.sort(self._rng.choice(able, n_users, replace=False))
        seen = prefs.take(chosen)
        last = _draw_last(model, seen, chosen, window, int(self._rng.integers(2**63)))
        hidden = np.zeros((n_users, prefs.n_items), dtype=bool)
        owners = np.repeat(np.arange(n_users), seen.n_clicks)
        hidden[owners[last], seen.codes[last]] = True
        of_chosen = np.repeat(np.isin(np.arange(prefs.n_users), chosen), prefs.n_clicks)
        taken = np.zeros(len(prefs.codes), dtype=bool)
        taken[of_chosen] = last
        shown = without_clicks(prefs, taken)
        return self._correct(self.scored(shown), shown, chosen, hidden, window, of_scores=False)

    def _learn_held_out(self, model: PersonalModel, held_out: Clicks) -> tuple[int, Correction]:
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
        return window, self._correct(model, prefs, chosen, later, window, of_scores=True)

    def _correct(
        self,
        model: PersonalModel,
        shown: Clicks,
        users: NDArray[np.int64],
        hidden: NDArray[np.bool_],
        window: int,
        of_scores: bool,
    ) -> Correction:
        """Learn from what is hidden; without `of_scores`, from the probabilities alone: one
        monotone map, which the change in scores when clicks are hidden cannot mislead."""
        seen, others, chances = shown.take(users), None, PersonalChances(model)
        tables = chances.prepare(seen, window)
        if self._options.others is not None:
            others = self._options.others(seen, window)
        if model.is_sparse:
            return self._correct_top(chances, seen, others, hidden, window, of_scores)
        found = []
        for rows in blocks(seen.n_users):
            blend = None if others is None else others[rows]
            parts = chances.uncorrected(tables, seen, rows, users)
            found.append(features_of(*parts, blend, model.is_given))
        unseen = ~seen_table(seen, slice(0, seen.n_users))
        features = np.concatenate(found)
        if not of_scores:
            features[..., score_features(model.is_given)] = 0.0
        weights = seen.weights.astype(np.float64)
        return learn_correction(features, hidden, unseen, weights, window, n_free=N_USER_FEATURES)

    def _correct_top(
        self,
        chances: PersonalChances,
        seen: Clicks,
        others: Floats | None,
        hidden: NDArray[np.bool_],
        window: int,
        of_scores: bool,
    ) -> Correction:
        """The same from the first places of each user alone: with very many items no other has a
        chance worth correcting."""
        tables, found, hits, items = chances.prepare(seen, window), [], [], []
        for rows in blocks(seen.n_users, BLOCK // 4):
            top = chances.top(tables, seen, rows, N_LEARNT)
            inside = np.maximum(top.items, 0)
            blend = None if others is None else np.take_along_axis(others[rows], inside, axis=1)
            found.append(features_of(*top[1:], blend, False))
            hits.append(np.take_along_axis(hidden[rows], inside, axis=1))
            items.append(top.items)
        features = np.concatenate(found)
        if not of_scores:
            features[..., score_features(False)] = 0.0
        cases = (features, np.concatenate(hits), np.concatenate(items) >= 0)
        weights = seen.weights.astype(np.float64)
        return learn_correction(*cases, weights, window, n_free=N_USER_FEATURES)


def features_of(
    chances: Floats, scores: Floats, of_users: Floats, others: Floats | None, is_given: bool
) -> Floats:
    """``[row, item, feature]``: odds by rank and alpha, score, odds of clusters; then those of
    the user."""
    logs = scores if is_given else np.log(np.maximum(scores, LEAST_SCORE))
    plain = [] if is_given else [scores]
    blend = [] if others is None else [_log_odds(others)]
    of_items = np.stack([_log_odds(chances), logs, *plain, *blend], axis=-1)
    same = np.broadcast_to(of_users[:, None], (*scores.shape, of_users.shape[1]))
    return np.concatenate([of_items, same], axis=-1)


def score_features(is_given: bool) -> list[int]:
    """Which of the features come from scores and users, not from probabilities."""
    return ([1] if is_given else [1, 2]) + list(range(-N_USER_FEATURES, 0))


def _log_odds(chances: Floats) -> Floats:
    inside = np.clip(chances, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


def _draw_last(
    model: PersonalModel, seen: Clicks, users: NDArray[np.int64], n_last: int, seed: int
) -> NDArray[np.bool_]:
    """For each click of these users: is it one of the last, in a draw from the user's law?"""
    last = np.empty(len(seen.codes), dtype=bool)
    for rows in blocks(seen.n_users):
        clicks, rankings = model.orders_of(seen, rows, users)
        own_laws = OwnLaws(rankings, model.shares_by(clicks, rankings))
        mine = slice(seen.starts[rows.start], seen.starts[rows.stop])
        last[mine] = model.law.draw_last(seed, rows.start, clicks, own_laws, n_last)
    return last


def most_users(most: int, n_items: int) -> int:
    """So many users, or fewer with many items: each then has more to tell."""
    least = LEAST_USERS if n_items <= MAX_ITEMS else LEAST_OF_LARGE
    return min(most, max(MAX_PAIRS // n_items, least))


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
    most = most_users(2 * MAX_USERS, prefs.n_items)
    if len(chosen) > most:
        chosen = np.sort(rng.choice(chosen, most, replace=False))
    seen = prefs.take(chosen)

    def work(rows: slice) -> Floats:
        return model.law.log_likelihoods(*model.orders_of(seen, rows, chosen))

    size = max(1, min(BLOCK // 2, MAX_CELLS // seen.n_items))
    values = np.concatenate(list(executor.map(work, blocks(seen.n_users, size))))
    likelihoods = np.exp(values - values.max(axis=1, keepdims=True))
    shares = np.full(len(model.alphas), 1 / len(model.alphas))
    weights = seen.weights / seen.weights.sum()
    for _ in range(N_STEPS):
        own = likelihoods * shares
        shares = weights @ (own / own.sum(axis=1, keepdims=True))
    return np.asarray(shares)
