"""PersonalFit: what a fit by method "personal" returns, a consensus of one's own for each user.

Each user's law is centred on a ranking made from the user's clicks. The score of an item for a user
comes from the user's other clicks, by a matrix from item to item. The ranking of the
scores is the user's consensus, and alpha, by the exact likelihood of the clicks, says how closely
the user keeps to it. The score of an item never uses the click on it, so that likelihood is honest
without holding anything out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, clicks_matrix
from ..data.frames import TableRows
from ..data.preferences import Preferences
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.correct import add_up_to
from ..kernels.items.top_items import add_weight_rows, fill_rankings, rank_clicks
from ..laws.own_laws import OwnLaw
from ..markup import N_SHOWN, bar, card, plain, table
from ..posterior.diagnose import Check, Verdict
from ..posterior.names import QUESTIONS
from ..posterior.posterior import Posterior
from ..rankings import orderings_of
from .corrections import Correction
from .item_scores import ItemScores, no_factors
from .recency import Recency

FIRST_WINDOWS = (1, 3, 10)  # first clicks whose distribution is kept: threes, up to the usual k
GOOD_CALIBRATION = 0.03  # three points: what is read as 30 % is then 27 to 33; "no" from nine on
Floats = NDArray[np.float64]


class NewClicks(NamedTuple):
    """What holds instead for clicks that the fit has not seen: where it has learnt that old clicks
    weigh less, for those without times or order, which all weigh alike; and where it has hidden
    clicks at random, for all of them, since new users with few clicks have many more to come."""

    alphas: Floats
    alpha_shares: Floats
    correction: Correction | None


@dataclass(frozen=True, eq=False)
class PersonalModel:
    """What gives every user their own order, new users too.

    Attributes
    ----------
    item_weights : (n_items, n_items) array
        ``item_weights[clicked, item]``: what a click adds to the score of an item; 0 on the
        diagonal. Empty if the scores were given. With more than 4,000 items, a sparse array.
    popularity : (n_items,) array
        Share of the users who clicked each item: the scores of a user without clicks.
    ties : (n_items,) array
        The items by popularity, equal ones in random order: of equal scores, the first here wins.
    alphas, alpha_shares : arrays
        Grid of alphas, and their distribution in the population.
    first : array
        ``first[number, item]``: probability of an item to be among the first
        ``FIRST_WINDOWS[number]`` clicks of a user of whom nothing is known.
    correction : Correction or None
        From the probability to be among the next ranks, for any window up to its largest, the
        place, the score and the number of clicks to what is observed. None without calibration.
    for_new : NewClicks or None
        Alphas and correction for clicks that the fit has not seen, where these are others.
    recency : Recency or None
        How much less old clicks weigh in the scores of their user; None: they all weigh alike.
    scores : (n_users, n_items) array
        The scores that were given, scaled to mean 0 and deviation 1; else empty.
    bias : (n_items,) array
        What is added to the scores of every user with clicks; empty for nothing.
    left, right : arrays
        With more than 4,000 items, factors: ``left[clicked] @ right[:, item]`` is added to what a
        click adds to the score of another item. Else empty.
    """

    item_weights: Any
    popularity: Floats
    ties: NDArray[np.int64]
    alphas: Floats
    alpha_shares: Floats
    first: Floats
    correction: Correction | None = None
    for_new: NewClicks | None = None
    scores: Floats = field(default_factory=lambda: np.empty((0, 0)))
    bias: Floats = field(default_factory=lambda: np.empty(0))
    recency: Recency | None = None
    left: NDArray[np.float32] = field(default_factory=no_factors)
    right: NDArray[np.float32] = field(default_factory=no_factors)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.popularity)

    @property
    def is_given(self) -> bool:
        """Were the scores given?"""
        return self.scores.size > 0

    @property
    def mean_alpha(self) -> float:
        """Mean of alpha over the users."""
        return float(self.alphas @ self.alpha_shares)

    @cached_property
    def law(self) -> OwnLaw:
        """The likelihood of the users' clicks, given their orders, by Kendall's distance."""
        return OwnLaw(self.n_items, self.alphas)

    @cached_property
    def item_scores(self) -> ItemScores:
        """How scores follow from clicks; its `row` and `column` are what clicks add."""
        return ItemScores(self.item_weights, self.left, self.right, self.bias)

    def first_probabilities(self, window: int) -> Floats:
        """``probabilities[item]`` to be among the next `window`, for a user without clicks; their
        sum is the window."""
        known = np.array(FIRST_WINDOWS[: len(self.first)])
        probabilities = np.clip(
            self.first[np.abs(np.log(known / window)).argmin()], 1e-12, 1 - 1e-12
        )
        odds = np.log(probabilities / (1 - probabilities))
        add_up_to(window, odds)
        return odds

    def for_clicks(self, seen: Clicks, is_new: bool) -> PersonalModel:
        """The model that holds for such clicks, of new users or of users of the fit."""
        is_known = not is_new if self.recency is None else self.recency.is_known(seen)
        return self if self.for_new is None or is_known else self._for_new

    @cached_property
    def _for_new(self) -> PersonalModel:
        assert self.for_new is not None
        return replace(self, recency=None, for_new=None, **self.for_new._asdict())

    @property
    def is_sparse(self) -> bool:
        """Are there so many items that nothing of the size of items x items is made?"""
        return not isinstance(self.item_weights, np.ndarray)

    @cached_property
    def tie_ranks(self) -> NDArray[np.int64]:
        """``tie_ranks[item]``: of equal scores, the lower one here comes first."""
        return orderings_of(self.ties).astype(np.int64)

    def scores_of(self, seen: Clicks, rows: slice) -> Floats:
        """``scores[row, item]`` of some users; without clicks, the popularity."""
        if self.is_sparse:
            return self.single_scores_of(seen, rows).astype(np.float64)
        starts, recency = seen.starts[rows.start : rows.stop + 1], self.recency
        if recency is not None and recency.is_known(seen):
            weights = recency.weights_of(seen.take(np.arange(rows.start, rows.stop)))
            scores = clicks_matrix(starts, seen.codes, self.n_items, weights) @ self.item_weights
        else:
            scores = np.zeros((len(starts) - 1, self.n_items))
            add_weight_rows(ClickRows(starts, seen.codes), self.item_weights, scores)
        if self.bias.size:
            scores += self.bias
        if len(starts) == 2 and starts[1] > starts[0]:  # one user, as a service asks
            return np.asarray(scores)
        scores[starts[1:] == starts[:-1]] = self.popularity
        return np.asarray(scores)

    def single_scores_of(self, seen: Clicks, rows: slice) -> NDArray[np.float32]:
        """The same in single precision, as large catalogues have them."""
        clicks = slice_clicks(seen, rows)
        scores = self.item_scores.of(clicks, self.n_items)
        nobody = clicks.starts[1:] == clicks.starts[:-1]
        if nobody.any():
            scores[nobody] = self.popularity
        return scores

    def scores_for(self, seen: Clicks, rows: slice, users: NDArray[np.int64] | None) -> Floats:
        """The same, or the scores that were given for these users."""
        if not self.is_given:
            return self.scores_of(seen, rows)
        if users is None:
            raise ValueError(
                "new users need scores, and the scores of this fit were given from outside: fit "
                "again with theirs"
            )
        return np.asarray(self.scores[users[rows]])

    def rankings_of(self, scores: Floats) -> NDArray[np.int32]:
        """Each user's own consensus: the ranking of the scores, ties in the order of `ties`."""
        rankings = np.empty(scores.shape, dtype=np.int32)
        values = -scores[:, self.ties]
        fill_rankings(values, values.argsort(axis=1), self.ties, rankings)
        return rankings

    def click_ranks_of(
        self, clicks: ClickRows, scores: NDArray[np.float32]
    ) -> tuple[ClickRows, NDArray[np.int32]]:
        """The ranks of what was clicked alone, as rows in which the clicks are numbered: with these
        numbers for items, the law of the clicks is that of the whole rankings."""
        sizes = np.diff(clicks.starts)
        ranks = np.empty(int(sizes.sum()), dtype=np.int64)
        rank_clicks(clicks, scores, self.tie_ranks, ranks)
        starts = clicks.starts - clicks.starts[0]
        numbers = np.arange(len(ranks)) - np.repeat(starts[:-1], sizes)
        table = np.zeros((len(sizes), max(int(sizes.max(initial=0)), 1)), dtype=np.int32)
        table[np.repeat(np.arange(len(sizes)), sizes), numbers] = ranks
        return ClickRows(starts, numbers.astype(np.int32)), table

    def orders_of(
        self, seen: Clicks, rows: slice, users: NDArray[np.int64] | None
    ) -> tuple[ClickRows, NDArray[np.int32]]:
        """Clicks of some users and their own rankings; those of the clicks alone with very many
        items (see `click_ranks_of`)."""
        if self.is_sparse:
            clicks = slice_clicks(seen, rows)
            return self.click_ranks_of(clicks, self.single_scores_of(seen, rows))
        return slice_clicks(seen, rows), self.rankings_of(self.scores_for(seen, rows, users))

    def shares_by(self, clicks: ClickRows, rankings: NDArray[np.int32]) -> Floats:
        """``shares[row, g]``: each user's own posterior over the alphas."""
        values = self.law.log_likelihoods(clicks, rankings)
        weights = np.exp(values - values.max(axis=1, keepdims=True)) * self.alpha_shares
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def correction_for(self, window: int) -> Correction | None:
        """The correction, if it holds for this window."""
        correction = self.correction
        return correction if correction is not None and correction.covers(window) else None


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalFit(PersonalModel):
    """Every user's own order, and what it was learnt from.

    The users' orders are not drawn, so there are no draws, clusters or diagnostics of them; the
    consensus of all users, `population`, has these. :func:`recommend` gives each user's next items,
    :func:`user_intervals` the ranks of one user, and `most_clicked` the items by popularity, for
    users without clicks.

    Attributes
    ----------
    items, users : arrays
        Names of the items, and of the users, row by row.
    data : Preferences or None
        The clicks behind the fit.
    settings : dict
        Version, method, seed and options: how to make this fit again.
    made_population : Posterior or None
        The consensus of all users, `population`, if it has been learnt already.
    """

    items: NDArray[Any]
    users: NDArray[Any]
    data: Preferences | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    made_population: Posterior | None = None

    update: ClassVar[Callable[..., Any]]  # :func:`pseudomallows.sampling.update`
    learn_population: ClassVar[Callable[..., Posterior]]  # of `pseudomallows.sampling.fit`

    def __repr__(self) -> str:
        size = f"{self.n_users:,} users, {self.n_items:,} items"
        about, rows = f"Its probabilities are about {self.question}.", self.most_clicked()[:N_SHOWN]
        return f"PersonalFit: {size}\n{about}\n{plain(rows, self.n_items - len(rows))}"

    def _repr_html_(self) -> str:
        """For a notebook: what it is, and what is popular."""
        rows = [
            (row["rank"], str(row["item"]), bar(row["share"], f"{100 * row['share']:.1f}\u00a0%"))
            for row in self.most_clicked()[:N_SHOWN]
        ]
        words = (
            f"an order for each of {self.n_users:,} users, of {self.n_items:,} items; its "
            f"probabilities are about {self.question}; most clicked:"
        )
        return card("PersonalFit", words, table(["", "item", "users"], rows))

    def __getattr__(self, name: str) -> Any:
        """What a posterior of draws has: that of the population, or say what to ask instead."""
        if name in INSTEAD:
            population = self.population
            if population is not None:
                return getattr(population, name)
            raise AttributeError(
                f"a personal fit has no {name}: each user has an order of their own, and nothing "
                f"is drawn; {INSTEAD[name]}; with_consensus=True adds the consensus of all users",
                name=name,
                obj=self,
            )
        raise AttributeError(f"'PersonalFit' has no attribute {name!r}", name=name, obj=self)

    @property
    def population(self) -> Posterior | None:
        """The consensus of all users, if it was asked for (`with_consensus`), as method "auto"
        does; it is learnt when it is first asked for, with the seed of the fit. Then the fit also
        answers what a posterior does: `fit.summary()` is `fit.population.summary()`."""
        asked = self.settings.get("options", {}).get("population")
        if self.made_population is None and asked is not None and self.data is not None:
            # the fit stays as it was, but for what it need not learn again
            object.__setattr__(self, "made_population", self.learn_population())
        return self.made_population

    @property
    def clicks(self) -> Clicks | None:
        """The clicks behind the fit."""
        return self.data if isinstance(self.data, Clicks) else None

    def model(self) -> PersonalModel:
        """The model alone, without users and data."""
        names = [each.name for each in fields(PersonalModel)]
        return PersonalModel(**{name: getattr(self, name) for name in names})

    @property
    def question(self) -> str:
        """What its probabilities are about, in words."""
        options = self.settings.get("options", {})
        if options.get("held_out"):
            return "clicks like the later ones that were given as held_out"
        question = QUESTIONS.get(options.get("calibration"), QUESTIONS[None])
        days = options.get("days_ahead")
        return question if days is None else f"{question}, within some {days:.0f} days"

    @property
    def method(self) -> str:
        """How it was fitted."""
        return "personal"

    @property
    def kind(self) -> str:
        """The kind of data it was fitted to."""
        return "clicks"

    @property
    def is_full(self) -> bool:
        """Was it fitted to full rankings only? No."""
        return False

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @property
    def n_clusters(self) -> int:
        """The users are one population."""
        return 1

    def popularity_ranking(self) -> NDArray[np.int32]:
        """``ranking[item]`` is the item's rank by popularity; equal ones are in random order."""
        return (orderings_of(self.ties) + 1).astype(np.int32)

    def most_clicked(self) -> TableRows:
        """The items by popularity, best first: rank, item, and the share of users who clicked it.

        This order serves users without clicks.
        """
        return TableRows(
            {"rank": place + 1, "item": self.items[item], "share": float(self.popularity[item])}
            for place, item in enumerate(self.ties.tolist())
        )

    def verdict(self) -> Verdict:
        """Whether to trust its probabilities: `answer`, `words`, `advice` and `checks`.

        A fit cannot say so by itself; :func:`evaluate` can, and `Evaluation.keep_in` lets the fit
        say it from then on. The consensus of all users has a verdict of its own,
        ``fit.population.verdict()``, on which recommendations do not depend.
        """
        measured = self.settings.get("evaluation")
        if measured is not None:
            figures = "calibration error", measured["calibration_error"], GOOD_CALIBRATION
            return Verdict.of([Check(*figures, **measured["verdict"], is_note=True, form=".3f")])
        words = (
            f"Its probabilities are about {self.question}. Nobody has checked yet how they compare "
            "with what is observed."
        )
        advice = "Measure it with pm.evaluate, which hides some clicks and counts."
        return Verdict.of(
            [Check("calibration error", np.nan, GOOD_CALIBRATION, "with care", words, advice)]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a file, whole or not at all; see :func:`pseudomallows.load`."""
        from .save_personal import save

        save(self, path)


_ORDER = (
    "most_clicked() is the order of the population, pm.recommend and "
    "pm.recommendations.user_intervals answer for each user, and method='mcmc' has a consensus"
)
_ALPHA = "alphas and alpha_shares are the distribution of alpha over the users"
_CLUSTERS = "for clusters fit with another method and n_clusters"
_DRAWS = "method='mcmc' has draws; pm.evaluate checks whether the probabilities are calibrated"
_ERRORS = "clicks have no errors; comparisons may: pm.Preferences.from_pairs"
INSTEAD = {  # what a posterior has: what to ask a personal fit instead
    **dict.fromkeys(("consensus", "point_consensus", "best", "mean_ranks", "intervals"), _ORDER),
    **dict.fromkeys(("rank_probabilities", "pair_probabilities", "shares_of_ranks"), _ORDER),
    **dict.fromkeys(("summary", "to_frame"), _ORDER),
    **dict.fromkeys(("alpha", "alpha_intervals"), _ALPHA),
    **dict.fromkeys(("log_evidence", "log_evidence_error"), "it has no evidence"),
    **dict.fromkeys(("shares", "memberships", "chain_memberships", "labels"), _CLUSTERS),
    **dict.fromkeys(("membership_frame", "check_cluster"), _CLUSTERS),
    **dict.fromkeys(("errors", "theta"), _ERRORS),
    **dict.fromkeys(("weights", "log_posterior", "latent", "order", "equal_draws"), _DRAWS),
    **dict.fromkeys(("diagnostics", "all_diagnostics", "effective_size", "to_arviz"), _DRAWS),
}

Fit = Posterior | PersonalFit  # what `fit` returns and `load` reads


def as_posterior(fit: Fit) -> Posterior:
    """The same, known to be a posterior."""
    assert isinstance(fit, Posterior)
    return fit


def check_fit(fit: Any) -> None:
    """Refuse what does not come from `fit`."""
    if not isinstance(fit, Fit):
        raise TypeError(f"posterior must come from fit, got {type(fit).__name__}")
