"""Learn what "personal" needs: the scores, how closely users keep to their order, corrections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.preferences import rows_of_users
from ..data.splits import take_random, time_of_share
from ..engines.executors import BLOCK, Executor, at_hand, blocks
from ..engines.memory import DENSE_ITEMS
from ..laws.own_laws import OwnLaw
from .blend import MAX_CELLS, Blend, n_of_spread
from .calibrate import correct_by
from .click_shards import RemoteClicks
from .corrections import Correction
from .item_scores import ItemScores
from .next_clicks import (
    LAST_SHARE,
    MAX_HELD_OUT,
    MIN_USERS,
    Inside,
    choose_life,
    first_clicks,
    most_users,
    shares_of_cuts,
    splits_inside,
    sum_faded,
    sum_first_clicks,
    usual_calibration,
)
from .parts import SHARES, Part, Regression, trends_for
from .personal_fit import NewClicks, PersonalFit, PersonalModel
from .products import Products, make_products, start_from, taken_from
from .weigh import (
    DEFAULT_RIDGE,
    Say,
    Split,
    TimeSplit,
    best_recency,
    choose_blend,
    choose_blend_in_time,
    choose_ridge,
    half_lives_for,
    importance,
    later_cases,
    sample_of,
    silent,
    why_not,
)

USUAL_BEST = 10  # recommendations that the scores are made for, as `recommend` gives
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PersonalOptions:
    """The options of method "personal", checked; `fit` says what each means."""

    ridge: float | None = None
    blend: bool = True
    held_out: Any = None
    calibrate: bool | str | float = True
    with_consensus: bool = False

    @property
    def is_single(self) -> bool:
        """Is one regression asked for?"""
        return self.ridge is not None or not self.blend

    def calibration(self, prefs: Clicks) -> str | None:
        """Which clicks are hidden inside to learn a correction from; None for no such way."""
        if not self.calibrate or self.held_out is not None:
            return None
        if isinstance(self.calibrate, float):
            return "cut"
        return usual_calibration(prefs) if self.calibrate is True else str(self.calibrate)

    @property
    def later_share(self) -> float:
        """Of the clicks, which are hidden inside if it is all after a date."""
        return self.calibrate if isinstance(self.calibrate, float) else LAST_SHARE

    def settings(self) -> dict[str, Any]:
        """For the settings of a fit; of data that was given, only that it was."""
        return {
            "blend": self.blend,
            "calibrate": bool(self.calibrate),
            "held_out": self.held_out is not None,
            "with_consensus": self.with_consensus,
        }


class Learner:
    """Learns the scores, the distribution of alpha, and the corrections."""

    def __init__(
        self,
        prefs: Clicks,
        options: PersonalOptions,
        alpha: float | None,
        rng: np.random.Generator,
        executor: Executor,
        scores: Callable[[Clicks], Floats] | None = None,
    ):
        self._scores = scores
        self.prefs, self._options, self._rng = prefs, options, rng
        self._workers, self._executor = executor, at_hand(executor)  # for sums over users; for all
        grid = OwnLaw.grid(prefs.n_items)
        alphas = grid if alpha is None else np.array([alpha])
        shares = np.full(len(alphas), 1 / len(alphas))
        self._law: dict[str, Any] = {"alphas": alphas, "alpha_shares": shares}
        self._law["recency"] = None
        self._tie_breaks = rng.random(prefs.n_items)
        self._ridge = options.ridge
        self._why_single = "one regression, as was asked for" if options.is_single else None
        self._blend: Blend | None = None
        self._kept: dict[Part, ItemScores] = {}  # parts as they were learnt last, to begin with
        self._made: dict[int, tuple[Clicks, Products]] = {}  # products of some clicks, made once
        self._sample = sample_of(
            np.flatnonzero(prefs.is_informative), rng, n_of_spread(prefs.n_items)
        )
        self._splits: list[Split] = []  # by which blend or ridge was chosen
        self._n_chosen = int(prefs.starts[-1])  # clicks from which the blend was chosen
        self.say: Say = silent

    def keep_blend(self, old: PersonalFit) -> None:
        """Keep the blend of an old fit, unless the clicks have grown too much since it was chosen,
        and begin with its weights."""
        options = old.settings["options"]
        blend, n_chosen = Blend.from_settings(options), options.get("n_chosen")
        if blend is None or not isinstance(n_chosen, int):
            return
        if len(self.prefs.codes) > 1.25 * n_chosen or self.prefs.n_items != old.n_items:
            return
        self._blend, self._n_chosen = blend, n_chosen
        self._law["recency"] = old.recency
        if not self._is_large and isinstance(old.item_weights, np.ndarray):
            for part in blend.parts:
                if isinstance(part, Regression):
                    law = (part.power, part.ridge)
                    self._kept[part] = start_from(old.item_weights, self._products, *law)

    @property
    def _is_large(self) -> bool:
        return self.prefs.n_items > DENSE_ITEMS

    @property
    def _products(self) -> Products:
        return self._products_of(self.prefs)

    def _products_of(self, clicks: Clicks) -> Products:
        """From those of all clicks, if these are a part of them; made once."""
        if id(clicks) not in self._made:
            taken = None if clicks is self.prefs else taken_from(self.prefs, clicks)
            if taken is None:
                made = make_products(clicks, self._workers)
            else:
                made = self._products.without(taken)
            self._made[id(clicks)] = clicks, made
        return self._made[id(clicks)][1]

    def scores_settings(self) -> dict[str, Any]:
        """How the scores were made."""
        recency = self._law["recency"]
        settings: dict[str, Any] = {} if recency is None else {"recency": asdict(recency)}
        if self._scores is not None:
            return {"ridge": None}
        if self._blend is None:
            return settings | {"ridge": self._ridge, "parts": [], "single": self._why_single}
        trend = self._blend.trend
        settings |= {} if trend is None else {"trend": asdict(trend)}
        settings |= {
            "objective": self._blend.objective,
            "n_best": self._n_best_for(self._options.held_out),
        }
        settings |= {"n_chosen": self._n_chosen, "ridge": None}
        return settings | {"parts": self._blend.settings()}

    def _n_best_for(self, later: Clicks | None) -> int:
        """For how many recommendations the scores are made: as many as come later."""
        wanted = USUAL_BEST
        if later is not None and later.n_clicks.any():
            wanted = max(1, round(float(later.n_clicks[later.n_clicks > 0].mean())))
        return max(1, min(wanted, self.prefs.n_items // 4))

    def learn(self, inside: Inside | None, report: Callable[[], None]) -> PersonalModel:
        """All of it, in `N_REPORTS` steps. With an `inside` split, law and correction are learnt
        from what it shows and hides, and those of other dates, and the scores then once more, from
        all clicks."""
        later = self._options.held_out
        if inside is None and later is not None:
            inside = self._given_later(later)
        splits = splits_inside(inside, self.prefs, self._rng, self._options.later_share)
        self.choose_scores(splits)
        report()
        given = [(each.shown, each.hidden, each.is_usual) for each in splits]
        if later is not None:
            given = [(self.prefs, later, np.ones(self.prefs.n_users, dtype=bool))]
        shown = given[0][0] if given else self.prefs
        which = "all clicks" if shown is self.prefs else "what is not hidden"
        self.say(f"learning the scores from {which}")
        models = [self.scored(each) for each, *_ in given] or [self.scored(shown)]
        self.say("learning how closely users keep to their order")
        dated = plain = self._alphas_of(models[0], shown)
        if models[0].recency is not None:
            plain = self._alphas_of(replace(models[0], recency=None), shown)
        report()
        self.say("correcting the probabilities by hidden clicks")
        correction, for_new = self._learn_correction(models, dated, given), None
        if dated is not plain:
            models = [replace(model, recency=None) for model in models]
            for_new = NewClicks(**plain, correction=self._learn_correction(models, plain, given))
        if inside is not None and inside.how == "random" and correction is not None:
            for_new = NewClicks(**plain, correction=correction)
            correction = self._learn_per_click(plain)
        self._law |= dated
        if shown is self.prefs:
            model = replace(models[0], **self._law)
        else:
            self.say("learning the scores from all clicks")
            self._made = {key: made for key, made in self._made.items() if key == id(self.prefs)}
            model = self.scored(self.prefs)
        first = first_clicks(self._sum_first_clicks(inside))
        report()
        return replace(model, correction=correction, for_new=for_new, first=first)

    def _given_later(self, later: Clicks) -> Inside | None:
        """Later clicks that were given, as what was hidden, if it is known when they came."""
        prefs = self.prefs
        if later.times is None or prefs.times is None or later.n_users < MIN_USERS:
            return None
        rows = rows_of_users(prefs, later.users.tolist())
        order = np.argsort(rows, kind="stable")
        sorted_later, sizes = later.take(order), np.zeros(prefs.n_users, dtype=np.int64)
        sizes[rows[order]] = sorted_later.n_clicks
        hidden = replace(
            sorted_later,
            weights=prefs.weights,
            users=prefs.users,
            starts=np.concatenate([[0], np.cumsum(sizes)]),
        )
        old = prefs.owners * prefs.n_items + prefs.codes
        hidden = hidden.choose(~np.isin(hidden.owners * hidden.n_items + hidden.codes, old))
        inside = Inside(prefs, hidden, "held_out", np.inf, hidden.n_clicks > 0)
        return inside if inside.n_users >= MIN_USERS else None

    def _alphas_of(self, model: PersonalModel, shown: Clicks) -> dict[str, Floats]:
        """The distribution of alpha; alphas that hardly anybody has are left out."""
        shares = _alpha_distribution(model, shown, self._rng, self._executor)
        used = shares > 0.01
        return {"alphas": model.alphas[used], "alpha_shares": shares[used] / shares[used].sum()}

    def _sum_first_clicks(self, inside: Inside | None) -> Floats:
        """Of those who come first now, where those of earlier days clicked something else."""
        clicks = self.prefs
        if isinstance(clicks, RemoteClicks):
            return np.asarray(sum(clicks.executor.map(sum_first_clicks, clicks.shards)))
        if self._options.calibrate == "random":  # any click may be the first
            clicks = replace(clicks, times=None)
        if inside is None or inside.how != "cut" or clicks.times is None:
            return sum_first_clicks(clicks)
        now = float(np.nanmax(clicks.times))
        span = now - float(np.nanmin(clicks.times))
        shares = shares_of_cuts(self._options.later_share)
        cuts = [time_of_share(clicks, share) for share in shares]
        return sum_faded(clicks, now, choose_life(clicks, cuts, [span / share for share in SHARES]))

    def _learn_correction(
        self,
        models: list[PersonalModel],
        alphas: dict[str, Floats],
        given: list[tuple[Clicks, Clicks, NDArray[np.bool_]]],
        shares: Floats | None = None,
    ) -> Correction | None:
        """From what came after, or was hidden from, the clicks that each of the models is of."""
        if not self._options.calibrate or not given:
            return None
        kept: dict[str, Any] = {**alphas}
        mine = [replace(model, **kept) for model in models]
        pairs = [(model, *each) for model, each in zip(mine, given, strict=True)]
        return correct_by(pairs, self._rng, shares)

    def _learn_per_click(self, alphas: dict[str, Floats]) -> Correction | None:
        """The correction for users of the fit, where what is asked is which of their clicks are
        missing: from one hidden click of each, as often as for the blend. Who is left with fewer
        clicks stands for those who have as many."""
        if not self._splits:
            taken = take_random(self.prefs, 1, self._rng)
            self._splits.append((self._products.without(taken), taken))
        models, given = [], []
        for products, taken in self._splits:
            shown, hidden = products.clicks, replace(self.prefs.choose(taken), times=None)
            self._made[id(shown)] = shown, products
            models.append(self.scored(shown))
            given.append((shown, hidden, np.zeros(shown.n_users, dtype=bool)))
        shares = importance(self.prefs) / np.maximum(self.prefs.weights, 1)
        return self._learn_correction(models, alphas, given, shares)

    def scored(self, clicks: Clicks) -> PersonalModel:
        """Scores learnt from these clicks."""
        if self._scores is not None:
            return self._model(clicks, scores=self._scores(clicks))
        if self._blend is not None:
            self._begin_with_all(clicks, self._blend.parts)
            products = self._products_of(clicks)
            recency = self._law["recency"]
            learnt = self._blend.learn(products, self._sample, self._kept, recency)
            return self._model(clicks, **_fields_of(learnt))
        assert self._ridge is not None
        part = Regression(0, self._ridge)
        self._begin_with_all(clicks, (part,))
        learnt = self._products_of(clicks).learn(part, self._kept.get(part))
        if self._is_large:
            return self._model(clicks, **_fields_of(learnt))
        return self._model(clicks, item_weights=learnt.dense())

    def _begin_with_all(self, clicks: Clicks, parts: Sequence[Part]) -> None:
        """With very many items, those without hidden clicks keep their weights by all clicks."""
        if self._is_large and clicks is not self.prefs:
            self._kept |= {part: self._products.learn(part) for part in parts}

    def _model(self, clicks: Clicks, **learnt: Any) -> PersonalModel:
        popularity = clicks.item_counts() / max(int(clicks.weights.sum()), 1)
        ties = np.lexsort((self._tie_breaks, -popularity))
        fields = {"item_weights": np.empty((0, 0))} | learnt | self._law
        return PersonalModel(popularity=popularity, ties=ties, first=np.empty((0, 0)), **fields)

    def choose_scores(self, splits: list[Inside]) -> None:
        """A blend, or the ridge of a single regression, and how much less old clicks weigh;
        nothing, if the scores are given."""
        if self._scores is not None:
            return
        self._set_now()
        in_time = [self._split(each) for each in splits if each.how != "random"]
        if self._blend is None:
            self._why_single = self._why_single or why_not(self.prefs)
        if self._why_single is not None:
            if self._ridge is None and self._is_large:
                self._ridge = DEFAULT_RIDGE
            elif self._ridge is None:
                n_best = self._n_best_for(None)
                self._ridge, self._splits = choose_ridge(self._products, n_best, self._rng)
            if in_time and not self._is_large:
                parts, n_best = [Regression(0, self._ridge)], self._n_best_for(None)
                ways = [None, *half_lives_for(in_time[0].products, in_time[0].cases)]
                self._law["recency"] = best_recency(ways, in_time, parts, n_best).recency
        elif self._blend is None:
            n_best = self._n_best_for(self._options.held_out)
            if not in_time:
                self._blend, self._splits = choose_blend(
                    self._products, n_best, self._rng, self._kept, self.say
                )
                return
            law = (in_time, n_best, trends_for(self.prefs), self._kept, self.say)
            self._blend, self._law["recency"] = choose_blend_in_time(*law)

    def _set_now(self) -> None:
        """What is popular now: at the last click."""
        times = self.prefs.times
        if times is not None and not np.isnan(times).all():
            self._products.now = float(np.nanmax(times))

    def _split(self, inside: Inside) -> TimeSplit:
        """Later clicks to weigh the parts by, and how many people each of their users is."""
        products = self._products_of(inside.shown)
        products.now = min(inside.now, self._products.now)
        cases, users = later_cases(inside.shown, inside.hidden, inside.is_usual, self._rng)
        return TimeSplit(products, cases, self.prefs.weights[users].astype(np.float64))


def _fields_of(learnt: ItemScores) -> dict[str, Any]:
    """Of a model."""
    sides = {"left": learnt.left, "right": learnt.right, "bias": learnt.bias}
    return {"item_weights": learnt.weights} | sides


def _alpha_distribution(
    model: PersonalModel, prefs: Clicks, rng: np.random.Generator, executor: Executor
) -> Floats:
    """The distribution of alpha in the population, by EM on the exact likelihoods of the users."""
    if len(model.alphas) == 1:
        return np.ones(1)
    chosen = np.flatnonzero(prefs.is_informative)
    most = most_users(MAX_HELD_OUT, prefs.n_items)
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
    for _ in range(100):  # of EM
        own = likelihoods * shares
        shares = weights @ (own / own.sum(axis=1, keepdims=True))
    return np.asarray(shares)
