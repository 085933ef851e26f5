"""Comparisons from impressions: what was shown, and was it taken."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_n_items
from .doubts import NO, YES
from .pairs import Pairs, pairs_of_entries
from .table import Coded, CodedTable, Table, is_table, join_names, table_of

MOST_PAIRS = 50_000_000  # that impressions may make: at some 160 bytes each, 8 GB
Names = Sequence[Hashable] | None


def impressions_of_anything(
    impressions: Any,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    slate: Hashable | None,
) -> Pairs:
    """See :meth:`Preferences.from_impressions`."""
    if not is_table(impressions):
        raise TypeError(
            "impressions must be a data frame or a dict with the columns user, item and clicked, "
            f"got {type(impressions).__name__}"
        )
    return impressions_of_table(table_of("impressions", impressions), weights, users, items, slate)


def impressions_of_table(
    table: Table,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    slate: Hashable | None = None,
) -> Pairs:
    """Within a slate, or a user if there are no slates, each clicked item beats each that was shown
    and passed over."""
    coded = table.coded_table(table.find("impressions", slate=slate)).whole_rows()
    columns = coded.columns
    is_clicked = _clicked(coded)
    (codes,), item_names = join_names([columns["item"]], items, "item")
    (owners,), user_names = join_names([columns["user"]], users, "user")
    check_n_items(len(item_names))
    slates = columns["slate"].codes if "slate" in columns else np.zeros_like(owners)
    order = np.lexsort((~is_clicked, codes, slates, owners))  # a click before no click
    owners, slates, codes = owners[order], slates[order], codes[order]
    is_slate = _changes(owners, slates)
    is_first = is_slate | _changes(codes)  # an item counts once in a slate
    groups = (np.cumsum(is_slate) - 1)[is_first]
    owners, shown = owners[is_first], codes[is_first]
    better, worse = _taken_over_passed(table.title, groups, is_clicked[order][is_first])
    n_pairs = len(better)
    is_tie, counts = np.zeros(n_pairs, dtype=bool), np.ones(n_pairs, dtype=np.int64)
    pairs = owners[better], shown[better], shown[worse]
    return pairs_of_entries(*pairs, is_tie, counts, weights, user_names, item_names)


def is_yes_and_no(clicked: Coded) -> bool:
    """Whether the values of a column are yes and no, with some of either."""
    values = {_yes_or_no(clicked.names[code]) for code in np.unique(clicked.codes) if code >= 0}
    return values == {0, 1}


def _clicked(table: CodedTable) -> NDArray[np.bool_]:
    clicked = table.columns["clicked"]
    values = np.array([_yes_or_no(name) for name in clicked.names])[clicked.codes]
    table.refuse(
        values < 0,
        lambda row: (
            f"clicked must be 1 or 0, true or false, yes or no, got {table.value('clicked', row)!r}"
        ),
    )
    return np.asarray(values == 1)


def _yes_or_no(value: Any) -> int:
    """1 or 0, -1 for something else."""
    said = str(value).strip().lower()
    return 1 if said in YES else 0 if said in NO else -1


def _changes(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """At which places a key differs from the one before; the first counts as such."""
    changes = np.ones(len(keys[0]), dtype=bool)
    changes[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return changes


def _taken_over_passed(
    name: str, groups: NDArray[np.int64], is_taken: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every two places of one group of which the first was taken and the second not."""
    taken, passed = np.flatnonzero(is_taken), np.flatnonzero(~is_taken)
    n_passed = np.bincount(groups[passed], minlength=int(groups[-1]) + 1)
    sizes = n_passed[groups[taken]]
    if sizes.sum() > MOST_PAIRS:
        raise ValueError(
            f"{name} makes {sizes.sum():.3g} comparisons, and at most {MOST_PAIRS:.0e} are "
            "possible: say what was shown at once by a column 'slate', or give fewer rows"
        )
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = (np.cumsum(n_passed) - n_passed)[groups[taken]]  # passed over, of each group
    return np.repeat(taken, sizes), passed[np.repeat(firsts, sizes) + within]
