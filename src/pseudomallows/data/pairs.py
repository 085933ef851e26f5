"""Comparisons: which of two items a user prefers, as often as the user said so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import MAX_WEIGHT, check_weights
from .blocks import Entries, Rankings, typed_arrays
from .checks import spread


@dataclass(frozen=True, eq=False)
class Pairs(Entries):
    """Comparisons of two items: entry `e` of row `user`, from ``starts[user]`` to
    ``starts[user + 1] - 1``, says that the user preferred ``better[e]`` to ``worse[e]``
    ``counts[e]`` times, and ``ties[e]`` times neither of them.

    The entries of a row are sorted by (better, worse), each pair there once; both orders of two
    items are two entries. Ties are on the entry whose `better` is the lower code, which may have a
    count of 0.
    """

    kind = "pairs"
    ARRAYS: ClassVar[dict[str, Any]] = {
        "pair_starts": np.int64,
        "pair_weights": np.int64,
        "pair_better": np.int32,
        "pair_worse": np.int32,
        "pair_counts": np.int64,
        "pair_ties": np.int64,
    }
    ENTRIES = ("better", "worse", "counts", "ties")
    WORDS = "comparisons"

    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    counts: NDArray[np.int64]
    ties: NDArray[np.int64]

    def __repr__(self) -> str:
        total = int((self.n_comparisons * self.weights).sum())
        return f"Pairs({self.n_users} users, {self.n_items} items; {total} comparisons)"

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: an item won, and the weight is not 0."""
        return (self._row_sums(self.counts) > 0) & (self.weights > 0)

    @property
    def shape_words(self) -> str:
        """What the data are, for messages."""
        return self.WORDS

    def facts(self) -> dict[str, int | float]:
        """Figures of the data, by words. Comparisons, ties among them, are of all people; those of
        a user are of a row.

        >>> facts = Pairs.from_pairs([("ann", "tea", "ale"), ("ann", "ale", "tea")]).facts()
        >>> facts["comparisons"], facts["contradictory users"]
        (2, 1)
        """
        return super().facts() | {
            "comparisons": int((self.n_comparisons * self.weights).sum()),
            "ties": int((self._row_sums(self.ties) * self.weights).sum()),
            **spread(self.n_comparisons, "comparisons of a user"),
            "contradictory users": int((~self.is_consistent).sum()),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
    ) -> "Pairs":
        """The comparisons of such arrays, which are checked.

        >>> prefs = Pairs.from_pairs([("ann", "tea", "ale"), ("bob", "ale", "tea")])
        >>> Pairs.from_arrays(prefs.to_arrays(), prefs.users, prefs.items)
        Pairs(2 users, 2 items; 2 comparisons)
        """
        starts, weights, better, worse, counts, ties = given = typed_arrays(arrays, cls.ARRAYS)
        cls.check_starts(given, len(users))
        lowest, highest = np.minimum(better, worse), np.maximum(better, worse)
        if not ((lowest >= 0) & (highest < len(items)) & (lowest < highest)).all():
            raise ValueError("its comparisons do not fit together")
        rows = np.repeat(np.arange(len(users)), np.diff(starts))
        if not _rises(rows, better, worse)[1:].all():
            raise ValueError("its comparisons are not in order, or one is there twice")
        is_right = (counts >= 0) & (ties >= 0) & ((counts > 0) | (ties > 0))
        if not (is_right & ((ties == 0) | (better < worse))).all():
            raise ValueError("its comparisons have wrong counts or ties")
        return cls(weights, users, items, starts, better, worse, counts, ties).check_size()

    def as_rankings(self) -> Rankings:
        """No rank is known."""
        ranks = np.zeros((self.n_users, self.n_items), dtype=np.int32)
        return Rankings(self.weights, self.users, self.items, ranks)

    def comparisons(self) -> "Pairs":
        """They are."""
        return self

    @property
    def is_contradictory(self) -> bool:
        """Does a user contradict themselves, so that no ranking agrees with all they say?"""
        return not bool(self.is_consistent[self.is_informative].all())

    def on_items(self, items: NDArray[Any], places: NDArray[np.int64]) -> "Pairs":
        """The same over other items."""
        return pairs_of_entries(
            np.tile(self.owners, 2),
            np.tile(places[self.better], 2),
            np.tile(places[self.worse], 2),
            np.repeat([False, True], len(self.better)),
            np.concatenate([self.counts, self.ties]),
            self.weights,
            self.users,
            items,
        )

    @classmethod
    def stack(cls, parts: Sequence["Pairs"], users: NDArray[Any]) -> "Pairs":
        """Comparisons of the same items one after the other."""
        return super().stack(parts, users).check_size()

    @property
    def n_comparisons(self) -> NDArray[np.int64]:
        """How many comparisons each user made, ties among them."""
        return self._row_sums(self.counts + self.ties)

    @property
    def is_vote(self) -> bool:
        """Has each row at most one comparison, so that nothing joins two of them?"""
        return bool((self.n_comparisons <= 1).all())

    @property
    def is_consistent(self) -> NDArray[np.bool_]:
        """Which users have never contradicted themselves: some ranking agrees with all wins.

        >>> said = {"ann": [("a", "b"), ("b", "c")], "bob": [("a", "b"), ("b", "c"), ("c", "a")]}
        >>> Pairs.from_pairs(said).is_consistent
        array([ True, False])
        """
        consistent = np.ones(self.n_users, dtype=bool)
        consistent[np.unique(self.owners[self._circular()[1]])] = False
        return consistent

    def pairs_of(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The wins of a user, as codes: which item, and over which; the counts are left out.

        >>> prefs = Pairs.from_pairs([("ann", "tea", "ale"), ("ann", "tea", "gin")])
        >>> prefs.pairs_of(0)
        (array([2, 2], dtype=int32), array([0, 1], dtype=int32))
        """
        mine = slice(self.starts[row], self.starts[row + 1])
        has_won = self.counts[mine] > 0
        return self.better[mine][has_won], self.worse[mine][has_won]

    def wins(self) -> NDArray[np.int64]:
        """``wins[item, other]`` is how often people preferred `item` to `other`.

        >>> Pairs.from_pairs([("tea", "ale"), ("tea", "ale"), ("ale", "tea")]).wins()
        array([[0, 1],
               [2, 0]])
        """
        return self._by_items(self.counts)

    def tied(self) -> NDArray[np.int64]:
        """``tied[item, other]``, the same as ``tied[other, item]``, is how often people preferred
        neither."""
        ties = self._by_items(self.ties)
        return ties + ties.T

    def as_votes(self) -> "Pairs":
        """The same comparisons without their users: each counts as a vote by a different person.

        A row is a win of one item over another, or a tie of two, and its weight says how often
        that was said. The rows are named 0, 1, ...

        >>> votes = Pairs.from_pairs({"ann": [("tea", "ale"), ("ale", "gin")]}).as_votes()
        >>> votes, votes.weights
        (Pairs(2 users, 3 items; 2 comparisons), array([1, 1]))
        """
        weights = self.weights[self.owners]
        return votes_of(
            np.concatenate([self.better, self.better]),
            np.concatenate([self.worse, self.worse]),
            np.repeat([False, True], len(self.better)),
            np.concatenate([self.counts * weights, self.ties * weights]),
            self.items,
        )

    def groups(self) -> list[list[Any]]:
        """The items that were compared with each other, directly or through others, the largest
        group first. The order of items of different groups is not in the data.

        >>> Pairs.from_pairs([("tea", "ale"), ("gin", "rum"), ("ale", "mate")]).groups()
        [['ale', 'mate', 'tea'], ['gin', 'rum']]
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        is_counted = self.weights[self.owners] > 0
        links = np.ones(int(is_counted.sum()), dtype=bool)
        ends, shape = (
            (self.better[is_counted], self.worse[is_counted]),
            (self.n_items, self.n_items),
        )
        n_groups, labels = connected_components(csr_array((links, ends), shape), directed=False)
        groups = [self.items[labels == group].tolist() for group in range(n_groups)]
        return sorted(groups, key=len, reverse=True)

    def contradictions(self, most: int | None = None) -> list[tuple[Any, list[Any]]]:
        """Users who contradicted themselves, at most `most` of them, and one cycle of each: every
        item of it beat the next, and the last beat the first.

        >>> said = {"ann": [("a", "b"), ("b", "c")], "bob": [("a", "b"), ("b", "c"), ("c", "a")]}
        >>> Pairs.from_pairs(said).contradictions()
        [('bob', ['a', 'b', 'c'])]
        """
        groups, within = self._circular()
        rows, firsts = np.unique(self.owners[within], return_index=True)
        ends = np.append(firsts, len(within))[1:]
        cycles = []
        for row, first, end in list(zip(rows, firsts, ends, strict=True))[:most]:
            mine = within[first:end]
            mine = mine[groups[mine] == groups[mine[0]]]  # one strong component is enough
            cycle = _cycle(self.better[mine].tolist(), self.worse[mine].tolist())
            cycles.append((self.users[row : row + 1].tolist()[0], self.items[cycle].tolist()))
        return cycles

    def _circular(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The group of each entry, and the entries, in order, that are part of a cycle of wins.

        A win is part of a cycle if both items are in one strongly connected component of the wins
        of its user: all users at once, in time linear in the entries.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        wins = np.flatnonzero(self.counts > 0)
        owners = self.owners
        n_wins = np.bincount(owners[wins], minlength=self.n_users)
        wins = wins[n_wins[owners[wins]] > 1]
        groups = np.zeros(len(self.better), dtype=np.int64)
        if not len(wins):
            return groups, wins
        _, rows = np.unique(owners[wins], return_inverse=True)
        cells = np.concatenate([rows * self.n_items + self.better[wins]] * 2)
        cells[len(wins) :] = rows * self.n_items + self.worse[wins]
        present, nodes = np.unique(cells, return_inverse=True)
        ends = nodes[: len(wins)], nodes[len(wins) :]
        graph = csr_array(
            (np.ones(len(wins), dtype=bool), ends), shape=(len(present), len(present))
        )
        _, labels = connected_components(graph, directed=True, connection="strong")
        groups[wins] = labels[ends[0]]
        return groups, wins[labels[ends[0]] == labels[ends[1]]]

    def _by_items(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of an entry's number times the weight, ``[better, worse]``."""
        n_items = self.n_items
        cells = self.better.astype(np.int64) * n_items + self.worse
        weighted = numbers * self.weights[self.owners]
        sums = np.bincount(cells, weighted, n_items * n_items)  # below 2^53, so exact
        return sums.astype(np.int64).reshape(n_items, n_items)

    def _row_sums(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        sums = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
        return sums[self.starts[1:]] - sums[self.starts[:-1]]

    def check_size(self) -> "Pairs":
        """The same, unless there are too many comparisons to be counted."""
        counts = self.counts.astype(float) + self.ties
        total = float((counts * np.maximum(self.weights, 1)[self.owners]).sum())
        if total > MAX_WEIGHT:
            raise ValueError(
                f"there must be at most {MAX_WEIGHT:.0e} comparisons in all, by counts and "
                f"weights, got {total:.3g}"
            )
        return self


def pairs_of_entries(
    rows: NDArray[Any],
    better: NDArray[Any],
    worse: NDArray[Any],
    is_tie: NDArray[np.bool_],
    counts: NDArray[np.int64],
    weights: ArrayLike | None,
    users: NDArray[Any],
    items: NDArray[Any],
) -> Pairs:
    """Comparisons by codes, in any order: ``counts[entry]`` times the user of ``rows[entry]`` said
    so. Those of the same pair are added up; those of a count of 0 are left out."""
    one, other = np.minimum(better, worse), np.maximum(better, worse)
    better, worse = np.where(is_tie, one, better), np.where(is_tie, other, worse)
    entries = np.flatnonzero(counts > 0)
    entries = entries[np.lexsort((worse[entries], better[entries], rows[entries]))]
    rows, better, worse = rows[entries], better[entries], worse[entries]
    firsts = np.flatnonzero(_rises(rows, better, worse))
    n_users = len(users)
    sizes = np.bincount(rows[firsts], minlength=n_users)
    return Pairs(
        check_weights(weights, n_users),
        users,
        items,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        better[firsts].astype(np.int32),
        worse[firsts].astype(np.int32),
        _sums(np.where(is_tie, 0, counts)[entries], firsts),
        _sums(np.where(is_tie, counts, 0)[entries], firsts),
    ).check_size()


def votes_of(
    better: NDArray[Any],
    worse: NDArray[Any],
    is_tie: NDArray[np.bool_],
    counts: NDArray[np.int64],
    items: NDArray[Any],
) -> Pairs:
    """Comparisons by codes, each by a person of its own: a row for each win or tie of two items,
    with how often it was said as its weight."""
    nobody = np.zeros(len(better), dtype=np.int64)
    one = pairs_of_entries(nobody, better, worse, is_tie, counts, None, np.arange(1), items)
    weights = np.stack([one.counts, one.ties], axis=1)
    entries, of_ties = np.nonzero(weights)
    return Pairs(
        weights[entries, of_ties],
        np.arange(len(entries)),
        items,
        np.arange(len(entries) + 1, dtype=np.int64),
        one.better[entries],
        one.worse[entries],
        1 - of_ties,
        of_ties,
    )


def _rises(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """At which places the keys, the most important first, are greater than those before; the first
    counts as such."""
    rises = np.ones(len(keys[0]), dtype=bool)
    if len(rises):
        rises[1:] = False
        for key in reversed(keys):
            rises[1:] = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & rises[1:])
    return rises


def _sums(numbers: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the numbers from each first place to the next."""
    if not len(firsts):
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.add.reduceat(numbers, firsts), dtype=np.int64)


def _cycle(better: list[int], worse: list[int]) -> list[int]:
    """A cycle of edges that are all of one strong component, from its lowest item on."""
    follower = dict(zip(better, worse, strict=True))  # each item has one, so this comes back
    places: dict[int, int] = {}
    item = better[0]
    while item not in places:
        places[item] = len(places)
        item = follower[item]
    cycle = list(places)[places[item] :]
    lowest = cycle.index(min(cycle))
    return cycle[lowest:] + cycle[:lowest]
