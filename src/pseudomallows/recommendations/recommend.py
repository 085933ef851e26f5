"""recommend: the best unseen items for each user, with probabilities."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, all_cores, blocks, check_local
from ..kernels.groups import choose_best
from ..posteriors.personal import Fit, check_fit
from ..posteriors.posterior import intervals_of
from ..preferences.frames import make_frame
from ..preferences.preferences import Clicks, Preferences, check_known, rows_of_users
from ..rankings import check_count
from .exact import MAX_ERROR
from .recommenders import FillBest, Recommender, recommender_of

WAYS = ("look_up", "draws")


@dataclass(frozen=True, eq=False)
class Recommendations:
    """The best unseen items of each user, best first.

    Attributes
    ----------
    users : array
        Names of the users.
    items : (n_users, k) array
        Codes of the items; -1 where a user has no unseen item left.
    probabilities : (n_users, k) array
        Chance that the item is among the user's next k; NaN where there is no item.
    item_names : array
        ``item_names[code]`` is the name of an item.
    errors : (n_users, k) array
        Monte Carlo standard error of each probability, from how parts of the draws differ; it would
        be 0 with endless draws. Where few draws suit a new user's clicks it is large, and says so:
        then only a fit with that user helps. NaN for "pseudo" and "personal", where none is known,
        and where there is no item.
    """

    users: NDArray[Any]
    items: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    item_names: NDArray[Any]
    errors: NDArray[np.float64]

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict for each user and place: user, place (from 1), item, probability."""
        columns = self.to_columns()
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """The same as columns."""
        rows, places = np.nonzero(self.items >= 0)
        return {
            "user": self.users[rows],
            "place": places + 1,
            "item": self.item_names[self.items[rows, places]],
            "probability": self.probabilities[rows, places],
        }

    def to_frame(self) -> Any:
        """A pandas frame: user, place, item, probability."""
        return make_frame(self.to_columns())


def recommend(
    posterior: Fit,
    k: int = 10,
    *,
    users: Any = None,
    clicks: Any = None,
    window: int | None = None,
    by: str = "look_up",
    executor: Executor | None = None,
    max_error: float = MAX_ERROR,
) -> Recommendations:
    """Recommend to each user the items most likely to come next.

    For user j with c clicks the probability of an item is P(c < rank <= c + k): that it would be
    among the next k. Ties go to the better rank in the consensus.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks.
    k : int
        How many items; at most all of them. A user with fewer unseen ones gets all of these.
    users : list or name, optional
        Names of users of the fit, or one of them; default all.
    clicks : optional
        Clicks of new users, with no refit: a dict {user: [item, ...]} or the forms of
        :meth:`Preferences.from_clicks`, with the items of the fit.
    window : int, optional
        The probability is that of the next `window` ranks; default k.
    by : str
        "look_up": without drawing any user's ranking; from tables of the paper's law for "pseudo",
        and by exact sums over the latent rankings for the other methods. "draws": by counting
        draws, one for each draw of the consensus; slow and noisy, a reference.
    executor : optional
        Anything with a `map`; default: threads on all cores.
    max_error : float
        For methods other than "pseudo" and "personal": the Monte Carlo error allowed. More and more
        draws of the consensus are used, until the error of each recommended probability is at most
        this, or all draws are used; what weighs less than a thousandth of the mean is left out.
        0 uses them all. The errors are in the answer.

    Notes
    -----
    The probabilities are means over the draws of the consensus. A new user's clicks also say which
    draws, and which clusters, are right: each counts by the exact probability of these clicks under
    it, as if the user had been in the fit. The draws of "pseudo" are rough and count alike; its
    clusters are weighed in the same way, by a few exact consensuses. Clusters that would make up
    1 % of a user's memberships together are left out there.

    Examples
    --------
    >>> from pseudomallows import fit
    >>> prefs = Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> posterior = fit(prefs, alpha=2, rng=1)
    >>> recommend(posterior, k=1, clicks={"new": ["ale"]}).to_rows()[0]["item"]
    'tea'
    """
    known = clicks_of_fit(posterior, has_clicks=clicks is not None)
    k = min(check_count(k, "k"), posterior.n_items)
    window = k if window is None else min(check_count(window, "window"), posterior.n_items)
    if by not in WAYS:
        raise ValueError(f"by must be one of {', '.join(map(repr, WAYS))}, got {by!r}")
    if clicks is not None and users is not None:
        raise ValueError("give users of the fit or clicks of new users, not both")
    check_local(executor, "recommend")
    seen, recommender = known, recommender_of(posterior)
    rows: NDArray[np.int64] | None = None  # of the fit
    if clicks is not None:
        seen = new_users(clicks, known, recommender.codes)
    elif users is not None:
        rows = rows_of_users(known, users)
        seen = known.take(rows)
    else:
        rows = np.arange(seen.n_users)
    if not max_error >= 0:
        raise ValueError(f"max_error must be 0 or more, got {max_error!r}")
    return best_items(posterior, seen, rows, k, window, by, executor, max_error)


def clicks_of_fit(posterior: Fit, has_clicks: bool) -> Clicks:
    """The clicks of a fit, of which there must be some if there are no others to answer to."""
    check_fit(posterior)
    if posterior.clicks is None:
        raise ValueError("recommendations need a fit of clicks, and this posterior is of rankings")
    if not has_clicks and not posterior.clicks.n_users:
        raise ValueError(
            "this posterior keeps no users, as it was fitted to parts: give their clicks, such as "
            "clicks={'ann': ['tea']}, or, to `recommend_to`, clicks=pm.Parts(folder) "
            "(`--clicks FOLDER`)"
        )
    return posterior.clicks


