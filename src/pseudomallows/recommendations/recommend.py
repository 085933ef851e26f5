"""recommend: the best unseen items for each user, with probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.frames import Tabular
from ..engines.executors import Executor, Threads, all_cores, blocks, check_executor, check_local
from ..markup import N_PRINTED, N_SHOWN, Markup, bar, card, plain, table
from ..personal.personal_fit import Fit, check_fit
from ..posterior.intervals import intervals_of
from ..posterior.posterior import Posterior
from ..rankings import as_rng, check_count, check_number
from .choose_recommender import recommender_of
from .filter import ItemFilter, parse_filter
from .latent_ranks import LatentRanks, ranking_memberships
from .recommender import MAX_ERROR, Floats, NextItems, Users
from .users import check_posterior, clicks_of_one, needs_latent, new_users, users_of

COLUMNS = ("user", "place", "item", "probability")  # of the table, wherever it is written
DIGITS = 6  # of a probability in a file: far below their error
ONE, ONE_USER = Threads(1), slice(0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations(Tabular):
    """The best unseen items of each user, best first.

    Attributes
    ----------
    users : array
        Names of the users.
    items : (n_users, k) array
        Codes of the items; -1 where a user has no unseen item left.
    probabilities : (n_users, k) array
        Probability that the item is among the user's next k; NaN where there is no item.
    item_names : array
        ``item_names[code]`` is the name of an item.
    errors : (n_users, k) array
        Standard error of each probability. By "personal", how uncertain its correction is: from
        the users it was learnt from, and from how much the dates inside the fit differ; NaN without
        a correction. By other methods the Monte Carlo error, from how much parts of the draws
        differ; with endless draws it would be 0. A large error of a new user means that few draws
        suit their clicks; only a fit with that user helps. NaN where there is no item.
    """

    users: NDArray[Any]
    items: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    item_names: NDArray[Any]
    errors: NDArray[np.float64]

    def _repr_html_(self) -> str:
        """For a notebook: the first users, their items by name, and the probabilities as bars."""
        rows = [
            (str(row["user"]), row["place"], str(row["item"]), _probability(row["probability"]))
            for row in self._first().to_rows()
        ]
        words = f"the first {len(self.users[:N_SHOWN])} of {len(self.users):,} users"
        return card("Recommendations", words, table(["user", "place", "item", "probability"], rows))

    def __repr__(self) -> str:
        rows, count = self._first().to_rows()[:N_PRINTED], int((self.items >= 0).sum())
        return f"Recommendations: {len(self.users):,} users\n{plain(rows, count - len(rows))}"

    def _first(self) -> Recommendations:
        """Those of the first users."""
        shown: dict[str, Any] = {
            name: getattr(self, name)[:N_SHOWN]
            for name in ("users", "items", "probabilities", "errors")
        }
        return replace(self, **shown)

    def to_columns(self, digits: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns user, place (from 1), item, probability; `digits` are those of the last."""
        rows, places = np.nonzero(self.items >= 0)
        names = self.item_names[self.items[rows, places]]
        stated = self.probabilities[rows, places]
        rounded = stated if digits is None else stated.round(digits)
        return dict(zip(COLUMNS, (self.users[rows], places + 1, names, rounded), strict=True))


def _probability(probability: float) -> Markup:
    return bar(probability, f"{100 * probability:.1f}\u00a0%")


