"""Columns: what the names of the columns of a table say, in a file as in a data frame."""

import math
import re
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ..rankings import check_count, check_number


def words_in(text: str) -> set[str]:
    """The words of a text."""
    return set(text.split())


# The words for each column, as `word` gives them: in lower case, without spaces or underscores.
USER = words_in(
    "user users userid customer customerid visitor visitorid session sessionid person personid "
    "assessor voter voterid respondent respondentid judge participant participantid subject rater "
    "uid indexlevel0"  # the last is of pandas, in Parquet
)
ITEM = words_in(
    "item items itemid product productid stockcode article articleid movie movieid track trackid "
    "page pageid asin alternative"
)
NAMES = USER | ITEM
POSITION = words_in("position positions place places pos")
ORDER = {"order"}  # of a ranking, if it counts from 1 for several users; else the number of one
BETTER = words_in(
    "better winner topitem preferred chosen betteritem winneritem preferreditem chosenitem"
)
CLICKED = ("clicked", "click", "isclicked", "isclick", "taken", "label")  # the first is meant
WORDS = {
    "user": USER,
    "item": ITEM,
    "rank": words_in("rank ranks ranking"),
    "better": BETTER,
    "worse": words_in(
        "worse loser bottomitem rejected other worseitem loseritem otheritem rejecteditem"
    ),
    "winner": BETTER | {"choice", "preference"},  # beside two sides
    "count": words_in("count counts n freq frequency votes"),  # how often something was said
    "clicked": set(CLICKED),
}
SIDES = (("a", "b"), ("1", "2"), ("left", "right"))
SIDED = {"", "model", "option", "candidate", "team", "player", "name"} | ITEM
# Of these the first that is there is meant.
SHOWN = ("slate", "impression", "request", "list", "query", "visit", "session")
SLATE = tuple(name + end for name in SHOWN for end in ("", "id"))  # the finest first
TIME = ("timestamp", "datetime", "date", "time", "ts")
OF_WHAT = "invoice order purchase transaction event click visit view session review rating play"
OF_WHAT += " unix created"  # whose date or time
TIMES = (*TIME, *(what + when for what in OF_WHAT.split() for when in (*TIME, "at")))
RATING = words_in("rating ratings score scores star stars grade overall vote votes")
NEUTRAL = words_in(  # columns of these names hold no judgement
    "time timestamp date datetime hour hours day days week weekday month year minute minutes "
    "seconds ms ts utc epoch timezone price unitprice cost lat latitude lon lng longitude age sex "
    "gender id name title url text type category code index row line"
)
MARKS, HUMP, NO_LETTERS = map(re.compile, (r"[\s_-]", r"(?<=[a-z\d])(?=[A-Z])", r"[\W_]+"))
TYPES = re.compile(r":(token|float)(_seq)?$")  # after the names of RecBole

