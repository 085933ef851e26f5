"""PrefLib files: counts of orders, with ties in braces."""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..preferences.preferences import Preferences, Rankings
from .source import Source

COMPLETE = (".soc", ".toc")
ENDINGS = (*COMPLETE, ".soi", ".toi")
Groups = list[list[int]]


def read_preflib(source: Source, text: str, ties: str, rng: np.random.Generator) -> Rankings:
    """Rankings of a PrefLib file; the items that a line does not have come after those it has.

    One group of equal items in a line, or of items that it does not have, is kept as not known;
    with more than one, which :class:`Rankings` cannot hold, `ties` says what to do.
    """
    names: dict[int, str] = {}
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            found = re.fullmatch(r"#\s*ALTERNATIVE NAME (\d+)\s*:\s*(.*)", line, re.IGNORECASE)
            if found:
                if int(found[1]) in names:
                    raise source.error(number, f"item {found[1]} is named twice")
                names[int(found[1])] = found[2].strip() or found[1]
        elif line:
            lines.append((number, line))
    if not names:
        raise source.error(
            None, "there are no lines '# ALTERNATIVE NAME 1: ...': is this a PrefLib file of today?"
        )
    _check_number(source, text, "ALTERNATIVES", len(names))
    codes = {number: code for code, number in enumerate(names)}
    parsed = list(_parse(source, lines, codes))
    if not parsed:
        raise source.error(None, "there are no orders after the header")
    _check_number(source, text, "UNIQUE ORDERS", len(parsed))
    _check_number(source, text, "VOTERS", sum(count for _, count, _ in parsed))
    rankings = np.zeros((len(parsed), len(codes)), dtype=np.int32)
    for row, (number, _, groups) in enumerate(parsed):
        _fill_ranks(source, number, groups, ties, rng, rankings[row])
    labels = _different(list(names.values()), list(names))
    try:
        return Preferences.from_rankings(
            rankings, weights=[count for _, count, _ in parsed], items=labels
        )
    except ValueError as error:
        raise source.error(None, str(error)) from None


def _check_number(source: Source, text: str, what: str, found: int) -> None:
    """Refuse a file that has not what its header announces, as one that was cut."""
    wanted = re.search(rf"^#\s*NUMBER {what}\s*:\s*(\d{{1,18}})\s*$", text, re.I | re.M | re.A)
    if wanted and int(wanted[1]) != found:
        cut = ": the file seems to be cut" if int(wanted[1]) > found else ""
        raise source.error(
            None, f"{wanted[1]} {what.lower()} are announced, but there are {found}{cut}"
        )


def _parse(
    source: Source, lines: list[tuple[int, str]], codes: dict[int, int]
) -> Iterator[tuple[int, int, Groups]]:
    """Line number, count and groups of equal items of each line."""
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
        listed = [item for group in groups for item in group]
        strange = [item for item in listed if item not in codes]
        if strange:
            raise source.error(number, f"item {strange[0]} has no name in the header")
        if len(set(listed)) < len(listed):
            twice = next(item for item in listed if listed.count(item) > 1)
            raise source.error(number, f"item {twice} is there twice")
        if len(listed) < len(codes) and source.ending in COMPLETE:
            raise source.error(
                number,
                f"{len(listed)} of the {len(codes)} items are there, and a {source.ending} file "
                "has all: is it cut?",
            )
        yield number, int(count), [[codes[item] for item in group] for group in groups if group]


def _fill_ranks(
    source: Source,
    number: int,
    groups: Groups,
    ties: str,
    rng: np.random.Generator,
    ranking: NDArray[np.int32],
) -> None:
    listed = {item for group in groups for item in group}
    rest = [item for item in range(len(ranking)) if item not in listed]
    tied = [group for group in [*groups, rest] if len(group) > 1]
    if len(tied) > 1 and ties == "error":
        raise source.error(
            number,
            f"{len(tied)} groups of items are equal (those not listed are one): only one can be "
            'kept as not known; give ties="random" to break the others at random',
        )
    kept = tied[-1] if tied else None
    rank = 1
    for group in [*groups, rest]:
        order = group if len(group) == 1 else rng.permutation(group).tolist()
        for item in order:
            if group is not kept:
                ranking[item] = rank
            rank += 1


def _different(names: list[str], numbers: list[int]) -> list[str]:
    """Names, those that appear twice with their number."""
    counts = Counter(names)
    return [
        f"{name} ({number})" if counts[name] > 1 else name
        for name, number in zip(names, numbers, strict=True)
    ]