def recommend(
    posterior: Fit,
    k: int = 10,
    *,
    users: Any = None,
    clicks: Any = None,
    exclude: Any = None,
    only: Any = None,
    window: int | None = None,
    executor: Executor | None = None,
    max_error: float = MAX_ERROR,
) -> Recommendations:
    """Recommend to each user the items most likely to come next.

    For a user with c clicks, the probability of an item is P(c < rank <= c + k): the probability
    that it is among the next k. Ties go to the better rank in the consensus.

    Users known by rankings or comparisons have no clicks. Here the probability is the probability
    that the item is among the user's k best, from draws of the user's ranking given each draw of
    the fit. They are exact for rankings by the footrule and Hamming's distance, and without gaps
    by Kendall's; others are those that the fit has kept (its option `keep_latent`). So are users of
    a fit of clicks by another distance than the footrule and Kendall's, which have no sums for new
    users.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks or partial rankings; or of comparisons with `keep_latent`.
    k : int
        How many items, at most all. A user with fewer unseen items gets all of them.
    users : list or name, optional
        Names of users of the fit, or one of them; default all.
    clicks : optional
        Clicks of new users, with no refit: a dict {user: [item, ...]}, the newest click last, or
        the forms of :meth:`Preferences.from_clicks`, with the items of the fit. Where a fit has
        learnt that old clicks weigh less, they do for clicks in lists or with times; others (sets,
        matrices, tables without times) all weigh alike, with probabilities learnt for that.
    exclude : optional
        Items not to show: a list for everybody; or, for each user, a dict {user: [item, ...]} or
        a matrix (users x items, SciPy sparse or an array) with a row for each user in the
        answer. The probabilities do not change: each is the probability that an item is among the
        next k of *all* unseen items, shown or not.
    only : optional
        Items to choose from, in the same forms; a user whom a dict does not name may be shown any.
    window : int, optional
        The probability is about the next `window` ranks; default k.
    executor : optional
        Anything with a `map`; default: threads on all cores.
    max_error : float
        For methods other than "personal": the Monte Carlo error allowed. More draws of
        the consensus are used until the error of each recommended probability is at most this, or
        all draws are used; what weighs less than a thousandth of the mean is left out. 0 uses all
        draws. The answer states the errors.

    Notes
    -----
    The probabilities are means over the draws of the consensus. A new user's clicks also say which
    draws, and which clusters, fit: each counts by the exact probability of these clicks under it,
    as if the user had been in the fit. The draws of "pseudo" are used in the same way, with exact
    sums over the user's rankings in place of the paper's Algorithm 4.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> prefs = Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> posterior = fit(prefs, alpha=2, rng=1)
    >>> recommend(posterior, k=1, clicks={"new": ["ale"]}).to_rows()[0]["item"]
    'tea'
    >>> recommend(posterior, k=1, clicks={"new": ["ale"]}, exclude=["tea"]).to_rows()[0]["item"]
    'rum'
    """
    check_fit(posterior)
    check_local(executor, "recommend")
    k, window = check_sizes(k, window, posterior.n_items)
    if needs_latent(posterior, clicks):
        ranks = LatentRanks(posterior, users)
        choice = parse_filter(exclude, only, posterior.items, ranks.names, posterior.users)
        items, probabilities, errors = ranks.best(k, window, choice)
        best = Recommendations(ranks.names, items, probabilities, posterior.items, errors)
        return replace(best, backend=posterior.settings.get("backend"))
    chosen = users_of(posterior, users, clicks)
    choice = parse_filter(exclude, only, posterior.items, chosen.clicks.users, posterior.users)
    check_number(max_error, "max_error")
    threads, recommender = executor or all_cores(), recommender_of(posterior)
    next_items = recommender.probabilities(chosen, k, window, max_error, threads)
    best = best_items(next_items, k, threads, choice)
    return replace(best, backend=chosen.clicks.backend or posterior.settings.get("backend"))


def check_sizes(k: int, window: int | None, n_items: int) -> tuple[int, int]:
    """How many items, and of how many next ranks the probability is: at most all."""
    k = min(check_count(k, "k"), n_items)
    return k, k if window is None else min(check_count(window, "window"), n_items)


def best_items(
    next_items: NextItems, k: int, executor: Executor, choice: ItemFilter | None = None
) -> Recommendations:
    """The k best unseen items of each user: for Python, files, the command and the service."""
    clicks = next_items.users.clicks
    items, probabilities = _nothing(clicks.n_users, k)
    errors = np.full_like(probabilities, np.nan)

    def work(part: slice) -> None:
        best = (items[part], probabilities[part], errors[part])
        if choice is None:
            next_items.fill_best(part, *best)
        else:
            next_items.fill_allowed(part, choice, *best)

    for _ in executor.map(work, blocks(clicks.n_users)):
        pass
    return Recommendations(clicks.users, items, probabilities, clicks.items, errors)


