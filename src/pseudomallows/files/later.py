"""Later clicks from a file, with the names of the clicks that are there."""

import os
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from ..preferences import Clicks
from .read import read_as


def read_later(clicks: Any, prefs: Clicks) -> Any:
    """Clicks of a file, if a path is given; anything else stays what it is.

    Names in files are text: those that are numbers in `prefs` become so here, too.
    """
    if not isinstance(clicks, str | os.PathLike):
        return clicks
    later, _ = read_as(clicks, "clicks", may_be_one_item=True)
    users, items = (name_like(names) for names in (prefs.users, prefs.items))
    return later.rename(
        users=[users(name) for name in later.users], items=[items(name) for name in later.items]
    )


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
