"""More clicks beside those there are: of new users, or of the same ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Clicks, stack_times
from .checks import object_array
from .inputs.clicks import clicks_of_pairs
from .preferences import Preferences

ANEW = "the model depends on the items, so fit all clicks again to add some"


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
    new = more if isinstance(more, Clicks) else _as_clicks(more, old)
    codes = _item_codes(old, new)
    rows = {name: row for row, name in enumerate(old.users.tolist())}
    _check_alike(rows, new)
    places = np.array([rows.setdefault(name, len(rows)) for name in new.users.tolist()])
    weights = np.concatenate([old.weights, new.weights[places >= old.n_users]])
    _check_weights(new, weights[places])
    pairs = (
        np.concatenate([_owners(old, np.arange(old.n_users)), _owners(new, places)]),
        np.concatenate([old.codes.astype(np.int64), codes[new.codes]]),
    )
    names = (object_array(list(rows)), old.items)
    return clicks_of_pairs(*pairs, weights, *names, stack_times([old, new]))


def _as_clicks(more: Any, old: Clicks) -> Clicks:
    if isinstance(more, Preferences):
        raise TypeError(f"more must be clicks, as the fit is of clicks, got {more!r}")
    try:
        return Preferences.from_clicks(more, items=old.items.tolist())
    except ValueError as error:
        advice = f"; {ANEW}" if str(error).startswith("unknown item") else ""
        raise ValueError(f"more: {error}{advice}") from None


def _item_codes(old: Clicks, new: Clicks) -> NDArray[np.int64]:
    """``codes[item of new]`` is the item of `old` that has its name, -1 if nobody clicked it."""
    known = {name: code for code, name in enumerate(old.items.tolist())}
    codes = np.array([known.get(name, -1) for name in new.items.tolist()], dtype=np.int64)
    strange = new.items[(codes < 0) & (new.item_counts() > 0)].tolist()
    if strange:
        others = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
        shown = ", ".join(map(repr, strange[:3]))
        raise ValueError(f"more has items that the fit does not know: {shown}{others}; {ANEW}")
    return codes


def _check_alike(rows: dict[Any, int], new: Clicks) -> None:
    """Refuse a user named 7 beside one named "7": likely one person, read in two ways."""
    names = {str(name): name for name in rows}
    for name in new.users.tolist():
        if name not in rows and str(name) in names:
            raise ValueError(
                f"more has the user {name!r} and the fit {names[str(name)]!r}: give names of the "
                "same type"
            )


def _check_weights(new: Clicks, weights: NDArray[np.int64]) -> None:
    """A user of both has the weight of the fit, unless another is asked for."""
    wrong = (new.weights != 1) & (new.weights != weights)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"more has the user {new.users[row]!r} with weight {new.weights[row]}, and the fit "
            f"with {weights[row]}; give {weights[row]}, or 1; {int(wrong.sum())} users have this "
            "problem"
        )


def _owners(clicks: Clicks, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[click]`` is the place of its user."""
    return np.repeat(places, clicks.n_clicks)
