"""Headers of comparisons and impressions: what the names of the columns of a table say."""

import re
from collections.abc import Hashable, Sequence

from .headers import ITEM, RANK, USER, are_places, find_column, is_long, only_column, parts, word

BETTER = {"better", "winner", "topitem", "preferred", "chosen"}
BETTER |= {"betteritem", "winneritem", "preferreditem", "chosenitem"}
WORSE = {"worse", "loser", "bottomitem", "rejected", "other"}
WORSE |= {"worseitem", "loseritem", "otheritem", "rejecteditem"}
WINNER = BETTER | {"choice", "preference"}  # beside two sides
SIDES = (("a", "b"), ("1", "2"), ("left", "right"))
SIDED = {"", "model", "option", "candidate", "team", "player", "name"} | ITEM
PAIRS = ({"a", "b"}, {"1", "2"}, {"left", "right"}, {"first", "second"}, {"one", "two"})
TIMES = {"count", "counts", "n", "freq", "frequency", "votes"}
CLICKED = ("clicked", "click", "isclicked", "isclick", "taken", "label")  # the first is meant
SHOWN = ("slate", "impression", "request", "list", "query", "visit", "session")
SLATE = tuple(name + end for name in SHOWN for end in ("", "id"))  # the finest first


def is_pairs(names: Sequence[Hashable]) -> bool:
    """Whether the columns are those of comparisons.

    >>> is_pairs(["assessor", "bottom_item", "top_item"]), is_pairs(["model_a", "model_b"])
    (True, False)
    """
    words = [word(name) for name in names]
    has_sides = bool(_sides(words)) and any(name in WINNER for name in words)
    has_both = any(name in BETTER for name in words) and any(name in WORSE for name in words)
    return (has_both or has_sides) and not is_long(names)


def find_pair_columns(names: Sequence[Hashable]) -> dict[str, int]:
    """The columns of comparisons, by what they are: "better" and "worse", or "one",
    "other" and the "winner" of them; "user" and "count" if there are such.

    >>> find_pair_columns(["user", "model_a", "model_b", "winner"])
    {'one': 1, 'other': 2, 'winner': 3, 'user': 0}
    >>> find_pair_columns(["bottom_item", "top_item", "n"])
    {'better': 1, 'worse': 0, 'count': 2}
    """
    words = [word(name) for name in names]
    if not any(name in WORSE for name in words) and (sides := _sides(words)):
        one, other = _the_items(names, sides)
        columns = {"one": one, "other": other, "winner": only_column(names, WINNER, "winner")}
    else:
        columns = {
            "better": only_column(names, BETTER, "better"),
            "worse": only_column(names, WORSE, "worse"),
        }
    for what, known in (("user", USER), ("count", TIMES)):
        if any(name in known for name in words):
            columns[what] = only_column(names, known, what)
    return columns


def check_voters(names: Sequence[Hashable], columns: dict[str, int]) -> None:
    """Refuse votes, two sides and a winner, beside a column that may be of users: with users each
    has a ranking of their own, which is another model. Only "user" is clear."""
    if "winner" not in columns or "user" not in columns:
        return
    name = names[columns["user"]]
    if word(name) in ("user", "users", "userid"):
        return
    votes = ", ".join(str(names[columns[what]]) for what in ("one", "other", "winner"))
    raise ValueError(
        f"beside the votes ({votes}) there is a column {str(name)!r}. If each {name} has a ranking "
        f"of their own, name that column 'user', or read the file with columns={{'user': {name!r}}}"
        "; if each row is one vote, drop the column, or use .as_votes() on the result"
    )


def _sides(words: list[str]) -> list[tuple[int, int]]:
    """Columns of two sides, such as modela and modelb."""
    places = {name: place for place, name in reversed(list(enumerate(words)))}  # the first of each
    return [
        (place, places[stem + right])
        for left, right in SIDES
        for place, name in enumerate(words)
        if (stem := name.removesuffix(left)) != name and stem + right in places
    ]


