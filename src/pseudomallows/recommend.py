"""recommend: the best unseen items for each user, with probabilities."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clicks import ORDERS, log_likelihoods_of_clicks
from .executors import Executor, all_cores, blocks, check_local
from .frames import make_frame
from .kernels.clicks import draw_click_users, next_rank_probabilities, step_factors
from .kernels.groups import UNIFORM, choose_best, count_group, draw_users, look_up
from .kernels.matching import N_GAPS
from .posterior import Posterior, intervals_of
from .preferences import Clicks, Preferences, check_known, rows_of_users
from .rankings import check_count, orderings_of

WAYS = ("look_up", "draws")
TABLE_DRAWS = 2000  # behind each table of the paper's law
MAX_DRAWS = 50  # consensus draws behind an exact probability; more change little
N_CENTERS = 16  # draws, over all chains, by which a new user's cluster is found
MAX_CLUSTER_DRAWS = 20  # the same with clusters, for each of them
LEFT_OUT = 0.01  # of a user's memberships, at most: clusters that would count for nearly nothing


Fill = Callable[[slice], NDArray[np.float64]]


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

        With clusters, the probabilities of each are averaged by the memberships of the user, and
        over the chains; a draw of a cluster counts by the cluster's share in it. Clusters that
        would make up 1 % of a user's memberships together are left out, and methods other than
        "pseudo" take 20 draws of each cluster, over all chains.
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
    check_local(executor, "recommend")
    seen, recommender = posterior.clicks, recommender_of(posterior)
    rows: NDArray[np.int64] | None = None  # of the fit
    if clicks is not None:
        seen = new_users(clicks, seen, recommender.codes)
    elif users is not None:
        rows = rows_of_users(seen, users)
        seen = seen.take(rows)
    else:
        rows = np.arange(seen.n_users)
    return best_items(posterior, seen, rows, k, window, by, executor)


def best_items(
    posterior: Posterior,
    seen: Clicks,
    rows: NDArray[np.int64] | None,
    k: int,
    window: int,
    by: str = "look_up",
    executor: Executor | None = None,
) -> Recommendations:
    """The best unseen items of these users; `rows` are theirs in the fit, None if they are new."""
    threads, recommender = executor or all_cores(), recommender_of(posterior)
    fill = recommender.begin(seen, rows, window, by, threads)
    items = np.full((seen.n_users, k), -1, dtype=np.int64)
    chances = np.full((seen.n_users, k), np.nan)

    def work(part: slice) -> None:
        table = fill(part)
        starts = seen.starts[part.start : part.stop + 1]
        choose_best(starts, seen.codes, table, recommender.consensus, items[part], chances[part])

    for _ in threads.map(work, blocks(seen.n_users)):
        pass
    return Recommendations(seen.users, items, chances, seen.items)


def recommender_of(posterior: Posterior) -> "_Recommender | _PersonalRecommender":
    """What recommendations need of a posterior, made once and kept with it."""
    if "_recommender" not in posterior.__dict__:
        kind = _Recommender if posterior.personal is None else _PersonalRecommender
        posterior.__dict__["_recommender"] = kind(posterior)
    found: _Recommender | _PersonalRecommender = posterior.__dict__["_recommender"]
    return found


def chances_of(posterior: Posterior, seen: Clicks, window: int) -> NDArray[np.float64]:
    """``chances[user, item]`` of new users, for all items; what is clicked has no meaning."""
    threads = all_cores()
    fill = recommender_of(posterior).begin(seen, None, window, "look_up", threads)
    return np.concatenate(list(threads.map(fill, blocks(seen.n_users))))


def memberships(
    posterior: Posterior, clicks: Any, *, executor: Executor | None = None
) -> NDArray[np.float64]:
    """Probability that each new user belongs to each cluster, from the user's clicks alone.

    Parameters
    ----------
    posterior : Posterior
        From a fit of clicks.
    clicks
        Clicks of new users: the forms of :func:`recommend`.

    Returns
    -------
    (n_users, n_clusters) array

    Examples
    --------
    >>> from pseudomallows import fit
    >>> log = {i: ["tea", "milk"] if i < 8 else ["ale", "rum"] for i in range(14)}
    >>> posterior = fit(Preferences.from_clicks(log), "mcmc", alpha=5, n_clusters=2, rng=1)
    >>> memberships(posterior, {"new": ["milk"]}).argmax(), posterior.labels[[0, 13]]
    (np.int64(0), array([0, 1]))
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"posterior must come from fit, got {type(posterior).__name__}")
    if posterior.clicks is None:
        raise ValueError("new users are known by clicks, and this posterior is of rankings")
    recommender = recommender_of(posterior)
    new = new_users(clicks, posterior.clicks, recommender.codes)
    if isinstance(recommender, _PersonalRecommender):
        return np.ones((new.n_users, 1))
    found = recommender.memberships_of(new, executor or all_cores())
    return np.asarray(np.einsum("c,cuk->uk", recommender.chain_weights, found))


