"""What every kind of preferences shares: users, items, weights, and the questions it answers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..markup import card, table
from .checks import check_names, rows_of_names
from .frames import backend_of

if TYPE_CHECKING:
    from .blocks import Clicks, Rankings, SizeTable
    from .pairs import Pairs


class ZeroBasedWarning(UserWarning):
    """Every row has the ranks 0 to n - 1: 0 means not ranked, so the best would become the last."""


class ColumnWarning(UserWarning):
    """A column of a table that was ignored, though it may matter."""


class IgnoredColumnWarning(ColumnWarning):
    """A column of a table of clicks that may say which rows are not clicks."""


class AbsentItemsWarning(UserWarning):
    """Rankings that were joined with others on more items: what somebody was not asked counts as
    ranked last."""


class DroppedRowsWarning(UserWarning):
    """Rows that were left out: without a user or an item, or with one that the fit lacks."""


@dataclass(frozen=True, eq=False)
class Preferences(ABC):
    """What is known about the users.

    Make one with :meth:`from_rankings`, :meth:`from_orderings`, :meth:`from_clicks`,
    :meth:`from_pairs` or :meth:`from_impressions`; the result is of the class :class:`Rankings`,
    :class:`Clicks` or :class:`Pairs`, or by :meth:`concat` :class:`Mixed`. A row stands for
    ``weights[user]`` people.
    """

    kind: ClassVar[str]  # "rankings", "clicks", "pairs" or "mixed"
    ARRAYS: ClassVar[dict[str, Any]]  # the types of the arrays of `to_arrays`, by their names
    OPTIONAL: ClassVar[dict[str, Any]] = {}  # of those that may be missing

    weights: NDArray[np.int64]
    users: NDArray[Any]
    items: NDArray[Any]
    backend: str | None = field(default=None, kw_only=True)  # library of the frame they came in

    def _repr_html_(self) -> str:
        """For a notebook: the data in numbers."""
        rows = list(self.facts().items())
        return card(type(self).__name__, "", table(["", ""], rows))

    @property
    def is_vote(self) -> bool:
        """Does every row say which of two items is better, and no more?"""
        return False

    @staticmethod
    def from_rankings(
        rankings: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> Rankings:
        """Full, partial or tied rankings, one row a user.

        Parameters
        ----------
        rankings : (n_users, n_items) array_like or data frame
            ``rankings[user, item]`` is a rank, 1 for the best; 0 or NaN means not ranked. Items of
            equal rank tie: their order is not known. A tie may be written by the first of its ranks
            (1, 2, 2, 4), their mean (1, 2.5, 2.5, 4), or the number of the group (1, 2, 2, 3);
            where all items are ranked, also by the last (1, 3, 3, 4). The columns of a data frame
            name the items; a column "user", or else the index of a pandas frame that has no name
            twice, the users.
        weights : (n_users,) array_like of int, optional
            How many people gave each ranking.
        users, items : sequence, optional
            Names, in row and column order. For a data frame, `items` are its columns in the order
            that is wanted; to give them other names, use :meth:`rename`.

        Examples
        --------
        >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0]], items=["ale", "gin", "rum"])
        >>> prefs
        Rankings(2 users, 3 items; 1 full, 1 partial)

        Equal ranks are a tie; what is not ranked takes the ranks that are left:

        >>> Preferences.from_rankings([[1, 2, 2, 3], [1.5, 1.5, 0, 0]]).rankings
        array([[1, 2, 2, 4],
               [1, 1, 0, 0]], dtype=int32)
        """
        from .from_rankings import rankings_of_anything

        prefs = rankings_of_anything(rankings, weights, users, items)
        return replace(prefs, backend=backend_of(rankings))

    @staticmethod
    def from_orderings(
        orderings: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> Rankings:
        """Lists of items, best first, one a user; shorter lists are top-k lists.

        A list, tuple or set of items within a list is a tie: their order is not known. (A tuple
        that is among `items` is the name of an item.)

        Without `items`, the items are all that appear in a list, sorted where they can be. Missing
        entries (None or NaN) at the end of a list are dropped. If the columns of a data frame name
        places (rank1, 2nd, third), these count, in whatever order the columns stand, and a column
        "user" names the users; if none does, the columns are taken as they stand.

        Examples
        --------
        >>> prefs = Preferences.from_orderings([["rum", "ale", "gin"], ["gin"]])
        >>> prefs.items
        array(['ale', 'gin', 'rum'], dtype=object)
        >>> prefs.rankings
        array([[2, 3, 1],
               [0, 1, 0]], dtype=int32)

        Ann likes rum most, and does not tell ale from gin:

        >>> Preferences.from_orderings([["rum", ["ale", "gin"], "tea"]], users=["ann"]).rankings
        array([[2, 2, 1, 4]], dtype=int32)
        """
        from .from_rankings import orderings_of_anything

        prefs = orderings_of_anything(orderings, weights, users, items)
        return replace(prefs, backend=backend_of(orderings))

    @staticmethod
    def from_clicks(
        clicks: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        times: Any = None,
        columns: Mapping[str, Hashable] | Sequence[Hashable] | None = None,
        min_rating: float | None = None,
        min_clicks: int | None = None,
    ) -> Clicks:
        """Clicks: which items each user has chosen, without any order.

        Parameters
        ----------
        clicks : SciPy sparse matrix, (n_users, n_items) array_like, long data frame, or dict
            In a matrix, every number above 0 is a click, however large: repeated clicks count once.
            A long frame (of any library) has a row for each click, with columns "user" and
            "item", or the other names that :func:`read` knows, such as userId and movieId, and
            maybe "time" (or timestamp, date, datetime): numbers, or dates. Other
            columns are ignored, with a warning if they look like ratings or counts. A dict is
            {user: [item, ...]}, or has these columns as keys. Pairs of numbers are refused, as they
            look like a matrix of two items: give a frame or a dict.
        weights : (n_users,) array_like of int, optional
            How many people each row stands for.
        users, items : sequence, optional
            Names. With a long frame or a dict, they fix the order, and may hold users and items
            that appear nowhere; without them, they are those that appear, sorted where they can be.
        times : optional
            When each click was made, numbers or dates: one for each row of a frame (instead of a
            column), for each number that a sparse matrix stores (in the order of its ``tocoo()``),
            an array of the shape of a dense one, or a dict {user: [time, ...]}. Of an item that a
            user has clicked several times, the first time is kept.
        columns, min_rating, min_clicks : optional
            Of a long frame: as in :func:`read`. Of rows like ``[("ann", "tea", 9), ...]``, or of an
            array of such rows, `columns` is the list of what they hold, such as ``["user", "item",
            "time"]``.

        Examples
        --------
        >>> log = {"user": ["ann", "ann", "bob"], "item": ["tea", "ale", "ale"],
        ...        "date": ["1970-01-01", "1970-01-02", "1970-01-01"]}
        >>> Preferences.from_clicks(log).times  # ann: ale, tea; bob: ale
        array([86400.,     0.,     0.])
        >>> prefs = Preferences.from_clicks([[1, 0, 1], [0, 0, 1]], items=["ale", "gin", "rum"])
        >>> prefs
        Clicks(2 users, 3 items; 3 clicks)
        >>> prefs.clicks_of(0)
        array([0, 2], dtype=int32)
        """
        from .columns import Layout
        from .from_clicks import clicks_of_anything

        layout = Layout(columns, min_rating=min_rating, min_clicks=min_clicks).checked()
        prefs = clicks_of_anything(clicks, weights, users, items, times, layout)
        return replace(prefs, backend=backend_of(clicks))

    @staticmethod
    def from_pairs(
        pairs: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> Pairs:
        """Comparisons: who preferred which of two items, or neither, and how often.

        Parameters
        ----------
        pairs : long data frame, dict, or list
            A frame (of any library), or a dict of columns, has a row for each comparison, with
            columns "user", "better" and "worse", or other usual names (winner and loser, chosen and
            rejected, top_item and bottom_item); or with two sides, such as "model_a" and "model_b",
            and a "winner": the name of the side (model_a, or just a), of the item, or "tie", "both
            bad" and the like for neither. A column "count" or "n" says how often. Other columns are
            ignored. A list has rows (user, better, worse) or (better, worse); a dict is
            {user: [(better, worse), ...]}.

            Without users, each row is a vote by a different person. Equal votes become one row,
            with their number as its weight.
        weights : (n_users,) array_like of int, optional
            How many people each user stands for; without users, each row of `pairs`.
        users, items : sequence, optional
            Names; they fix the order, and may hold users and items that appear nowhere. Without
            them, they are those that appear, sorted where they can be.

        Warns
        -----
        DroppedRowsWarning
            When rows lack a name, a winner or a count; they are left out.

        Examples
        --------
        >>> said = [("ann", "tea", "ale"), ("ann", "tea", "gin"), ("bob", "ale", "tea")]
        >>> prefs = Preferences.from_pairs(said)
        >>> prefs
        Pairs(2 users, 3 items; 3 comparisons)
        >>> prefs.wins()  # [item, other]; the items are ale, gin, tea
        array([[0, 0, 1],
               [0, 0, 0],
               [1, 1, 0]])

        Votes, of which nobody knows who gave them:

        >>> votes = {"model_a": ["x", "y", "x"], "model_b": ["y", "x", "y"],
        ...          "winner": ["model_a", "model_b", "tie"]}
        >>> prefs = Preferences.from_pairs(votes)
        >>> prefs, prefs.weights, prefs.is_vote
        (Pairs(2 users, 2 items; 3 comparisons), array([2, 1]), True)
        """
        from .from_pairs import pairs_of_anything

        return replace(pairs_of_anything(pairs, weights, users, items), backend=backend_of(pairs))

    @staticmethod
    def from_impressions(
        impressions: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
        slate: Hashable | None = None,
    ) -> Pairs:
        """Impressions: what each user was shown, and whether they took it, as comparisons.

        Of the items that were shown at once, each that was clicked is preferred to each that was
        passed over. This says nothing about two clicked items, two passed over, or items that were
        never shown together.

        Parameters
        ----------
        impressions : long data frame, or dict of columns
            A row for each item that was shown, with columns "user", "item" (or the other names that
            :meth:`from_clicks` knows) and "clicked" (or click, taken, label): 1 or 0, true or
            false, yes or no. A column "slate", "session" or "impression_id" says what was shown at
            once; without one, all that a user was ever shown is compared. An item that is there
            twice, and clicked once, is clicked.
        weights : (n_users,) array_like of int, optional
            How many people each user stands for.
        users, items : sequence, optional
            Names, as in :meth:`from_pairs`. Items that were only shown where all or none were
            clicked are items, too.
        slate : optional
            The name of the column of slates, if it is another one.

        Examples
        --------
        >>> shown = {"user": ["ann"] * 3, "item": ["tea", "ale", "gin"], "clicked": [1, 0, 0]}
        >>> prefs = Preferences.from_impressions(shown)
        >>> prefs
        Pairs(1 users, 3 items; 2 comparisons)
        >>> [prefs.items[codes].tolist() for codes in prefs.pairs_of(0)]
        [['tea', 'tea'], ['ale', 'gin']]
        """
        from .from_pairs import impressions_of_anything

        prefs = impressions_of_anything(impressions, weights, users, items, slate)
        return replace(prefs, backend=backend_of(impressions))

    @staticmethod
    def concat(prefs: Iterable[Preferences]) -> Preferences:
        """The users of several data sets together: some who rank, some who click, some who compare.

        The rows are those of the first, then of the second, and so on. If all are of one kind, so
        is the result; otherwise it is :class:`Mixed`. All users must have different names; if all
        are numbered from 0, they get new numbers.

        The items are those of all, by name. An item that a part does not have is not ranked there
        (so it comes after the items that are), not clicked, or not compared.

        Warns
        -----
        AbsentItemsWarning
            When rankings lack items of the other parts, and so rank these last.

        Examples
        --------
        >>> ranked = Preferences.from_orderings([["tea", "ale"]], items=["ale", "tea", "gin"])
        >>> clicked = Preferences.from_clicks({"bob": ["tea"]}, items=["ale", "tea", "gin"])
        >>> compared = Preferences.from_pairs([("eve", "gin", "ale")])
        >>> both = Preferences.concat([ranked, clicked, compared])
        >>> both
        Mixed(3 users, 3 items; 1 by rankings, 1 by clicks, 1 by pairs)
        >>> both.parts[0].rankings, both.items.tolist()
        (array([[2, 1, 3]], dtype=int32), ['ale', 'tea', 'gin'])
        """
        from .mixed import concat

        return concat(prefs)

    def kept(self) -> Preferences | None:
        """What a posterior keeps of the data, to answer users from; nothing of full rankings."""
        return None

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    @abstractmethod
    def is_row_full(self) -> NDArray[np.bool_]:
        """Of which users everything is known."""

    @property
    @abstractmethod
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything."""

    @property
    def is_full(self) -> bool:
        """Is everything known about the users who say anything?"""
        return bool(np.all(self.is_row_full | ~self.is_informative))

    @property
    @abstractmethod
    def shape_words(self) -> str:
        """What the data are, for messages: "full rankings", "clicks"."""

    def facts(self) -> dict[str, int | float]:
        """Figures of the data, by words; users and items come first."""
        return {"users": self.n_users, "items": self.n_items, "people": int(self.weights.sum())}

    @abstractmethod
    def take(self, rows: ArrayLike) -> Preferences:
        """Some of the rows, by number or by mask."""

    @abstractmethod
    def on_items(self, items: NDArray[Any], places: NDArray[np.int64]) -> Preferences:
        """The same over more items: ``places[item]`` is the code of an item there."""

    @classmethod
    @abstractmethod
    def stack(cls, parts: Sequence[Any], users: NDArray[Any]) -> Preferences:
        """Data of this kind over the same items one after the other, with the names of all."""

    @classmethod
    def array_type(cls, name: str) -> Any:
        """The type of an array of a file, by its name; None for one of something else."""
        return (cls.ARRAYS | cls.OPTIONAL).get(name)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the names, as the arrays of a file, by the names of `ARRAYS` and `OPTIONAL`: that
        of the kind, then that of the attribute."""
        names = [*self.ARRAYS, *self.OPTIONAL]
        arrays = {name: getattr(self, name.partition("_")[2]) for name in names}
        return {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
    ) -> Preferences:
        """The data of such arrays; a ValueError says what is wrong with them."""

    def contents(self) -> Iterable[Any]:
        """Bytes that no other data with as many users and the same items have."""
        return [np.ascontiguousarray(array).data for array in self.to_arrays().values()]

    def digest(self) -> str:
        """A short text that tells these data from any other; names of users do not count.

        >>> one, other = (Preferences.from_rankings([ranks]) for ranks in ([1, 2], [2, 1]))
        >>> one.digest() == other.digest()
        False
        """
        digest = hashlib.sha256(str([self.n_users, *self.items.tolist()]).encode())
        for part in self.contents():
            digest.update(part)
        return digest.hexdigest()[:16]

    @abstractmethod
    def as_rankings(self) -> Rankings:
        """What is known by ranks, users row by row: clicks are two ties; of comparisons nothing."""

    def comparisons(self) -> Pairs | None:
        """What is known by comparisons, users row by row; None if nothing is."""
        return None

    @property
    def is_contradictory(self) -> bool:
        """Does a user contradict themselves, so that no ranking agrees with all they say?"""
        return False

    def by_size(self) -> SizeTable | None:
        """Users and clicks by the number of clicks; None where there are no clicks."""
        return None

    def one_row_each(self) -> tuple[Preferences, NDArray[np.int64]]:
        """The same with a row for each person, and the row here that each comes from.

        A row of weight 0 stays, with weight 0.
        """
        owners = np.repeat(np.arange(self.n_users), np.maximum(self.weights, 1))
        return replace(self.take(owners), weights=np.minimum(self.weights, 1)[owners]), owners

    def rename(
        self, *, users: Sequence[Hashable] | None = None, items: Sequence[Hashable] | None = None
    ) -> Self:
        """The same with other names.

        >>> Preferences.from_rankings([[1, 2]]).rename(items=["tea", "mate"]).items
        array(['tea', 'mate'], dtype=object)
        """
        new_users = self.users if users is None else check_names(users, self.n_users, "users")
        new_items = self.items if items is None else check_names(items, self.n_items, "items")
        return replace(self, users=new_users, items=new_items)


def check_informative(informative: NDArray[np.bool_]) -> None:
    """Refuse data without an informative row."""
    if not informative.any():
        raise ValueError(
            "no informative rows: give at least one row with a rank, or with some items clicked "
            "and others not, and a weight above 0"
        )


def check_preferences(prefs: Any) -> None:
    """Refuse anything else."""
    if not isinstance(prefs, Preferences):
        raise TypeError(
            f"prefs must be Preferences, got {type(prefs).__name__}: "
            "use pm.Preferences.from_rankings, from_orderings, from_clicks, from_pairs or "
            "from_impressions, or pm.read for a file"
        )


def rows_of_users(prefs: Preferences, users: Any) -> NDArray[np.int64]:
    """The rows of users, by name; one name alone is one user."""
    return rows_of_names(prefs.users, users)
