"""recommend: the best unseen items for each user, with probabilities."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clicks import ORDERS
from .executors import Executor, Threads, blocks
from .frames import make_frame
from .kernels.clicks import draw_click_users, next_rank_probabilities
from .kernels.groups import UNIFORM, choose_best, count_group, draw_users, look_up
from .posterior import Posterior
from .preferences import Clicks, Preferences, check_known, rows_of_users
from .rankings import check_count, orderings_of

WAYS = ("look_up", "draws")
TABLE_DRAWS = 2000  # behind each table of the paper's law
MAX_DRAWS = 50  # consensus draws behind an exact probability; more change little


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
    """

    users: NDArray[Any]
    items: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    item_names: NDArray[Any]

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
    posterior: Posterior,
    k: int = 10,
    *,
    users: Sequence[Any] | None = None,
    clicks: Any = None,
    window: int | None = None,
    by: str = "look_up",
    executor: Executor | None = None,
) -> Recommendations:
    """Recommend to each user the items most likely to come next.

    For user j with c clicks the probability of an item is P(c < rank <= c + k): that it would be
    among the next k. Ties go to the better rank in the consensus.

    Parameters
    ----------
    posterior : Posterior
        From a fit of clicks.
    k : int
        How many items; at most all of them. A user with fewer unseen ones gets all of these.
    users : list, optional
        Names of users of the fit; default all.
    clicks : optional
        Clicks of new users, with no refit: a dict {user: [item, ...]} or the forms of
        :meth:`Preferences.from_clicks`, with the items of the fit.
    window : int, optional
        The probability is that of the next `window` ranks; default k.
    by : str
        "look_up": without drawing any user's ranking; from tables of the paper's law for "pseudo",
        and by exact sums over the latent rankings for the other methods. "draws": by counting
        draws, one for each draw of the consensus; slow and noisy, a reference. Methods other than
        "pseudo" take 50 of the consensus draws, evenly spaced.
    executor : optional
        Anything with a `map`; default: threads on all cores.

    Examples
    --------
    >>> from pseudomallows import fit
    >>> prefs = Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> posterior = fit(prefs, alpha=2, rng=1)
    >>> recommend(posterior, k=1, clicks={"new": ["ale"]}).to_rows()[0]["item"]
    'tea'
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior must come from fit, got {type(posterior).__name__}")
    if posterior.clicks is None:
        raise ValueError("recommendations need a fit of clicks, and this posterior is of rankings")
    k = min(check_count(k, "k"), posterior.n_items)
    window = k if window is None else min(check_count(window, "window"), posterior.n_items)
    if by not in WAYS:
        raise ValueError(f"by must be one of {', '.join(map(repr, WAYS))}, got {by!r}")
    if clicks is not None and users is not None:
        raise ValueError("give users of the fit or clicks of new users, not both")
    seen = posterior.clicks
    recommender = _Recommender.of(posterior)
    if clicks is not None:
        seen = _new_users(clicks, seen, recommender.codes)
    elif users is not None:
        seen = seen.take(rows_of_users(seen, users))
    fill = recommender.draw if by == "draws" else recommender.look_up
    items = np.full((seen.n_users, k), -1, dtype=np.int64)
    chances = np.full((seen.n_users, k), np.nan)
    if by == "look_up":
        recommender.prepare(seen, window)

    def work(rows: slice) -> None:
        table = np.zeros((rows.stop - rows.start, seen.n_items))
        starts = seen.starts[rows.start : rows.stop + 1]
        fill(rows.start, starts, seen.codes, window, table)
        choose_best(starts, seen.codes, table, recommender.consensus, items[rows], chances[rows])

    for _ in (executor or Threads()).map(work, blocks(seen.n_users)):
        pass
    return Recommendations(seen.users, items, chances, seen.items)


def _new_users(clicks: Any, seen: Clicks, codes: dict[Any, int]) -> Clicks:
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
    found = np.array([codes.get(name, -1) for name in names], dtype=np.int64)
    check_known(found, names, "item")
    mine = np.array(sorted(set(found.tolist())), dtype=np.int32)
    users = np.empty(1, dtype=object)
    users[0] = user
    starts, weights = np.array([0, len(mine)]), np.ones(1, dtype=np.int64)
    return Clicks(weights, users, seen.items, starts, mine)


class _Recommender:
    """What recommendations need of a posterior, made once and kept with it."""

    def __init__(self, posterior: Posterior):
        draws = posterior.consensus[:, :, 0].reshape(-1, posterior.n_items)
        alphas, weights = posterior.alpha[:, :, 0].ravel(), posterior.weights.ravel()
        self.is_pseudo = posterior.settings["method"] == "pseudo"
        if not self.is_pseudo and len(draws) > MAX_DRAWS:
            chosen = np.linspace(0, len(draws) - 1, MAX_DRAWS).round().astype(np.int64)
            draws, alphas, weights = draws[chosen], alphas[chosen], weights[chosen]
        self.n_items = posterior.n_items
        self.draws, self.alphas, self.shares = draws, alphas, weights / weights.sum()
        self.orderings = np.ascontiguousarray(orderings_of(draws).astype(np.int32))
        self.consensus = posterior.point_consensus()
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}
        self.order = ORDERS[posterior.settings["options"]["order"]]
        self._tables: dict[int, NDArray[np.float64]] = {}

    @staticmethod
    def of(posterior: Posterior) -> "_Recommender":
        """The recommender of a posterior."""
        if "_recommender" not in posterior.__dict__:
            posterior.__dict__["_recommender"] = _Recommender(posterior)
        found: _Recommender = posterior.__dict__["_recommender"]
        return found

    def prepare(self, seen: Clicks, k: int) -> None:
        """Make the tables of the paper's law that these users need.

        `tables[size, place]`: chance that the item at `place` among `size` unseen ones is one of
        the next k. One table serves all users, and all later calls.
        """
        if not self.is_pseudo:
            return
        if k not in self._tables:
            self._tables[k] = np.full((self.n_items + 1, self.n_items), np.nan)
        tables = self._tables[k]
        sizes = [size for size in set((self.n_items - seen.n_clicks).tolist()) if size]
        missing = [size for size in sizes if np.isnan(tables[size, 0])]

        def fill(size: int) -> None:
            tables[size, :size] = first_chances(
                size, self.alphas[0] / self.n_items, min(k, size), self.order
            )

        for _ in Threads().map(fill, missing):
            pass

    def look_up(
        self,
        first: int,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        k: int,
        table: NDArray[Any],
    ) -> None:
        """Fill the probabilities of some users without drawing their rankings."""
        if self.is_pseudo:
            look_up(starts, codes, self.orderings, self.shares, self._tables[k], table)
            return
        for draw, share in enumerate(self.shares):
            lam = self.alphas[draw] / self.n_items
            next_rank_probabilities(starts, codes, self.draws[draw], lam, k, share, table)

    def draw(
        self,
        first: int,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        k: int,
        table: NDArray[Any],
    ) -> None:
        """Fill the probabilities of users from number `first` on by counting draws."""
        n_users = len(starts) - 1
        ones = np.ones(n_users, dtype=np.int64)
        numbers = first + np.arange(n_users)
        counts, shared = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        kept = np.zeros((n_users, self.n_items), dtype=np.int32)
        partners = np.full(self.n_items, -1)
        n_clicks = np.diff(starts)[:, None]
        for draw, share in enumerate(self.shares):
            lam = self.alphas[draw] / self.n_items
            users = (0, draw, numbers, starts, codes, ones)
            if self.is_pseudo:
                draw_users(*users, self.orderings[draw], lam, self.order, counts, kept)
            else:
                consensus = self.draws[draw]
                draw_click_users(*users, consensus, lam, partners, counts, shared, kept)
            table += share * ((kept > n_clicks) & (kept <= n_clicks + k))


def first_chances(size: int, lam: float, k: int, order: int) -> NDArray[np.float64]:
    """Chance of each place of a group to take one of its first k ranks, under the paper's law.

    From draws. For uniform orders the law is the same read from behind, which doubles the draws,
    and the chance never rises from a place to the next, which smooths them.
    """
    counts = np.zeros((size, size), dtype=np.int64)
    count_group(size, size, lam, order, TABLE_DRAWS, counts)
    chances = counts[:, :k].sum(axis=1) / TABLE_DRAWS
    if order != UNIFORM:
        return chances
    mirrored = counts[::-1, ::-1][:, :k].sum(axis=1) / TABLE_DRAWS
    return falling((chances + mirrored) / 2)


def falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence, in least squares, that never rises.

    >>> falling(np.array([3.0, 1.0, 2.0, 0.0]))
    array([3. , 1.5, 1.5, 0. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)
