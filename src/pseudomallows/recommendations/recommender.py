"""What every way to recommend shares: the users who are answered, and their probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..engines.executors import Executor
from ..kernels.click_rows import ClickRows, ranks_of_clicks, slice_clicks
from ..personal.next_tables import GridTables
from .filter import ItemFilter

MOST_FEW = 256  # items that a quick way is asked for, hidden ones included: half of what it tables
MAX_ERROR = 0.005  # of a recommended probability: half a point; half of it takes 4 times the draws
Floats = NDArray[np.float64]
Items = NDArray[np.int64]


class Users(NamedTuple):
    """Users to answer: their clicks, and their rows in the fit; None for new users."""

    clicks: Clicks
    rows: NDArray[np.int64] | None

    @property
    def is_new(self) -> bool:
        """Are they new?"""
        return self.rows is None

    def block(self, part: slice) -> ClickRows:
        """The clicks of some of them."""
        return slice_clicks(self.clicks, part)


class NextItems(NamedTuple):
    """The probabilities of some users' items to be among their next ones.

    Attributes
    ----------
    table : callable
        ``table(part)`` gives ``probabilities[row, item]`` of a block of users, and their errors,
        None where these are not known. What is clicked has no meaning.
    memberships : callable
        ``memberships()[user, cluster]``; None where there are no clusters.
    fill : callable, optional
        Where it is quicker: ``fill(part, items, probabilities, errors)`` fills the best items of a
        block alone, with the bits of `table`, and the errors, if these are asked for.
    errors_of : callable, optional
        Where errors follow from the probabilities: ``errors_of(probabilities)``.
    some : callable, optional
        Where it is quicker than `table`: ``some(part, wanted)``, the same for the items that are
        wanted of each row, none of them clicked; what is not wanted has no meaning.
    """

    users: Users
    consensus: NDArray[np.int32]  # of equal probabilities, the better rank here wins
    table: Callable[[slice], tuple[Floats, Floats | None]]
    memberships: Callable[[], Floats | None]
    fill: Callable[[slice, Items, Floats, Floats | None], Any] | None = None
    errors_of: Callable[[Floats], Floats] | None = None
    some: Callable[[slice, ClickRows], tuple[Floats, Floats | None]] | None = None

    def fill_best(
        self, part: slice, items: Items, probabilities: Floats, errors: Floats | None = None
    ) -> None:
        """Fill the best unseen items of a block, best first; what is left stays as it is."""
        table_errors = None
        if self.fill is not None:
            self.fill(part, items, probabilities, errors)
        else:
            table, table_errors = self.table(part)
            is_out = clicked_items(self.users.block(part), table.shape[1])
            self._fill_unseen(table, is_out, items, probabilities)
        self._fill_errors(items, probabilities, table_errors, errors)

    def _fill_unseen(
        self, table: Floats, is_out: NDArray[np.bool_], items: Items, probabilities: Floats
    ) -> None:
        """Fill the best items of each row that are not out. Those that agree to 12 digits are tied,
        and the better rank in the consensus wins."""
        n_items, k = table.shape[1], min(items.shape[1], table.shape[1])
        digits = np.rint(table * 1e12).astype(np.int64)
        keys = np.where(is_out, -1, (digits + 1) * (n_items + 1) - self.consensus)
        best = np.argpartition(-keys, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(keys, best, axis=1), axis=1)
        best = np.take_along_axis(best, order, axis=1)
        is_filled = ~np.take_along_axis(is_out, best, axis=1)
        stated = np.minimum(np.take_along_axis(table, best, axis=1), 1.0)
        items[:, :k][is_filled] = best[is_filled]
        probabilities[:, :k][is_filled] = stated[is_filled]

    def fill_allowed(
        self, part: slice, choice: ItemFilter, items: Items, probabilities: Floats, errors: Floats
    ) -> None:
        """The same for what may be shown: no probability changes, the hidden items are passed
        over."""
        hidden = choice.mask(part)
        wanted = items.shape[1] + int(hidden.sum(axis=1).max(initial=0))
        wanted = min(wanted, hidden.shape[1])
        is_out = hidden | clicked_items(self.users.block(part), hidden.shape[1])
        if self.fill is not None and wanted <= MOST_FEW:
            self._fill_more(part, hidden, wanted, (items, probabilities, errors))
            n_left = np.minimum((~is_out).sum(axis=1), items.shape[1])
            if ((items >= 0).sum(axis=1) == n_left).all():
                return
            items.fill(-1)  # the quick way does not reach that far
        if self.some is None:
            table, table_errors = self.table(part)
        else:
            table, table_errors = self.some(part, as_rows(~is_out))
        self._fill_unseen(table, is_out, items, probabilities)
        self._fill_errors(items, probabilities, table_errors, errors)

    def _fill_errors(
        self, items: Items, probabilities: Floats, table: Floats | None, errors: Floats | None
    ) -> None:
        """Fill the errors of the best items, where they are known."""
        if errors is None:
            return
        if self.errors_of is not None:
            errors[:] = self.errors_of(probabilities)
        elif table is not None:
            is_filled = items >= 0
            errors[is_filled] = np.take_along_axis(table, np.maximum(items, 0), axis=1)[is_filled]

    def _fill_more(
        self,
        part: slice,
        hidden: NDArray[np.bool_],
        wanted: int,
        best: tuple[Items, Floats, Floats],
    ) -> None:
        """Find so many more that enough are left without the hidden ones."""
        n_rows, k = best[0].shape
        items = np.full((n_rows, wanted), -1, dtype=np.int64)
        probabilities, errors = np.full((2, n_rows, wanted), np.nan)
        self.fill_best(part, items, probabilities, errors)
        is_out = np.take_along_axis(hidden, np.maximum(items, 0), axis=1) | (items < 0)
        first = np.argsort(is_out, axis=1, kind="stable")[:, :k]
        is_in = ~np.take_along_axis(is_out, first, axis=1)
        for target, more in zip(best, (items, probabilities, errors), strict=True):
            mine = np.take_along_axis(more, first, axis=1)
            target[:, : first.shape[1]][is_in] = mine[is_in]


def clicked_items(clicks: ClickRows, n_items: int) -> NDArray[np.bool_]:
    """``[row, item]``: is it clicked?"""
    return ranks_of_clicks(clicks, n_items) == 1


def as_rows(mask: NDArray[np.bool_]) -> ClickRows:
    """The items of each row of a mask."""
    starts = np.append(0, np.cumsum(mask.sum(axis=1)))
    return ClickRows(starts, np.nonzero(mask)[1].astype(np.int32))


class Recommender(ABC):
    """What recommendations need of a posterior, made once.

    It holds arrays of the posterior, never the posterior, so that both go when nobody needs them.
    """

    tables: GridTables | None = None  # from which probabilities are looked up

    def __init__(
        self, items: NDArray[Any], consensus: NDArray[np.int32], chain_memberships: NDArray[Any]
    ):
        self.items, self.consensus = items, consensus
        self.item_codes = {name: code for code, name in enumerate(items.tolist())}
        self.chain_memberships, self.n_clusters = chain_memberships, chain_memberships.shape[-1]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @abstractmethod
    def probabilities(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> NextItems:
        """The probabilities to be among the next `window`; where there is a Monte Carlo error, that
        of the k best of each user is at most `max_error`."""

    def by_cluster(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """``[cluster]`` and ``[cluster, item]``, for one user: how much each cluster counts, and
        its part in the probabilities, which add up to those of `probabilities`."""
        if self.n_clusters > 1:
            return self.cluster_probabilities(users, k, window, executor)
        probabilities = self.probabilities(users, k, window, MAX_ERROR, executor)
        return np.ones(1), probabilities.table(slice(0, 1))[0]

    def cluster_probabilities(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """The same where there are several clusters."""
        raise NotImplementedError

    @abstractmethod
    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user, by the law of
        `probabilities`."""

    def memberships(self, users: Users, executor: Executor) -> Floats:
        """``[user, cluster]``."""
        if users.rows is None:
            return self.new_memberships(users, executor)
        return np.asarray(self.chain_memberships[:, users.rows].mean(axis=0, dtype=np.float64))

    @abstractmethod
    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """``[user, cluster]`` of new users."""

    # Tables, where there are some

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        if self.tables is not None:
            self.tables.of(window, [self.n_items - n_clicks])

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        return self.tables is None or self.tables.has(window, self.n_items - n_clicks)

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return 0 if self.tables is None else self.tables.nbytes

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        if self.tables is not None:
            self.tables.drop(window)


def logs_of(weights: Floats) -> Floats:
    """Logs; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(weights)