def user_intervals(
    posterior: Posterior,
    user: Any = None,
    *,
    clicks: Any = None,
    probability: float = 0.95,
    n_draws: int = 1000,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.int32]:
    """How sure the order of the items is for one user: an interval of ranks for each item.

    From draws of the user's own ranking, given the clicks, over all that is uncertain: the order,
    alpha, the consensus, and the cluster.

    Parameters
    ----------
    posterior : Posterior
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
    centers, alphas, shares = recommender.laws_of(seen, rows)
    n_items, counts = seen.n_items, np.zeros((seen.n_items, seen.n_items), dtype=np.int64)
    none = (np.full(n_items, -1), counts, counts.copy(), np.empty((0, n_items), np.int32))
    numbers, seed = np.zeros(1, dtype=np.int64), int(rng.integers(2**63))
    for place, number in enumerate(rng.multinomial(check_count(n_draws, "n_draws"), shares)):
        who = (seed, place, numbers, seen.starts, seen.codes, np.array([number]))
        draw_click_users(*who, centers[place], alphas[place] / n_items, *none)
    shares_of_ranks = counts / counts.sum(axis=1, keepdims=True)
    return intervals_of(shares_of_ranks, probability)


def _softmax(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


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


@dataclass(frozen=True)
class _Block:
    """Some users: the number of the first, and their clicks."""

    first: int
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


@dataclass(frozen=True)
class _Source:
    """Draws of one consensus: those of a cluster in a chain; of all chains, if one cluster."""

    draws: NDArray[np.int32]
    orderings: NDArray[np.int32]
    alphas: NDArray[np.float64]
    shares: NDArray[np.float64]  # of the draws; they sum to 1


class _Recommender:
    """What recommendations need of a posterior, made once and kept with it."""

    def __init__(self, posterior: Posterior):
        n_chains, n_draws, n_clusters, self.n_items = posterior.consensus.shape
        self.is_pseudo = posterior.settings["method"] == "pseudo"
        weights = posterior.weights
        self.chain_weights = weights.sum(axis=1)
        self.chain_memberships = posterior.chain_memberships
        if n_clusters == 1:
            draws = posterior.consensus[:, :, 0].reshape(-1, self.n_items)
            self.sources = [self._source(draws, posterior.alpha.ravel(), weights.ravel(), 0)]
        else:
            self.sources = [
                self._source(
                    posterior.consensus[chain, :, cluster],
                    posterior.alpha[chain, :, cluster],
                    weights[chain] * posterior.shares[chain, :, cluster],
                    n_chains,
                )
                for chain in range(n_chains)
                for cluster in range(n_clusters)
            ]
        chosen = _evenly(n_draws, max(1, N_CENTERS // n_chains))
        self.centers = posterior.consensus[:, chosen]
        if posterior.leaders.size:
            self.centers = posterior.leaders
            chosen = _evenly(n_draws, posterior.leaders.shape[1])
        self.center_alphas = posterior.alpha[:, chosen]
        self.center_shares = np.log(np.maximum(posterior.shares[:, chosen], 1e-300))
        self.consensus = _common_consensus(posterior)
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}
        self.order = ORDERS[posterior.settings["options"]["order"] or "uniform"]
        self._tables: dict[tuple[float, int], NDArray[np.float64]] = {}
        self._factors = step_factors(self.n_items, N_GAPS)

    def _source(
        self,
        draws: NDArray[np.int32],
        alphas: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_chains: int,
    ) -> _Source:
        """Draws of one consensus; `n_chains` is 0 for one cluster, where the chains are joined."""
        limit = MAX_DRAWS if n_chains == 0 else max(1, MAX_CLUSTER_DRAWS // n_chains)
        if not self.is_pseudo and len(draws) > limit:
            chosen = _evenly(len(draws), limit)
            draws, alphas, weights = draws[chosen], alphas[chosen], weights[chosen]
        orderings = np.ascontiguousarray(orderings_of(draws).astype(np.int32))
        return _Source(
            np.ascontiguousarray(draws),
            orderings,
            alphas,
            weights / max(float(weights.sum()), 1e-300),
        )

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the probabilities of some of these users; `rows` are theirs in the fit."""
        if rows is None:
            shares = self.shares_of(self.memberships_of(seen, executor))
        else:
            shares = self.shares_of(self.chain_memberships[:, rows])
        if by == "look_up":
            self.prepare(seen, window, shares)

        def fill(part: slice) -> NDArray[np.float64]:
            table = np.zeros((part.stop - part.start, seen.n_items))
            block = _Block(part.start, seen.starts[part.start : part.stop + 1], seen.codes)
            run = self.draw if by == "draws" else self.look_up
            run(block, window, shares[part], table)
            return table

        return fill

    def laws_of(
        self, seen: Clicks, rows: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """Consensuses, alphas and shares of the laws of which one user's ranking is a mixture."""
        if rows is None:
            shares = self.shares_of(self.memberships_of(seen, all_cores()))[0]
        else:
            shares = self.shares_of(self.chain_memberships[:, rows])[0]
        return (
            np.concatenate([source.draws for source in self.sources]),
            np.concatenate([source.alphas for source in self.sources]),
            np.concatenate(
                [share * source.shares for share, source in zip(shares, self.sources, strict=True)]
            ),
        )

    def memberships_of(self, seen: Clicks, executor: Executor) -> NDArray[np.float64]:
        """``[chain, user, cluster]`` for new users: the mean over some draws of each chain."""
        n_chains, _, n_clusters, _ = self.centers.shape
        if n_clusters == 1:
            return np.ones((n_chains, seen.n_users, 1))
        found = np.empty((n_chains, seen.n_users, n_clusters))

        def work(part: slice) -> None:
            starts = seen.starts[part.start : part.stop + 1]
            for chain in range(n_chains):
                values = []
                for place, centers in enumerate(self.centers[chain]):
                    alphas = self.center_alphas[chain, place].tolist()
                    logs = [
                        log_likelihoods_of_clicks(starts, seen.codes, center, alpha)
                        for center, alpha in zip(centers, alphas, strict=True)
                    ]
                    shares = self.center_shares[chain, place]
                    values.append(_softmax(np.stack(logs, axis=1) + shares))
                found[chain, part] = np.mean(values, axis=0)

        for _ in executor.map(work, blocks(seen.n_users)):
            pass
        return found

    def shares_of(self, chain_memberships: NDArray[Any]) -> NDArray[np.float64]:
        """``shares[user, source]`` from ``[chain, user, cluster]``; the least are left out."""
        n_chains, n_users, n_clusters = chain_memberships.shape
        if n_clusters == 1:
            return np.ones((n_users, 1))
        weighted = chain_memberships * self.chain_weights[:, None, None]
        shares = weighted.transpose(1, 0, 2).reshape(n_users, n_chains * n_clusters)
        order = np.argsort(shares, axis=1)
        below = np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
        few = np.empty_like(shares, dtype=bool)
        np.put_along_axis(few, order, below < LEFT_OUT, axis=1)
        shares = np.where(few, 0.0, shares)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)

    def prepare(self, seen: Clicks, k: int, shares: NDArray[np.float64]) -> None:
        """Make the tables of the paper's law that these users need.

        `tables[size, place]`: chance that the item at `place` among `size` unseen ones is one of
        the next k. One table serves all users, and all later calls.
        """
        if not self.is_pseudo:
            return
        missing = []
        for number, source in enumerate(self.sources):
            alpha = float(source.alphas[0])
            if (alpha, k) not in self._tables:
                self._tables[alpha, k] = np.full((self.n_items + 1, self.n_items), np.nan)
            tables = self._tables[alpha, k]
            sizes = set((self.n_items - seen.n_clicks[shares[:, number] > 0]).tolist())
            missing += [(alpha, size) for size in sizes if size and np.isnan(tables[size, 0])]

        def fill(task: tuple[float, int]) -> None:
            alpha, size = task
            self._tables[alpha, k][size, :size] = first_chances(
                size, alpha / self.n_items, min(k, size), self.order
            )

        for _ in all_cores().map(fill, missing):
            pass

    def look_up(
        self, block: _Block, k: int, shares: NDArray[np.float64], table: NDArray[Any]
    ) -> None:
        """Fill the probabilities of some users without drawing their rankings."""
        for number, source in enumerate(self.sources):
            mine = np.ascontiguousarray(shares[:, number])
            if not mine.any():
                continue
            if self.is_pseudo:
                tables = self._tables[float(source.alphas[0]), k]
                law = (source.orderings, source.shares, tables)
                look_up(block.starts, block.codes, *law, mine, table)
                continue
            for draw, share in enumerate(source.shares):
                center = (source.draws[draw], source.alphas[draw] / self.n_items)
                next_rank_probabilities(
                    block.starts, block.codes, *center, k, share * mine, self._factors, table
                )

    def draw(self, block: _Block, k: int, shares: NDArray[np.float64], table: NDArray[Any]) -> None:
        """Fill the probabilities of some users by counting draws."""
        n_users = len(block.starts) - 1
        ones = np.ones(n_users, dtype=np.int64)
        numbers = block.first + np.arange(n_users)
        counts, shared = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        kept = np.zeros((n_users, self.n_items), dtype=np.int32)
        partners = np.full(self.n_items, -1)
        n_clicks = np.diff(block.starts)[:, None]
        for number, source in enumerate(self.sources):
            for draw, share in enumerate(source.shares):
                lam = source.alphas[draw] / self.n_items
                users = (number, draw, numbers, block.starts, block.codes, ones)
                if self.is_pseudo:
                    draw_users(*users, source.orderings[draw], lam, self.order, counts, kept)
                else:
                    law = (source.draws[draw], lam, partners)
                    draw_click_users(*users, *law, counts, shared, kept)
                hits = (kept > n_clicks) & (kept <= n_clicks + k)
                table += share * shares[:, number, None] * hits


