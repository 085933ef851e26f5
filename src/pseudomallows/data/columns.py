"""Columns: what the names of the columns of a table say, in a file as in a data frame."""

import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rankings import check_count
from .checks import NO_NAME, text_of


def _words(text: str) -> set[str]:
    return set(text.split())


# The words for each column, as `word` gives them: in lower case, without spaces or underscores.
USER = _words(
    "user users userid customer customerid visitor visitorid session sessionid person personid "
    "assessor voter voterid respondent respondentid judge participant participantid subject rater "
    "uid indexlevel0"  # the last is of pandas, in Parquet
)
ITEM = _words(
    "item items itemid product productid stockcode article articleid movie movieid track trackid "
    "page pageid asin alternative"
)
NAMES = USER | ITEM
RANK = _words("rank ranks ranking")
POSITION = _words("position positions place places pos")
ORDER = {"order"}  # of a ranking, if it counts from 1 for several users; else the number of one
BETTER = _words(
    "better winner topitem preferred chosen betteritem winneritem preferreditem chosenitem"
)
WORSE = _words("worse loser bottomitem rejected other worseitem loseritem otheritem rejecteditem")
WINNER = BETTER | {"choice", "preference"}  # beside two sides
SIDES = (("a", "b"), ("1", "2"), ("left", "right"))
SIDED = {"", "model", "option", "candidate", "team", "player", "name"} | ITEM
PAIRS = ({"a", "b"}, {"1", "2"}, {"left", "right"}, {"first", "second"}, {"one", "two"})
TIMES = _words("count counts n freq frequency votes")  # how often something was said
CLICKED = ("clicked", "click", "isclicked", "isclick", "taken", "label")  # the first is meant
SHOWN = ("slate", "impression", "request", "list", "query", "visit", "session")
SLATE = tuple(name + end for name in SHOWN for end in ("", "id"))  # the finest first
TIME = ("timestamp", "datetime", "date", "time", "ts")  # beside others the first of these counts
OF_WHAT = "invoice order purchase transaction event click visit view session review rating play"
OF_WHAT += " unix created"  # whose date or time
JUDGED = _words("click clicked isclick clicks label liked purchased bought")
RATING = _words("rating ratings score scores star stars grade overall")
COUNT = _words("count counts quantity qty plays playcount nclicks frequency")
NO_ITEM = _words("age sex gender weight time timestamp date") | COUNT
# Beside clicks only, as items may have these names.
RATING |= {"vote", "votes"}
COUNT |= _words("n num freq weight views visits listens hits purchases")
QUIET = _words(
    "time timestamp date datetime hour hours day days week weekday month year minute minutes "
    "seconds ms ts utc epoch timezone price unitprice cost lat latitude lon lng longitude age sex "
    "gender id name title url text type category code index row line"
)
EVENT = _words("event action behavior behaviour interaction type")  # quiet ones, too
NO_CLICK = _words(
    "view views viewed pv impression shown seen hover exposure remove removed delete deleted "
    "return returned refund refunded cancel cancelled canceled down downvote dislike disliked "
    "unlike skip skipped dismiss dismissed reject rejected ignored hide no negative bad hate"
)
MOST_WORDS = 20  # in a column that says what was done (view, cart, purchase); names are more
TRUTH = {"true": 1, "false": 0}
YES, NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f")
MARKS, HUMP, NO_LETTERS = map(re.compile, (r"[\s_-]", r"(?<=[a-z\d])(?=[A-Z])", r"[\W_]+"))
TYPES = re.compile(r":(token|float)(_seq)?$")  # after the names of RecBole

