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
NAMED = re.compile(r"ALTERNATIVE NAME [0-9]{1,18}")  # a key of the header


def read_preflib(source: Source, text: str) -> Rankings:
    """Rankings of a PrefLib file; the items that a line does not have come after those it has.

    Items in braces share their ranks. So do the items of a category; categories are taken as they
    stand, the best first.
    """
    header, lines = _split(source, text)
    labels = {int(key[17:]): name for key, name in header.items() if NAMED.fullmatch(key)}
    if not labels:
        raise source.error(
            None, "there are no lines '# ALTERNATIVE NAME 1: ...': is this a PrefLib file of today?"
        )
    names = Counter(labels.values())  # those that appear twice, or are empty, get their number
    for number, name in labels.items():
        if names[name] > 1 or not name:
            labels[number] = f"{name} ({number})" if name else str(number)
    categories = None
    if source.ending == CATEGORIES:
        categories = [name for key, name in header.items() if key.startswith("CATEGORY NAME ")]
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
    numbers = {"ALTERNATIVES": len(labels)}
    numbers |= {} if categories is None else {"CATEGORIES": len(categories)}
    numbers |= dict.fromkeys(("UNIQUE ORDERS", "UNIQUE PREFERENCES"), len(counts))
    numbers["VOTERS"] = sum(counts)
    for what, number in numbers.items():  # is it a file that was cut?
        wanted = header.get(f"NUMBER {what}", "")
        if re.fullmatch(r"[0-9]{1,18}", wanted) and int(wanted) != number:
            cut = ": the file seems to be cut" if int(wanted) > number else ""
            raise source.error(
                None, f"{wanted} {what.lower()} are announced, but there are {number}{cut}"
            )
    return Preferences.from_orderings(orders, weights=counts, items=list(labels.values()))


def _split(source: Source, text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """The header, by its keys in capitals, and the lines after it, with their numbers."""
    header: dict[str, str] = {}
    lines = []
    for number, raw in enumerate(io.StringIO(text, newline=None), 1):  # no list of lines
        line = raw.strip()
        if line.startswith("#"):
            key, _, value = line[1:].partition(":")
            key = " ".join(key.upper().split())
            if key in header and NAMED.fullmatch(key):
                raise source.error(number, f"item {key[17:]} is named twice")
            header[key] = value.strip()
        elif line:
            lines.append((number, line))
    return header, lines