ORDINALS = str.split(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_OF = r"(?:rank(?:ed|ing)?|place|choice|position|pos|pref(?:erence)?|pick|top|no\.?|nr\.?|#)"
PLACE = re.compile(
    rf"(?:{_OF}[ _-]?)?(?:(?P<number>\d{{1,9}})(?:st|nd|rd|th)?|(?P<word>{'|'.join(ORDINALS)}))"
    rf"(?:[ _-]?{_OF})?",
    re.I | re.A,
)


def word(name: Hashable) -> str:
    """A name of a column without what is a matter of taste."""
    return MARKS.sub("", TYPES.sub("", str(name).lower()))


def parts(name: Hashable) -> set[str]:
    """The words that a name is made of, in lower case.

    >>> sorted(parts("numRatings:float"))
    ['num', 'ratings']
    """
    spaced = HUMP.sub(" ", TYPES.sub("", str(name)))
    return set(NO_LETTERS.split(spaced.lower())) - {""}


# Kinds

KINDS = ("rankings", "long-rankings", "orderings", "clicks", "wide-clicks", "pairs", "impressions")


def is_long(names: Sequence[Hashable]) -> bool:
    """Whether there are columns for user and item."""
    words = set(map(word, names))
    return bool(words & USER) and bool(words & ITEM)


def is_pairs(names: Sequence[Hashable]) -> bool:
    """Whether the columns are those of comparisons.

    >>> is_pairs(["assessor", "bottom_item", "top_item"]), is_pairs(["model_a", "model_b"])
    (True, False)
    """
    listed = [word(name) for name in names]
    words = set(listed)
    has_sides = bool(find_sides(listed)) and bool(words & WORDS["winner"])
    has_both = bool(words & BETTER) and bool(words & WORDS["worse"])
    return (has_both or has_sides) and not is_long(names)


def kind_of(names: Sequence[Hashable]) -> str | None:
    """The kind of a long table by its columns, None for other tables; of impressions, the third
    column must be of yes and no, or these are clicks.

    >>> [kind_of(["user", "item", name]) for name in ("time", "rank", "clicked")]
    ['clicks', 'long-rankings', 'impressions']
    """
    if is_pairs(names):
        return "pairs"
    if not is_long(names):
        return None
    words = set(map(word, names))
    if words & WORDS["rank"]:
        return "long-rankings"
    return "impressions" if words & WORDS["clicked"] else "clicks"


def refuse_pairs(names: Sequence[Hashable]) -> None:
    """Refuse the header of a table of comparisons, such as user, better, worse."""
    if is_pairs(names):
        raise ValueError(
            f"these are comparisons of pairs, by the header {_shown(names)}: name the columns "
            "user, better and worse, and use pm.Preferences.from_pairs, or pm.read with "
            "kind='pairs'"
        )


# Columns


def is_user_word(name: Hashable) -> bool:
    """Whether a first column of this name is that of the users."""
    header = word(name)
    return header in ("", "id", "name", "nr", "no", "row", "index") or header.endswith("id")


def user_column(names: Sequence[Hashable]) -> int | None:
    """The column of the users in a table with a row for each, -1 for none; None if the names do not
    show it.

    >>> [user_column(names) for names in (["tea", "user"], ["a", "1st", "2nd"], ["tea", "ale"])]
    [1, 0, None]
    """
    for place, name in enumerate(names):
        if word(name) in USER:
            return place
    if names and is_user_word(names[0]):
        return 0
    if len(names) > 2 and are_places(names[1:]):
        return 0 if place_of(names[0]) is None else -1
    return None


def find_columns(
    names: Sequence[Hashable], kind: str, slate: Hashable | None = None
) -> dict[str, int]:
    """The columns of a long table of a kind, by what they are.

    Comparisons have "better" and "worse", or "one", "other" and the "winner" of them; "user" and
    "count" if there are such. Impressions have a "slate" if there is one, or if it is named;
    without a column of users, a session is a user, or any other slate.

    >>> find_columns(["movieId", "rating", "userId"], "clicks")
    {'user': 2, 'item': 0}
    >>> find_columns(["bottom_item", "top_item", "n"], "pairs")
    {'better': 1, 'worse': 0, 'count': 2}
    >>> find_columns(["session", "item", "label", "user"], "impressions")
    {'user': 3, 'item': 1, 'clicked': 2, 'slate': 0}
    """
    words = [word(name) for name in names]
    if kind == "pairs":
        return _columns_of_pairs(names, words)
    if kind != "impressions":
        columns = {"user": _only(names, words, "user"), "item": _only(names, words, "item")}
        if kind == "long-rankings":
            known = (WORDS["rank"], POSITION, ORDER)
            columns["rank"] = _only(
                names, words, "rank", next((k for k in known if k & set(words)), ORDER)
            )
        return columns
    if slate is not None and slate not in names:
        raise ValueError(f"slate must be a column, got {slate!r}; the columns are {names[:8]}")
    slates = SLATE if slate is None else (word(slate),)
    shown = [words.index(name) for name in slates if name in words]
    others = ["" if name in slates else name for name in words]
    is_named = bool(set(others) & USER) or not shown
    columns = {"user": _only(names, others, "user") if is_named else shown.pop()}
    columns["item"] = _only(names, words, "item")
    clicked = _first(words, CLICKED)
    columns["clicked"] = clicked if clicked >= 0 else _only(names, words, "clicked")
    return columns | ({"slate": shown[0]} if shown else {})


def _only(
    names: Sequence[Hashable], words: Sequence[str], what: str, known: Set[str] | None = None
) -> int:
    """The one column that is known by its word; one that is named `what` comes first."""
    known = WORDS[what] if known is None else known
    columns = [column for column, name in enumerate(words) if name in known]
    columns = [column for column in columns if words[column] == what] or columns
    if len(columns) != 1:
        problem = "no column" if not columns else f"{len(columns)} columns"
        sides = ", or two 'item_a' and 'item_b' beside a 'winner'" if what == "better" else ""
        raise ValueError(f"{problem} for {what!r}: name one of {_shown(names, 8)} {what!r}{sides}")
    return columns[0]


def _first(words: Sequence[str], known: Sequence[str]) -> int:
    """The column of the first of some words, -1 if none is there."""
    return next((words.index(name) for name in known if name in words), -1)


def _shown(names: Sequence[Hashable], most: int = 5) -> str:
    return ", ".join(str(name) for name in names[:most])


def _columns_of_pairs(names: Sequence[Hashable], words: list[str]) -> dict[str, int]:
    if not set(words) & WORDS["worse"] and (sides := find_sides(words)):
        one, other = _the_items(names, sides)
        columns = {"one": one, "other": other, "winner": _only(names, words, "winner")}
    else:
        columns = {what: _only(names, words, what) for what in ("better", "worse")}
    for what in ("user", "count"):
        if set(words) & WORDS[what]:
            columns[what] = _only(names, words, what)
    if "winner" not in columns or "user" not in columns:
        return columns
    # With users each has a ranking of their own, which is another model: only "user" is clear.
    name = names[columns["user"]]
    if word(name) not in ("user", "users", "userid"):
        votes = ", ".join(str(names[columns[what]]) for what in ("one", "other", "winner"))
        raise ValueError(
            f"beside the votes ({votes}) there is a column {str(name)!r}. If each {name} has a "
            "ranking of their own, name that column 'user', or read the file with "
            f"columns={{'user': {name!r}}} (--columns user={name}); if each row is one vote, "
            "drop the column, or use .as_votes() on the result in Python"
        )
    return columns


def find_sides(words: list[str]) -> list[tuple[int, int]]:
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
    named = []
    for one, other in sides:
        left, _ = side_words(names[one], names[other])
        if word(names[one]).removesuffix(left) in SIDED:
            named.append((one, other))
    pairs = sides if len(sides) == 1 else named
    if len(pairs) != 1:
        raise ValueError(
            f"{len(sides)} pairs of columns may be compared: name two of {_shown(names, 8)} "
            "'item_a' and 'item_b'"
        )
    return pairs[0]


def side_words(one: Hashable, other: Hashable) -> tuple[str, str]:
    """How the names of two sides differ.

    >>> side_words("model_a", "model_b"), side_words("left", "right")
    (('a', 'b'), ('left', 'right'))
    """
    for left, right in SIDES:
        if word(one).endswith(left) and word(other).endswith(right):
            return left, right
    return word(one), word(other)


def time_column(names: Sequence[Hashable]) -> int:
    """The column of times, -1 for none.

    >>> time_column(["user", "item", "InvoiceDate"]), time_column(["user", "item", "watch time"])
    (2, -1)
    """
    return _first([word(name) for name in names], TIMES)


def rating_column(names: Sequence[Hashable]) -> int:
    """The column of ratings."""
    places = [place for place, name in enumerate(names) if word(name) in RATING]
    places += [place for place in other_columns(names) if parts(names[place]) & RATING]
    if not places:
        raise ValueError(
            f"min_rating needs a column of ratings, and there are {_shown(names, 8)}: name it by "
            "columns={'rating': ...}"
        )
    return places[0]


def other_columns(names: Sequence[Hashable], but: Set[str] = frozenset()) -> list[int]:
    """The columns that may hold a judgement by their names, as times and prices do not, and those
    with one of some words in their names.

    >>> other_columns(["user", "item", "click_time", "unitPrice", "x"])
    [4]
    """
    columns = []
    for place, name in enumerate(names):
        if word(name) not in NAMES:
            words = parts(name)
            if words & but or not (words & NEUTRAL or word(name) in NEUTRAL):
                columns.append(place)
    return columns


# Places


def place_of(name: Hashable) -> int | None:
    """The place that a name stands for, None for a name of something else.

    >>> [place_of(name) for name in ("rank10", "3rd", "Second choice", "tea")]
    [10, 3, 2, None]
    """
    match = PLACE.fullmatch(str(name).strip())
    if match is None:
        return None
    return int(match["number"]) if match["number"] else ORDINALS.index(match["word"].lower()) + 1


def are_places(names: Sequence[Hashable]) -> bool:
    """Whether every name stands for a place, and there is one."""
    return bool(names) and all(place_of(name) is not None for name in names)


def order_of_places(names: Sequence[Hashable]) -> list[int]:
    """The columns, the one of the first place first.

    Bare numbers may count from 0, as the columns of a data frame do.

    >>> order_of_places(["3rd", "1st", "2nd"])
    [1, 2, 0]
    """
    places = [place_of(name) or 0 for name in names]
    order = sorted(range(len(names)), key=places.__getitem__)
    first = 0 if all(str(name).strip().isdecimal() for name in names) and 0 in places else 1
    for wanted, column in enumerate(order, first):
        if places[column] == wanted:
            continue
        if places[column] == 0:
            raise ValueError(f"column {str(names[column])!r}: places start at 1")
        if places[column] < wanted:
            raise ValueError(f"two columns are for place {places[column]}: keep one of them")
        raise ValueError(
            f"no column is for place {wanted}, but {str(names[column])!r} comes after it: give "
            f"each place from 1 to {places[order[-1]]} a column"
        )
    return order


# What the caller gives

ROLES = {"user": "user", "item": "item", "time": "timestamp", "rating": "rating"}


@dataclass(frozen=True)
class Layout:
    """What the caller gives to read a table by.

    `columns` are the names of the columns of users, items, times and ratings, by what they are, or
    their places, from 0; or a list of the names of all columns, for a table without a header.
    """

    columns: Mapping[str, Hashable] | Sequence[Hashable] | None = None
    sep: str | None = None
    header: bool | None = None
    min_rating: float | None = None
    min_clicks: int | None = None

    def checked(self) -> "Layout":
        """The same, or what is wrong with it."""
        given = self.columns
        if isinstance(given, str) or not (
            given is None or isinstance(given, Mapping | list | tuple)
        ):
            raise TypeError(
                f"columns must be a dict like {{'user': 'name of its column'}}, got {given!r}"
            )
        strange = (
            [what for what in given if what not in ROLES] if isinstance(given, Mapping) else []
        )
        if strange:
            raise ValueError(f"columns must be of {', '.join(ROLES)}, got {strange[0]!r}")
        if self.sep is not None and (not isinstance(self.sep, str) or not self.sep):
            raise ValueError(f"sep must be the text between two cells, got {self.sep!r}")
        if self.min_rating is not None:
            check_number(self.min_rating, "min_rating", least=-math.inf)
        if self.min_clicks is not None:
            check_count(self.min_clicks, "min_clicks")
        return self

    def names(self, names: Sequence[Hashable]) -> list[Hashable]:
        """The names of the columns, those that the caller has named by what they are.

        >>> Layout({"user": "kunde", "time": 2}).names(["kunde", "item", "wann", "user"])
        ['user', 'item', 'timestamp', 'user (another)']
        """
        if not isinstance(self.columns, Mapping):
            return list(names)
        places = {what: self._place(names, what) for what in self.columns}
        if len(set(places.values())) < len(places):
            raise ValueError(f"columns names one column twice: {dict(self.columns)}")
        new = list(names)
        for role in places:
            for place, name in enumerate(new):
                if word(name) == ROLES[role]:
                    new[place] = f"{name} (another)"
        for role, place in places.items():
            new[place] = ROLES[role]
        return new

    def _place(self, names: Sequence[Hashable], what: str) -> int:
        assert isinstance(self.columns, Mapping)
        wanted = self.columns[what]
        texts = [str(name).strip() for name in names]
        if wanted in names:
            return list(names).index(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        if str(wanted) in texts:
            return texts.index(str(wanted))
        raise ValueError(
            f"columns: there is no column {wanted!r} for the {what} among {_shown(texts, 8)}"
        )

    def call(self) -> dict[str, Any]:
        """What is not the default, for the call that reads the table again."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in given.items() if value is not None}


USUAL = Layout()