class _PersonalRecommender:
    """The same for consensuses of one's own."""

    def __init__(self, posterior: Posterior):
        assert posterior.personal is not None
        self._personal, self._clusters = posterior.personal, posterior.clusters
        self.consensus = posterior.consensus[0, 0, 0]
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the probabilities of some of these users; `rows` are theirs in the fit."""
        if by == "draws":
            raise ValueError("by='draws' is not there for method='personal': use by='look_up'")
        self._personal.prepare(seen, window)
        others = None
        if self._clusters is not None:
            others = chances_of(self._clusters, seen, window)

        def fill(part: slice) -> NDArray[np.float64]:
            blend = None if others is None else others[part]
            return self._personal.probabilities(seen, part, window, rows, blend)

        return fill

    def laws_of(
        self, seen: Clicks, rows: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """One consensus, and the alphas of the grid."""
        personal, all_rows = self._personal, slice(0, 1)
        scores = personal.scores_for(seen, all_rows, rows)
        rankings = personal.rankings_of(scores)
        shares = personal.alpha_shares_of(seen, all_rows, rankings)[0]
        return np.repeat(rankings, len(shares), axis=0), personal.alphas, shares


def _evenly(length: int, number: int) -> NDArray[np.int64]:
    """At most `number` of the numbers below `length`, evenly spaced."""
    places = np.linspace(0, length - 1, min(number, length))
    return np.asarray(places.round().astype(np.int64))


def _common_consensus(posterior: Posterior) -> NDArray[np.int32]:
    """The consensus that breaks ties; of several clusters, by mean rank over the population."""
    if posterior.n_clusters == 1:
        return posterior.point_consensus()
    ranks = np.arange(1, posterior.n_items + 1)
    shares = posterior.shares.mean(axis=(0, 1))
    means = [posterior.rank_probabilities(k) @ ranks for k in range(posterior.n_clusters)]
    return orderings_of(orderings_of(shares @ np.array(means))).astype(np.int32) + 1


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