def best_items(
    posterior: Fit,
    seen: Clicks,
    rows: NDArray[np.int64] | None,
    k: int,
    window: int,
    by: str = "look_up",
    executor: Executor | None = None,
    max_error: float = MAX_ERROR,
) -> Recommendations:
    """The best unseen items of these users; `rows` are theirs in the fit, None if they are new."""
    threads, recommender = executor or all_cores(), recommender_of(posterior)
    items = np.full((seen.n_users, k), -1, dtype=np.int64)
    chances, errors = np.full((2, seen.n_users, k), np.nan)
    if by == "look_up":
        fill = recommender.begin_best(seen, rows, k, window, threads, max_error)
    else:
        fill = _by_draws(recommender, seen, rows, window, threads)

    def work(part: slice) -> None:
        fill(part, items[part], chances[part], errors[part])

    for _ in threads.map(work, blocks(seen.n_users)):
        pass
    return Recommendations(seen.users, items, chances, seen.items, errors)


def _by_draws(
    recommender: Recommender,
    seen: Clicks,
    rows: NDArray[np.int64] | None,
    window: int,
    executor: Executor,
) -> FillBest:
    """The reference: by counting draws."""
    fill_all = recommender.begin(seen, rows, window, "draws", executor)

    def fill(part: slice, items: Any, chances: Any, errors: Any) -> None:
        mine = (seen.starts[part.start : part.stop + 1], seen.codes)
        choose_best(*mine, fill_all(part), recommender.consensus, items, chances)

    return fill


def memberships(
    posterior: Fit, clicks: Any, *, executor: Executor | None = None
) -> NDArray[np.float64]:
    """Probability that each new user belongs to each cluster, from the user's clicks alone.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks.
    clicks
        Clicks of new users: the forms of :func:`recommend`.

    Returns
    -------
    (n_users, n_clusters) array
        By the exact probability of the clicks under each draw and cluster, the draws weighed by it
        too, as if the user had been in the fit; with a Monte Carlo error of 0.005 at most, if there
        are draws enough. What would count for next to nothing is left out.

    Examples
    --------
    >>> from pseudomallows import fit
    >>> log = {i: ["tea", "milk"] if i < 8 else ["ale", "rum"] for i in range(14)}
    >>> posterior = fit(Preferences.from_clicks(log), "mcmc", alpha=5, n_clusters=2, rng=1)
    >>> memberships(posterior, {"new": ["milk"]}).argmax(), posterior.labels[[0, 13]]
    (np.int64(0), array([0, 1]))
    """
    check_fit(posterior)
    if posterior.clicks is None:
        raise ValueError("new users are known by clicks, and this posterior is of rankings")
    recommender = recommender_of(posterior)
    new = new_users(clicks, posterior.clicks, recommender.codes)
    return recommender.memberships_of(new, executor or all_cores())


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
    alpha, the consensus, and the cluster; by the law behind :func:`recommend`, for "pseudo" that of
    the paper.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks.
    user : optional
        Name of a user of the fit.
    clicks : optional
        Clicks of one new user instead, in the forms of :func:`recommend`.
    probability : float
        At least so much lies in each interval, the shortest there is.
    n_draws : int
        Rankings drawn.

    Returns
    -------
    (n_items, 2) array
        Lowest and highest rank.

    Examples
    --------
    >>> from pseudomallows import fit
    >>> prefs = Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> user_intervals(fit(prefs, alpha=2, rng=1), "bob", rng=1)[2]    # tea, the only click
    array([1, 1], dtype=int32)
    """
    if posterior.clicks is None:
        raise ValueError("users are known by clicks, and this posterior is of rankings")
    if (user is None) == (clicks is None):
        raise ValueError("give a user of the fit, or the clicks of a new one")
    rng, recommender = np.random.default_rng(rng), recommender_of(posterior)
    rows: NDArray[np.int64] | None = None
    if clicks is None:
        rows = rows_of_users(posterior.clicks, [user])
        seen = posterior.clicks.take(rows)
    else:
        seen = new_users(clicks, posterior.clicks, recommender.codes)
        if seen.n_users != 1:
            raise ValueError(f"give the clicks of one user, got {seen.n_users}")
    counts = recommender.draw_ranks(seen, rows, check_count(n_draws, "n_draws"), rng)
    return intervals_of(counts / counts.sum(axis=1, keepdims=True), probability)


def new_users(clicks: Any, seen: Clicks, codes: dict[Any, int]) -> Clicks:
    """Clicks of new users, on the items of the fit."""
    if isinstance(clicks, Clicks):
        if clicks.items.tolist() != seen.items.tolist():
            raise ValueError("the clicks of new users must have the items of the fit, in its order")
        return clicks
    if not isinstance(clicks, Mapping) or hasattr(clicks, "tocsr") or len(clicks) != 1:
        return Preferences.from_clicks(clicks, items=seen.items.tolist())
    # one user, as a service asks: the same, without the work that pays for many users only
    ((user, listed),) = clicks.items()
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"clicks of {user!r} must be a list of items, got {listed!r}")
    names = list(listed)
    found = [codes.get(name, -1) for name in names]
    if -1 in found:
        check_known(np.array(found), names, "item")
    mine = np.array(sorted(set(found)), dtype=np.int32)
    users = np.empty(1, dtype=object)
    users[0] = user
    starts, weights = np.array([0, len(mine)]), np.ones(1, dtype=np.int64)
    return Clicks(weights, users, seen.items, starts, mine)
