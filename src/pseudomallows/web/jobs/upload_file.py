"""The file of an upload: read it, check its size, store its clicks part by part."""

import time
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...files.read import read_as
from ...preferences import Clicks, ColumnWarning, DroppedRowsWarning, IgnoredColumnWarning
from ..errors import ServiceError
from ..stores.store import Pair, Store
from ..types import check_name

PART = 5_000  # clicks of one commit: so short that posted clicks get in between
MAX_PAUSE = 0.1  # seconds after a part; as long as the part took, but a slow disk is not waited for
BLOCK = 1 << 20  # bytes read at a time to count lines
TOLD = (ColumnWarning, DroppedRowsWarning, EncodingWarning)  # warnings of which the client hears
MAX_TOLD, MAX_WORDS = 10, 500  # warnings, and letters of each: an answer stays short


class UploadLimits(NamedTuple):
    """How much an upload may hold."""

    rows: int = 10_000_000
    users: int = 1_000_000
    items: int = 10_000  # that the model does not know: a refit grows with their square


DEFAULT_LIMITS = UploadLimits()


class UploadClicks(NamedTuple):
    """The clicks of a file, and their names as text."""

    clicks: Clicks
    users: list[str]
    items: list[str]
    warnings: list[str]

    def counts(self) -> tuple[int, int, int]:
        """Users, items and clicks."""
        return len(self.users), len(self.items), len(self.clicks.codes)


def read_upload(path: Path, limits: UploadLimits, known: Collection[str]) -> UploadClicks:
    """The clicks of a file, or an error that says what is wrong; `known` are items of the model."""
    _check_size(limits.rows, _count_rows(path), "rows", "rows")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("error", IgnoredColumnWarning)
            clicks = read_as(path, may_be_one_item=True)[0]
    except (ValueError, TypeError, OSError) as error:
        raise ServiceError(422, str(error).replace(str(path), "the file")) from None
    except IgnoredColumnWarning as warning:
        column = str(warning).partition(" is ignored")[0].replace(str(path), "the file")
        problem = f"{column} says that some rows are no clicks: leave these rows out"
        raise ServiceError(422, problem) from None
    if not isinstance(clicks, Clicks):
        found = "rankings" if clicks.kind == "rankings" else clicks.shape_words
        raise ServiceError(422, f"the file must hold clicks (columns user, item), not {found}")
    users, items = [str(name) for name in clicks.users], [str(name) for name in clicks.items]
    _check_size(limits.rows, len(clicks.codes), "rows", "clicks")
    _check_size(limits.users, len(users), "users", "users")
    new = len(set(items).difference(known))
    _check_size(limits.items, new, "items", "items that the model does not know")
    for name in users:
        check_name(name, "a user")
    for name in items:
        check_name(name, "an item")
    told = [str(one.message) for one in caught if issubclass(one.category, TOLD)]
    words = [text.replace(str(path), "the file")[:MAX_WORDS] for text in told[:MAX_TOLD]]
    return UploadClicks(clicks, users, items, words)


def _count_rows(path: Path) -> int:
    """Lines after the first."""
    n_lines, last = 0, b"\n"
    with path.open("rb") as stream:
        if stream.read(2) == b"\x1f\x8b":  # unpacked, it might be of any size
            raise ServiceError(422, "the file must be text, and this is packed (gzip): unpack it")
        stream.seek(0)
        while block := stream.read(BLOCK):
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
    return max(0, n_lines + (last != b"\n") - 1)


def _check_size(most: int, size: int, option: str, what: str) -> None:
    """Refuse what is larger than the option of the service allows."""
    if size > most:
        raise ServiceError(
            413,
            f"an upload may have at most {most:,} {what}, and this has {size:,}: send it in "
            f"parts, or start the service with --upload-{option} {size}",
        )


def store_parts(store: Store, upload: int, clicks: UploadClicks) -> None:
    """Store the clicks of an upload, and leave room between the parts for clicks of others."""
    for part, times in _parts(clicks):
        started = time.monotonic()
        store.add_part(upload, part, times)
        time.sleep(min(time.monotonic() - started, MAX_PAUSE))


def _parts(clicks: UploadClicks) -> Iterator[tuple[list[Pair], list[float] | None]]:
    """User and item of each click, some at a time, and their times, if the file has them."""
    codes, starts, when = clicks.clicks.codes, clicks.clicks.starts, clicks.clicks.times
    for first in range(0, len(codes), PART):
        part = codes[first : first + PART]
        rows = np.searchsorted(starts, np.arange(first, first + len(part)), side="right") - 1
        pairs = zip(rows.tolist(), part.tolist(), strict=True)
        times = None if when is None else when[first : first + PART].tolist()
        yield [(clicks.users[row], clicks.items[code]) for row, code in pairs], times
