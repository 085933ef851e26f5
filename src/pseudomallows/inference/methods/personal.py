"""Method "personal": an order of each user's own, learnt from the user's clicks."""

import functools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ... import distances
from ...engines.executors import BLOCK, Executor, Threads, blocks, check_local
from ...files.later import read_later
from ...latent.own_laws import OWN_LAWS
from ...latent.population import check_informative
from ...posteriors.corrections import Correction
from ...posteriors.item_scores import ItemScores
from ...posteriors.names import CALIBRATIONS
from ...posteriors.personal import MAX_ITEMS, PersonalFit, PersonalModel
from ...posteriors.posterior import Posterior
from ...preferences import Clicks, Preferences
from ...preferences.held_out import check_held_out
from ...preferences.hide import hide_clicks
from ...rankings import check_number
from ...recommendations.recommenders import chances_of
from ..personal.blend import MAX_SPREAD, Blend, Say, choose_blend, sample_of, silent, why_not
from ..personal.corrector import MAX_CELLS, MAX_USERS, Corrector, Others
from ..personal.item_scores import given_scores, products_of, ridge_weights
from ..personal.later import most_users, seen_table
from ..personal.next_clicks import choose_recency, split_inside, usual_calibration
from ..personal.parts import Part, Regression
from ..personal.products import Products, make_products, start_from, taken_from
from .method import Case, Options, flag, one_of, option

RIDGES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)  # in units of the mean number of clicks of an item
DEFAULT_RIDGE, N_SPLITS = 0.3, 6
USUAL_BEST = 10  # recommendations that the scores are made for
N_REPORTS = 3
MOST_GROWTH = 1.25  # of the clicks, up to which an update keeps the blend
N_STEPS = 100  # of EM for the distribution of alpha
LEAST_ALPHA_SHARE = 0.01  # of an alpha in the population, for it to stay in the grid
Floats = NDArray[np.float64]