def _the_items(names: Sequence[Hashable], sides: list[tuple[int, int]]) -> tuple[int, int]:
    """Of several pairs of columns, that of the items, by name."""
    named = [(one, other) for one, other in sides if _stem(names[one], names[other]) in SIDED]
    pairs = sides if len(sides) == 1 else named
    if len(pairs) != 1:
        shown = ", ".join(str(name) for name in names[:8])
        raise ValueError(
            f"{len(sides)} pairs of columns may be compared: name two of {shown} "
            "'item_a' and 'item_b'"
        )
    return pairs[0]


def _stem(one: Hashable, other: Hashable) -> str:
    return word(one).removesuffix(side_words(one, other)[0])


def side_words(one: Hashable, other: Hashable) -> tuple[str, str]:
    """What tells the names of two sides apart.

    >>> side_words("model_a", "model_b"), side_words("left", "right")
    (('a', 'b'), ('left', 'right'))
    """
    for left, right in SIDES:
        if word(one).endswith(left) and word(other).endswith(right):
            return left, right
    return word(one), word(other)


def refuse_pairs(names: Sequence[Hashable]) -> None:
    """Refuse the header of a table of comparisons, such as user, better, worse."""
    if is_pairs(names):
        raise ValueError(pairs_by(names))


def pairs_by(names: Sequence[Hashable]) -> str:
    """What to say of a table of comparisons that is taken for something else."""
    shown = ", ".join(str(name) for name in names[:5])
    return (
        f"these are comparisons of pairs, by the header {shown}: name the columns user, better and "
        "worse, and use pm.Preferences.from_pairs, or pm.read with kind='pairs'"
    )


def may_be_pairs(names: Sequence[Hashable]) -> bool:
    """Whether there is a column of users, and two more that are named as the sides of a pair, but
    nothing says which is better.

    Rankings of two items may be named so, too: their values tell.

    >>> may_be_pairs(["judge", "left", "right"]), may_be_pairs(["user", "item_1", "item_2"])
    (True, True)
    >>> may_be_pairs(["user", "first", "second"])
    False
    """
    sides = [name for name in names if word(name) not in USER]
    if len(names) != 3 or len(sides) != 2 or are_places(sides):
        return False
    one, other = (parts(re.sub(r"(?<=[a-z])(?=\d)", " ", str(name))) for name in sides)
    return (one ^ other) in PAIRS or bool({word(name) for name in sides} & BETTER)


# Impressions


def is_impressions(names: Sequence[Hashable]) -> bool:
    """Whether the columns may be those of impressions; the values of the third must be yes or no.

    >>> is_impressions(["user", "item", "clicked"]), is_impressions(["user", "item", "rating"])
    (True, False)
    """
    words = {word(name) for name in names}
    return is_long(names) and bool(words & set(CLICKED)) and not words & RANK


def find_impression_columns(
    names: Sequence[Hashable], slate: Hashable | None = None
) -> dict[str, int]:
    """The columns of impressions, by what they are; "slate" only if there is one.
    Without a column of users, a session is a user, or any other slate.

    >>> find_impression_columns(["session", "item", "label", "user"])
    {'user': 3, 'item': 1, 'clicked': 2, 'slate': 0}
    """
    if slate is not None and slate not in names:
        raise ValueError(f"slate must be a column, got {slate!r}; the columns are {names[:8]}")
    words = [word(name) for name in names]
    slates = SLATE if slate is None else (word(slate),)
    shown = [words.index(name) for name in slates if name in words]
    others = ["" if name in slates else name for name in words]
    is_named = any(name in USER for name in others) or not shown
    columns = {"user": only_column(others, USER, "user") if is_named else shown.pop()}
    columns["item"] = find_column(names, "item")
    clicked = [words.index(name) for name in CLICKED if name in words]
    columns["clicked"] = clicked[0] if clicked else only_column(names, CLICKED, "clicked")
    return columns | ({"slate": shown[0]} if shown else {})