def _nothing(n_users: int, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Items and probabilities, to be filled."""
    items, probabilities = np.empty((n_users, k), dtype=np.int64), np.empty((n_users, k))
    items.fill(-1)
    probabilities.fill(np.nan)
    return items, probabilities


def best_of_one(
    posterior: Fit,
    codes: NDArray[np.int32],
    row: int | None,
    k: int,
    choice: ItemFilter | None = None,
    times: NDArray[np.float64] | None = None,
) -> tuple[list[int], list[float], list[float] | None]:
    """The k best items of one user, their probabilities, and the user's memberships, as a service
    asks for them: those of `recommend` and `memberships`.

    `codes` are the clicks, sorted; `row` is that of the user in the fit, None for a new user;
    `choice` is what may be shown, None for everything; `times` say when each click was.
    """
    rows = None if row is None else np.array([row])
    users = Users(clicks_of_one(codes, posterior.items, times=times), rows)
    next_items = recommender_of(posterior).probabilities(users, k, k, MAX_ERROR, ONE)
    items, probabilities = _nothing(1, k)
    if choice is None:
        next_items.fill_best(ONE_USER, items, probabilities)
    else:
        errors = np.empty_like(probabilities)
        next_items.fill_allowed(ONE_USER, choice, items, probabilities, errors)
    memberships = next_items.memberships()
    mine = None if memberships is None else memberships[0].tolist()
    return items[0].tolist(), probabilities[0].tolist(), mine


def memberships(
    posterior: Fit, clicks: Any, *, executor: Executor | None = None
) -> NDArray[np.float64]:
    """Probability that each new user belongs to each cluster, from the user's clicks alone, or from
    rankings.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks or rankings.
    clicks
        Clicks of new users, in the forms of :func:`recommend`; or, for a fit of rankings, the
        rankings of new users, in those of :meth:`Preferences.from_rankings`.

    Returns
    -------
    (n_users, n_clusters) array
        From the exact probability of the clicks under each draw and cluster, which also weighs the
        draws, as if the user had been in the fit. The Monte Carlo error is at most 0.005 if there
        are enough draws. Draws and clusters that hardly count are left out. For rankings, full or
        partial, all draws count.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> log = {i: ["tea", "milk"] if i < 8 else ["ale", "rum"] for i in range(14)}
    >>> posterior = fit(Preferences.from_clicks(log), "mcmc", alpha=5, n_clusters=2, rng=1)
    >>> memberships(posterior, {"new": ["milk"]}).argmax(), posterior.labels[[0, 13]]
    (np.int64(0), array([0, 1]))
    """
    check_fit(posterior)
    check_executor(executor)
    if posterior.kind == "rankings" and isinstance(posterior, Posterior):
        return ranking_memberships(posterior, clicks)
    check_posterior(posterior)
    new = Users(new_users(posterior, clicks), None)
    return recommender_of(posterior).memberships(new, executor or all_cores())


def user_intervals(
    posterior: Fit,
    user: Any = None,
    *,
    clicks: Any = None,
    probability: float = 0.95,
    n_draws: int = 1000,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.int32]:
    """How sure the order of the items is for one user: an interval of ranks for each item.

    From draws of the user's own ranking, given the clicks, over all that is uncertain: the order,
    alpha, the consensus, and the cluster; by the law behind :func:`recommend`.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks or partial rankings; or of comparisons with `keep_latent`. Of
        rankings and comparisons there are as many draws as the fit has.
    user : optional
        Name of a user of the fit.
    clicks : optional
        Clicks of one new user instead, in the forms of :func:`recommend`.
    probability : float
        Probability that an interval holds the rank; each interval is the shortest with that much.
    n_draws : int
        Rankings drawn.

    Returns
    -------
    (n_items, 2) array
        Lowest and highest rank.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> prefs = Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> user_intervals(fit(prefs, alpha=2, rng=1), "bob", rng=1)[2]    # tea, the only click
    array([1, 1], dtype=int32)
    """
    if (user is None) == (clicks is None):
        raise ValueError("give a user of the fit, or the clicks of a new one")
    if needs_latent(posterior, clicks):
        return intervals_of(LatentRanks(posterior, [user]).rank_probabilities(), probability)
    rng = as_rng(rng)
    chosen = users_of(posterior, None if user is None else [user], clicks)
    if chosen.clicks.n_users != 1:
        raise ValueError(f"give the clicks of one user, got {chosen.clicks.n_users}")
    n_draws = check_count(n_draws, "n_draws")
    counts = recommender_of(posterior).draw_ranks(chosen, n_draws, rng)
    return intervals_of(counts / counts.sum(axis=1, keepdims=True), probability)
