"""Headers: what the names of the columns of a table say, in a file as in a data frame."""

import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from typing import Any

USER = {"user", "users", "userid", "customer", "customerid", "visitor", "visitorid", "session"}
USER |= {"sessionid", "person", "personid", "assessor", "voter", "voterid", "respondent", "judge"}
USER |= {"respondentid", "participant", "participantid", "subject", "rater", "uid"}
USER |= {"indexlevel0"}  # of pandas, in Parquet
ITEM = {"item", "items", "itemid", "product", "productid", "stockcode", "article", "articleid"}
ITEM |= {"movie", "movieid", "track", "trackid", "page", "pageid", "asin", "alternative"}
NAMES = USER | ITEM
RANK = {"rank", "ranks", "ranking"}
POSITION = {"position", "positions", "place", "places", "pos"}
JUDGED = {"click", "clicked", "isclick", "clicks", "label", "liked", "purchased", "bought"}
RATING = {"rating", "ratings", "score", "scores", "star", "stars", "grade", "overall"}
COUNT = {"count", "counts", "quantity", "qty", "plays", "playcount", "nclicks", "frequency"}
TIME = ("timestamp", "datetime", "date", "time", "ts")  # beside others the first of these counts
OF_WHAT = ["invoice", "order", "purchase", "transaction", "event", "click", "visit", "view"]
OF_WHAT += ["session", "review", "rating", "play", "unix", "created"]  # whose date or time
NO_ITEM = {"age", "sex", "gender", "weight", "time", "timestamp", "date"} | COUNT
# beside clicks only: items may have these names
RATING |= {"vote", "votes"}
COUNT |= {"n", "num", "freq", "weight", "views", "visits", "listens", "hits", "purchases"}
QUIET = {"time", "timestamp", "date", "datetime", "hour", "hours", "day", "days", "week", "weekday"}
QUIET |= {"month", "year", "minute", "minutes", "seconds", "ms", "ts", "utc", "epoch", "timezone"}
QUIET |= {"price", "unitprice", "cost", "lat", "latitude", "lon", "lng", "longitude"}
QUIET |= {"age", "sex", "gender", "id", "name", "title", "url", "text", "type", "category", "code"}
QUIET |= {"index", "row", "line"}  # numbers that count from 0
EVENT = {"event", "action", "behavior", "behaviour", "interaction", "type"}  # quiet ones, too
ORDER = {
    "order"
}  # of a ranking, if it counts from 1 for several users; else the number of an order
NO_CLICK = {"view", "views", "viewed", "pv", "impression", "shown", "seen", "hover", "exposure"}
NO_CLICK |= {"remove", "removed", "delete", "deleted", "return", "returned", "refund", "refunded"}
NO_CLICK |= {"cancel", "cancelled", "canceled", "down", "downvote", "dislike", "disliked", "unlike"}
NO_CLICK |= {"skip", "skipped", "dismiss", "dismissed", "reject", "rejected", "ignored", "hide"}
NO_CLICK |= {"no", "negative", "bad", "hate"}
MOST_WORDS = 20  # in a column that says what was done (view, cart, purchase); names are more
TRUTH = {"true": 1, "false": 0}
YES, NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f")
MARKS, HUMP, NO_LETTERS = map(re.compile, (r"[\s_-]", r"(?<=[a-z\d])(?=[A-Z])", r"[\W_]+"))
TYPES = re.compile(r":(token|float)(_seq)?$")  # after the names of RecBole

ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
ORDINALS += ["ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth"]
ORDINALS += ["sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"]
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
    known = [*TIME, *(what + when for what in OF_WHAT for when in (*TIME, "at"))]
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