def _check_calibrate(value: Any, name: str) -> bool | str:
    return one_of(*CALIBRATIONS)(value, name) if isinstance(value, str) else flag(value, name)


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
        "Later clicks of some of the users, 50 or more: a file, a data frame, or another form of "
        "`Preferences.from_clicks`. "
        "The probabilities are corrected by what came true of them, for all windows up to twice "
        "the largest number of them that 50 users have. "
        "Users and items that the fit does not have are left out, with a warning that counts them.",
    )
    calibrate: bool | str = option(
        True,
        "Without `held_out`: which clicks are hidden inside, to correct the probabilities by what "
        'came true of them, before all is learnt again from all clicks. "last" (default with '
        'times): some clicks of each user, the last ones, for what comes next. "cut": all '
        'clicks after a date, for a model that will serve the future. "random" (default without '
        "times): any of them, so that a probability is that of a click like those that are there. "
        '"law": the last by the law of each user, so that nothing is corrected where the law is '
        "right. False: no correction. With times, it is also learnt whether old clicks weigh less. "
        "An array of scores cannot be learnt again without hidden clicks, and clusters neither: "
        'with these it is "law"; if they were learnt from these clicks, give False.',
        check=_check_calibrate,
    )
    with_clusters: Posterior | None = option(
        None,
        "A fit of the same clicks with clusters, to blend with; how much is learnt along with the "
        "correction.",
    )
    with_consensus: bool = option(
        False,
        "Learn the consensus of all users too, by the matched law, so that the fit also answers "
        "what a posterior does: consensus, intervals, summary; method='auto' does so.",
        check=flag,
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

    def calibration(self, prefs: Clicks) -> str | None:
        """Which clicks are hidden inside to learn a correction from; None for no such way."""
        if not self.calibrate or self.held_out is not None:
            return None
        has_own = self.with_clusters is not None
        if has_own or (self.scores is not None and not callable(self.scores)):
            return "law"
        return usual_calibration(prefs) if self.calibrate is True else str(self.calibrate)

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
        return replace(self, held_out=check_held_out(read_later(self.held_out, prefs), prefs))

    def settings(self) -> dict[str, Any]:
        """For the settings of a fit; data that was given is told by a mark only."""
        return {
            "nonnegative": self.nonnegative,
            "blend": self.blend,
            "ridge_given": self.ridge is not None,
            "calibrate": bool(self.calibrate),
            "held_out": self.held_out is not None,
            "given_scores": self.scores is not None,
            "with_clusters": self.with_clusters is not None,
            "with_consensus": self.with_consensus,
        }


def _check_clusters(clusters: Any, prefs: Clicks, calibrate: bool | str) -> None:
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
    how = method.calibration(clicks)
    inside = None if how in (None, "law") else split_inside(clicks, str(how), rng)
    n_steps = N_REPORTS * (1 if inside is None else 2)
    steps = iter(range(1, n_steps + 1))

    def report() -> None:
        progress(next(steps), n_steps)

    law = (alpha, distance, rng, executor or Threads())
    learner = Learner(clicks, method, *law)
    learner.say = getattr(progress, "say", silent)
    if old is not None:
        learner.keep_blend(old)
    if inside is None:
        model = learner.learn(report)
        how = None if how is None else "law"
    else:
        learner.choose_scores()  # by all clicks
        first = Learner(inside.shown, replace(method, held_out=inside.hidden), *law).like(learner)
        correction = first.learn(report).correction
        learner = Learner(clicks, replace(method, calibrate=False), *law).like(first)
        model = replace(learner.learn(report), correction=correction)
    how = None if model.correction is None else how
    more = {"alpha_given": alpha is not None, "order": None, "calibration": how}
    more |= learner.scores_settings()
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
        options: Personal,
        alpha: float | None,
        distance: str,
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

    def like(self, other: "Learner") -> Self:
        """Make scores in the way that another has chosen, from more or less."""
        self._ridge, self._why_single, self._blend = other._ridge, other._why_single, other._blend
        self._kept, self._n_chosen, self.say = other._kept.copy(), other._n_chosen, other.say
        self._blank = replace(self._blank, recency=other._blank.recency)
        return self

    def scores_settings(self) -> dict[str, Any]:
        """How the scores were made."""
        recency = self._blank.recency
        found: dict[str, Any] = {} if recency is None else {"recency": asdict(recency)}
        if self._options.scores is not None:
            return {"ridge": None}
        if self._blend is None:
            return found | {"ridge": self._ridge, "parts": [], "single": self._why_single}
        found |= {"objective": self._blend.objective, "n_best": self._n_best}
        found |= {"n_chosen": self._n_chosen, "ridge": None}
        return found | {"parts": self._blend.settings()}

    @property
    def _n_best(self) -> int:
        return max(1, min(self._options.n_best, self.prefs.n_items // 4))

    def learn(self, report: Callable[[], None]) -> PersonalModel:
        """All of it, in `N_REPORTS` steps."""
        self.choose_scores()
        report()
        self.say("learning the scores from all clicks")
        model = self.scored(self.prefs)
        held_out = self._options.held_out
        has_times = held_out is not None and held_out.times is not None
        has_times = has_times and self.prefs.times is not None
        if has_times and not model.is_given and not model.is_sparse:
            recency = choose_recency(model, self.prefs, held_out, self._n_best, self._rng)
            model = replace(model, recency=recency)
            self._blank = replace(self._blank, recency=recency)
        self.say("learning how closely users keep to their order")
        shares = _alpha_distribution(model, self.prefs, self._rng, self._executor)
        used = shares > LEAST_ALPHA_SHARE
        law = {"alphas": model.alphas[used], "alpha_shares": shares[used] / shares[used].sum()}
        model = replace(model, **law)
        self._blank = replace(self._blank, **law)
        report()
        self.say("correcting the probabilities by hidden clicks")
        found = replace(model, correction=self._learn_correction(model))
        report()
        return found

    def _learn_correction(self, model: PersonalModel) -> Correction | None:
        if not self._options.calibrate:
            return None
        corrector = Corrector(self.prefs, self.scored, self._options.others, self._rng)
        if self._options.held_out is not None:
            return corrector.by_later_clicks(model, self._options.held_out)
        return corrector.by_the_law(model)

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

    def choose_scores(self) -> None:
        """A blend, or the ridge of a single regression; nothing, if the scores are given."""
        if self._options.scores is not None:
            return
        if self._blend is None:
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
