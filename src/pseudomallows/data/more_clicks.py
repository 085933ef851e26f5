"""Clicks from elsewhere, in any form, brought to the users and items of a fit: later ones, by which
it is evaluated or corrected, and more of them, to learn from."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from .blocks import Clicks, stacked
from .checks import codes_of, object_array
from .from_clicks import clicks_of_pairs
from .preferences import DroppedRowsWarning, Preferences
from .read import read_as
from .table import is_table

P = TypeVar("P", bound=Preferences)
ANEW = "the model depends on the items, so fit all clicks again to add some"


@dataclass(frozen=True, eq=False)
class LaterClicks:
    """Later clicks with the users and items of a fit, and what was left out."""

    clicks: Clicks
    n_users: int  # who have later clicks
    n_items: int
    strange_users: int  # of these, who are not in the fit
    strange_items: int
    n_left_out: int  # clicks of strange users, or on strange items
    n_clicks: int


def check_held_out(held_out: Any, prefs: Clicks) -> Clicks:
    """Later clicks, in any form of `from_clicks`, with the items of the fit, of users of the fit.

    What the fit does not know is left out, with a warning that counts it.
    """
    later = later_clicks(held_out, prefs, "held_out")
    if later.strange_items or later.strange_users:
        warn(
            DroppedRowsWarning(
                f"held_out: {later.strange_items} of {later.n_items} items and "
                f"{later.strange_users} of {later.n_users} users are not in the fit, so "
                f"{later.n_left_out} of {later.n_clicks} clicks are left out"
            )
        )
    return later.clicks


def later_clicks(later: Any, prefs: Clicks, what: str) -> LaterClicks:
    """Later clicks with all users of the fit, and what was left out; nothing is warned of."""
    clicks = _as_clicks(later, prefs, what)
    items = codes_of(clicks.items.tolist(), prefs.items)
    users = codes_of(clicks.users.tolist(), prefs.users)
    owners, codes = np.repeat(users, clicks.n_clicks), items[clicks.codes]
    is_known = (owners >= 0) & (codes >= 0)
    if not is_known.any():
        first = [names[:1].tolist()[0] for names in (clicks.users, prefs.users, clicks.items)]
        first += prefs.items[:1].tolist()
        raise ValueError(
            "{} has no click of a user of the fit on an item of the fit; its users are like "
            "{!r}, those of the fit like {!r}; its items like {!r}, those of the fit like {!r}"
            "".format(what, *first)
        )
    times = None if clicks.times is None else clicks.times[is_known]
    names = (prefs.weights, prefs.users, prefs.items)
    known = clicks_of_pairs(owners[is_known], codes[is_known], *names, times)
    strange = int((users < 0).sum()), int((items < 0).sum())
    n_left_out = int((~is_known).sum())
    return LaterClicks(known, len(users), len(items), *strange, n_left_out, len(clicks.codes))


def _as_clicks(clicks: Any, prefs: Clicks, what: str) -> Clicks:
    """Clicks by name; a matrix, which has none, has the rows and columns of the fit."""
    if isinstance(clicks, Clicks):
        return clicks
    if isinstance(clicks, Preferences):
        raise TypeError(f"{what} must be clicks, got {clicks.kind}")
    items, users = prefs.items.tolist(), prefs.users.tolist()
    if not is_table(clicks):
        try:
            return Preferences.from_clicks(clicks, users=users, items=items)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{what} must be clicks: a file, a dict {{user: [item, ...]}}, a data frame, "
                f"Clicks, or a matrix with the users and items of the fit; {error}"
            ) from None
    try:
        return Preferences.from_clicks(clicks, items=items)
    except ValueError:  # there are other items too
        try:
            return Preferences.from_clicks(clicks)
        except ValueError as error:
            raise ValueError(
                f"{what} must have items of the fit, such as {items[:3]}: {error}"
            ) from None


def join_clicks(old: Clicks, more: Any) -> Clicks:
    """The clicks of `old` and of `more` together; the users of `old` come first.

    `more` is clicks, or what :meth:`Preferences.from_clicks` takes. Users are the same if their
    names are: they have the clicks of both, and their weight in `old`. A matrix without names has
    the users 0, 1, ... and the items of `old`. A click of both has the earlier of its times.

    Examples
    --------
    >>> old = Preferences.from_clicks({"ann": ["tea"], "bob": ["ale", "tea"]})
    >>> both = join_clicks(old, {"eve": ["ale"], "ann": ["ale"]})
    >>> both.users.tolist(), [both.clicks_of(row).tolist() for row in range(3)]
    (['ann', 'bob', 'eve'], [[0, 1], [0, 1], [0]])
    """
    if isinstance(more, Preferences) and not isinstance(more, Clicks):
        raise TypeError(f"more must be clicks, as the fit is of clicks, got {more!r}")
    try:
        given = isinstance(more, Clicks)
        new = more if given else Preferences.from_clicks(more, items=old.items.tolist())
    except ValueError as error:
        advice = f"; {ANEW}" if str(error).startswith("unknown item") else ""
        raise ValueError(f"more: {error}{advice}") from None
    # The item of `old` that has the name of each of `new`; those that nobody clicked need none.
    codes = codes_of(new.items.tolist(), old.items)
    strange = new.items[(codes < 0) & (new.item_counts() > 0)].tolist()
    if strange:
        others = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        shown = ", ".join(map(repr, strange[:3]))
        raise ValueError(f"more has items that the fit does not know: {shown}{others}; {ANEW}")
    # The rows; a user named 7 beside one named "7" is likely one person, read in two ways.
    rows = {name: row for row, name in enumerate(old.users.tolist())}
    alike = {str(name): name for name in rows}
    for name in new.users.tolist():
        if name not in rows and str(name) in alike:
            raise ValueError(
                f"more has the user {name!r} and the fit {alike[str(name)]!r}: give names of the "
                "same type"
            )
    row_of = np.array([rows.setdefault(name, len(rows)) for name in new.users.tolist()])
    weights = np.concatenate([old.weights, new.weights[row_of >= old.n_users]])
    wrong = (new.weights != 1) & (new.weights != weights[row_of])
    if wrong.any():
        row = int(wrong.argmax())
        wanted = weights[row_of[row]]
        raise ValueError(
            f"more has the user {new.users[row]!r} with weight {new.weights[row]}, and the fit "
            f"with {wanted}; give {wanted}, or 1; {int(wrong.sum())} users have this problem"
        )
    pairs = (
        np.concatenate([old.owners, np.repeat(row_of, new.n_clicks)]),
        np.concatenate([old.codes.astype(np.int64), codes[new.codes]]),
    )
    names = (object_array(list(rows)), old.items)
    return clicks_of_pairs(*pairs, weights, *names, stacked([old, new], "times"))


# Files


def read_later(clicks: Any, prefs: Clicks) -> Any:
    """Clicks of a file, if a path is given; anything else stays what it is.

    Names in files are text: those that are numbers in `prefs` become so here, too.
    """
    if not isinstance(clicks, str | os.PathLike):
        return clicks
    later, _ = read_as(clicks, "clicks", may_be_one_item=True)
    return named_like(later, prefs)


def named_like(clicks: P, known: Any) -> P:
    """Clicks whose names are text, with names like those of data, or of a fit."""
    user_of, item_of = name_like(known.users), name_like(known.items)
    users, items = map(user_of, clicks.users), map(item_of, clicks.items)
    return clicks.rename(users=list(users), items=list(items))


def name_like(names: NDArray[Any]) -> Callable[[str], Any]:
    """What turns text into a name like these: a number, if all of them are.

    >>> import numpy as np
    >>> [name_like(np.array(names))("7") for names in ([5, 7], ["5", "7"])]
    [7, '7']
    """
    known = {str(name): name for name in names.tolist()}
    are_numbers = all(type(name) is int for name in known.values())

    def name_of(text: str) -> Any:
        is_number = are_numbers and text.isdecimal() and str(int(text)) == text
        return known.get(text, int(text) if is_number else text)

    return name_of
