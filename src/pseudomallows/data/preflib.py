"""PrefLib files: counts of orders, with ties in braces."""

import io
import re
from collections import Counter

from .blocks import Rankings
from .preferences import Preferences
from .source import Source

COMPLETE = (".soc", ".toc")
CATEGORIES = ".cat"
ENDINGS = (*COMPLETE, ".soi", ".toi", CATEGORIES)


def read_preflib(source: Source, text: str) -> Rankings:
    """Rankings of a PrefLib file; the items that a line does not have come after those it has.

    Items in braces share their ranks. So do the items of a category; categories are taken as they
    stand, the best first.
    """
    labels, lines = _split(source, text)
    categories = None
    if source.ending == CATEGORIES:
        categories = re.findall(r"^#\s*CATEGORY NAME \d+\s*:\s*(.*?)\s*$", text, re.I | re.M)
        _check_number(source, text, "CATEGORIES", len(categories))
        source.notes.append(f"categories, best first: {', '.join(categories)}")
    counts: list[int] = []
    orders: list[list[list[str]]] = []  # groups of equal items
    for number, line in lines:
        count, colon, order = line.partition(":")
        if not colon or not count.strip().isdecimal():
            raise source.error(number, f"wanted 'count: item,item,...', got {line[:60]!r}")
        if not re.fullmatch(r"[\d\s,]*(\{[\d\s,]*\}[\d\s,]*)*", order):
            raise source.error(number, f"wanted numbers, commas and braces, got {order[:60]!r}")
        groups = [
            [int(item) for item in re.findall(r"\d+", part)]
            for part in re.findall(r"\{[^}]*\}|\d+", order)
        ]
        if categories is not None and len(groups) > len(categories):
            problem = f"there are {len(groups)} categories, and {len(categories)} are announced"
            raise source.error(number, problem)
        listed = [item for group in groups for item in group]
        strange = [item for item in listed if item not in labels]
        if strange:
            raise source.error(number, f"item {strange[0]} has no name in the header")
        if len(set(listed)) < len(listed):
            twice = next(item for item in listed if listed.count(item) > 1)
            raise source.error(number, f"item {twice} is there twice")
        if len(listed) < len(labels) and source.ending in COMPLETE:
            raise source.error(
                number,
                f"{len(listed)} of the {len(labels)} items are there, but a {source.ending} file "
                "must have all: is it truncated?",
            )
        counts.append(int(count))
        orders.append([[labels[item] for item in group] for group in groups if group])
    if not orders:
        raise source.error(None, "there are no orders after the header")
    for what in ("UNIQUE ORDERS", "UNIQUE PREFERENCES"):
        _check_number(source, text, what, len(counts))
    _check_number(source, text, "VOTERS", sum(counts))
    try:
        return Preferences.from_orderings(orders, weights=counts, items=list(labels.values()))
    except ValueError as error:
        raise source.error(None, str(error)) from None


def _split(source: Source, text: str) -> tuple[dict[int, str], list[tuple[int, str]]]:
    """The names of the items by their numbers, and the lines after the header, with theirs."""
    names: dict[int, str] = {}
    lines = []
    for number, raw in enumerate(io.StringIO(text, newline=None), 1):  # no list of lines
        line = raw.strip()
        if line.startswith("#"):
            match = re.fullmatch(r"#\s*ALTERNATIVE NAME (\d+)\s*:\s*(.*)", line, re.IGNORECASE)
            if match:
                if int(match[1]) in names:
                    raise source.error(number, f"item {match[1]} is named twice")
                names[int(match[1])] = match[2].strip() or match[1]
        elif line:
            lines.append((number, line))
    if not names:
        raise source.error(
            None, "there are no lines '# ALTERNATIVE NAME 1: ...': is this a PrefLib file of today?"
        )
    _check_number(source, text, "ALTERNATIVES", len(names))
    counts = Counter(names.values())  # names that appear twice get their number
    names = {n: f"{name} ({n})" if counts[name] > 1 else name for n, name in names.items()}
    return names, lines


def _check_number(source: Source, text: str, what: str, number: int) -> None:
    """Refuse a file that has not what its header announces, as one that was cut."""
    wanted = re.search(rf"^#\s*NUMBER {what}\s*:\s*(\d{{1,18}})\s*$", text, re.I | re.M | re.A)
    if wanted and int(wanted[1]) != number:
        cut = ": the file seems to be cut" if int(wanted[1]) > number else ""
        raise source.error(
            None, f"{wanted[1]} {what.lower()} are announced, but there are {number}{cut}"
        )