ORDINALS = str.split(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
NO_PLACE = re.compile(  # what looks like a place, and has no number
    rf"(?:last|final|best|worst|bottom|(?:twent|thirt|fort|fift)(?:y\W?({'|'.join(ORDINALS[:9])})|ieth))"
    r"(?:[ _-]?(?:place|choice|rank|pick|position))?",
    re.I,
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


def is_long(names: Sequence[Hashable]) -> bool:
    """Whether there are columns for user and item."""
    words = set(map(word, names))
    return bool(words & USER) and bool(words & ITEM)


def is_long_clicks(names: Sequence[Hashable]) -> bool:
    """The same, without one for ranks."""
    return is_long(names) and not set(map(word, names)) & RANK


def find_column(names: Sequence[Hashable], what: str) -> int:
    """The column of "user", "item" or "rank"; a column of that very name comes first.

    >>> find_column(["movieId", "rating", "userId"], "user")
    2
    """
    known = {"user": USER, "item": ITEM, "rank": RANK}[what]
    words = [word(name) for name in names]
    if what == "rank" and not set(words) & RANK:
        known = POSITION if set(words) & POSITION else ORDER
    return only_column(names, known, what)


def only_column(names: Sequence[Hashable], known: Collection[str], what: str) -> int:
    """The one column with a name in `known`; one that is named `what` comes first."""
    words = [word(name) for name in names]
    columns = [column for column, name in enumerate(words) if name in known]
    columns = [column for column in columns if words[column] == what] or columns
    if len(columns) != 1:
        problem = "no column" if not columns else f"{len(columns)} columns"
        shown = ", ".join(str(name) for name in names[:8])
        raise ValueError(f"{problem} for {what!r}: name one of {shown} {what!r}")
    return columns[0]


def time_column(names: Sequence[Hashable]) -> int:
    """The column of times, -1 for none.

    >>> time_column(["user", "item", "InvoiceDate"]), time_column(["user", "item", "watch time"])
    (2, -1)
    """
    words = [word(name) for name in names]
    known = [*TIME, *(what + when for what in OF_WHAT.split() for when in (*TIME, "at"))]
    return next((words.index(name) for name in known if name in words), -1)


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


def odd_place(names: Sequence[Hashable]) -> Hashable | None:
    """A name beside those of places that looks like one, and is none; None if there is none.

    >>> odd_place(["first", "last"]), odd_place(["user", "first"]), odd_place(["best", "worst"])
    ('last', None, None)
    """
    if all(place_of(name) is None for name in names):
        return None
    return next((name for name in names if is_no_place(name)), None)


def is_no_place(name: Hashable) -> bool:
    """Whether a name looks like that of a place, and is none, such as last."""
    return place_of(name) is None and NO_PLACE.fullmatch(str(name).strip()) is not None


# Columns that clicks do not heed


def judging_column(names: Sequence[Hashable]) -> tuple[int, str]:
    """The first column that may tell which rows are no clicks, and its kind; -1 if there is none.

    >>> judging_column(["user", "item", "time", "stars"])
    (3, 'rating')
    """
    kinds = {"clicked": JUDGED, "rating": RATING, "count": COUNT, "position": POSITION}
    words = [word(name) for name in names]
    for kind, known in kinds.items():
        for place, name in enumerate(words):
            if name in known:
                return place, kind
    others = [(place, parts(names[place])) for place in other_columns(names)]
    for kind in ("count", "rating", "position", "clicked"):  # a click count is a count
        for place, words_of_name in others:
            if words_of_name & kinds[kind]:
                return place, kind
    return -1, ""


def other_columns(names: Sequence[Hashable], but: Set[str] = frozenset()) -> list[int]:
    """The columns whose names do not say that they are no judgement, as times and prices are not;
    those with one of some words in their names are taken all the same.

    >>> other_columns(["user", "item", "click_time", "unitPrice", "x"])
    [4]
    """
    columns = []
    for place, name in enumerate(names):
        if word(name) not in NAMES:
            words = parts(name)
            if words & but or not (words & QUIET or word(name) in QUIET):
                columns.append(place)
    return columns


def doubt_about(name: Hashable, kind: str, counts: Mapping[Any, int]) -> str:
    """What is doubtful about a column of a kind, as a kind for `advice_on`, "" if nothing is;
    ``counts[value]`` is how many rows have a value.

    >>> doubt_about("rating", "rating", {1: 2, 5: 3}), doubt_about("rating", "rating", {4: 2, 5: 3})
    ('rating', '')
    >>> doubt_about("event", "number", {"view": 9, "buy": 1})
    'word'
    """
    numbers = _numbers(counts)
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    if kind == "rating":  # those that are left of 1 to 5, or 1 to 10, if low ones were dropped
        return "" if (3 <= low <= high <= 5) or (5 <= low <= high <= 10) else kind
    if kind == "clicked":
        return "" if counts and not _n_without(counts) else kind
    if kind != "number":
        return kind
    if any(as_number(value) is None for value in counts):
        is_word = len(counts) > 1 and any(is_no_click(value) for value in counts)
        return "word" if is_word else ""
    if parts(name) & QUIET:
        return ""
    return (
        "number" if low <= 0 else "position" if word(name) in ORDER and _are_ranks(numbers) else ""
    )


def is_no_click(value: Any) -> bool:
    """Whether a value says that something was not clicked, or taken back.

    >>> [is_no_click(value) for value in ("remove_from_cart", "buy", "Thumbs down")]
    [True, False, True]
    """
    return bool(parts(value) & NO_CLICK)


def _are_ranks(numbers: Mapping[float, int]) -> bool:
    """Whether these are ranks of several users: 1, 2, ..., none more often than the one before."""
    times = [numbers.get(rank, 0) for rank in range(1, len(numbers) + 1)]
    return len(times) > 1 and times[0] > 1 and 0 not in times and times == sorted(times)[::-1]


def _n_without(counts: Mapping[Any, int]) -> int:
    """How many rows do not have a yes, or a number above 0."""
    is_yes = {value: str(value).lower() in YES or (as_number(value) or 0) > 0 for value in counts}
    return sum(n for value, n in counts.items() if not is_yes[value])


def advice_on(name: Hashable, kind: str, counts: Mapping[Any, int]) -> str:
    """What to say of such a column; ``counts[value]`` is how many rows have a value.

    >>> advice_on("stars", "rating", {1: 2, 5: 3})[-70:]
    'is below 3, the middle of 1 to 5: give min_rating=3 to leave these out'
    """
    said = f"column {str(name)!r} is ignored, every row counts as a click"
    if kind == "clicked":
        n_low = _n_without(counts)
        said += f", also the {n_low} of {sum(counts.values())} without a yes or 1" if n_low else ""
        return (
            f"{said}: drop the rows that are not clicks, or learn from what was passed over, "
            "too, with kind='impressions' or from_impressions"
        )
    if kind == "position":
        return f"{said}: if it holds ranks, give kind='long-rankings'; if not, kind='clicks'"
    if kind == "word":
        no_clicks = [value for value in counts if is_no_click(value)]
        n_low = sum(counts[value] for value in no_clicks)
        shown = ", ".join(repr(str(value)[:40]) for value in no_clicks[:5])
        return (
            f"{said}, also the {n_low} of {sum(counts.values())} with {shown}: keep the rows that "
            "are clicks, and drop the others first"
        )
    numbers = _numbers(counts)
    kind = "value" if kind == "number" else kind
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    middle = max((low + high) / 2, 0.0) if kind == "rating" else 0.0
    n_low = sum(n for value, n in numbers.items() if value <= 0 or value < middle)
    which = f"below {middle:g}, the middle of {low:g} to {high:g}" if middle else "0 or less"
    if n_low:
        said += f", also the {n_low} of {sum(numbers.values())} whose {kind} is {which}"
        if middle:
            return f"{said}: give min_rating={middle:g} to leave these out"
        if kind == "count":
            by = {"rating": str(name)}
            return f"{said}: give columns={by} and min_rating=1 to leave these out"
    return f"{said}: drop the rows that are not clicks first"


def as_number(value: Any) -> float | None:
    """The number in a cell, with a decimal comma too; 1 for true, 0 for false; None if it is none.

    >>> [as_number(value) for value in ("3.5", "3,5", "true", "tea")]
    [3.5, 3.5, 1.0, None]
    """
    try:
        return float(TRUTH.get(str(value).lower(), str(value).replace(",", ".")))
    except ValueError:
        return None


def _numbers(counts: Mapping[Any, int]) -> dict[float, int]:
    """Counts by number; values that are no numbers are left out."""
    by_number: dict[float, int] = {}
    for value, n in counts.items():
        number = as_number(value)
        if number is not None and math.isfinite(number):
            by_number[number] = by_number.get(number, 0) + n
    return by_number


# Comparisons


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


# What the caller says

ROLES = {"user": "user", "item": "item", "time": "timestamp", "rating": "rating"}
UNNAMED = ("user", "item", "rating", "timestamp")  # the columns of a table without a header


@dataclass(frozen=True)
class Layout:
    """What the caller says of a table.

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
        if self.min_rating is not None and not _is_finite(self.min_rating):
            raise ValueError(f"min_rating must be a number, got {self.min_rating!r}")
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
        shown = ", ".join(texts[:8])
        raise ValueError(f"columns: there is no column {wanted!r} for the {what} among {shown}")

    def rating_column(self, names: Sequence[Hashable]) -> int:
        """The column of ratings that `min_rating` is about; -1 if nothing is asked of them."""
        if self.min_rating is None:
            return -1
        for place, name in enumerate(names):
            if word(name) in RATING:
                return place
        for place in other_columns(names):
            if parts(names[place]) & RATING:
                return place
        shown = ", ".join(str(name) for name in names[:8])
        raise ValueError(
            f"min_rating needs a column of ratings, and there are {shown}: name it by "
            "columns={'rating': ...}"
        )

    def is_high(self, ratings: Sequence[Any]) -> NDArray[np.bool_]:
        """Which ratings count as clicks; an empty one does not. A ValueError holds the first that
        is no number."""
        assert self.min_rating is not None
        return np.array([_rating(rating) for rating in ratings]) >= self.min_rating

    def call(self) -> dict[str, Any]:
        """What is not the default, for the call that reads the table again."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in given.items() if value is not None}


USUAL = Layout()


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(is_number and math.isfinite(value))


def _rating(value: Any) -> float:
    text = text_of(value)
    if text in NO_NAME:
        return math.nan
    try:
        return float(TRUTH.get(text.lower(), text))
    except ValueError:
        raise ValueError(f"wanted a rating, a number, got {text[:40]!r}") from None


def unnamed_columns(n_columns: int, third: str) -> list[Hashable]:
    """Names for the columns of a table without a header: user, item, rating, timestamp; of three,
    the last is a time if it looks like one.

    >>> unnamed_columns(3, "881250949"), unnamed_columns(3, "4.5")
    (['user', 'item', 'timestamp'], ['user', 'item', 'rating'])
    """
    names: list[Hashable] = list(UNNAMED)
    if n_columns == 3:
        names = ["user", "item", "timestamp" if is_like_time(third) else "rating"]
    return names[:n_columns] + [f"column {place}" for place in range(4, n_columns)]


def is_like_time(text: str) -> bool:
    """Whether a cell looks like the seconds or milliseconds since 1970, or like a date.

    >>> [is_like_time(text) for text in ("881250949", "2024-05-31", "4", "1193")]
    [True, True, False, False]
    """
    from .times import form_of

    form = form_of(text)
    return form in ("date", "slashed") or (form == "number" and 1e8 <= float(text) < 1e14)
