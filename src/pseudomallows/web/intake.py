"""Take in the clicks of an upload: read the file, check its size, store it part by part.

A large file is read in a process of its own, so that it neither holds up the service nor takes its
memory: ``python -m pseudomallows.web.intake``. The order comes as one line of JSON on standard
input; the answer is what was found. Then a second line, the number of the upload, says to store it.
When standard input ends, the service has gone, and so does this.
"""

import json
import os
import resource
import sys
import threading
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..files.read import read_as
from ..preferences.preferences import Clicks, ColumnWarning, DroppedRowsWarning
from .errors import ServiceError, StoreError
from .stores.store import open_store
from .stores.tables import Pair, Store
from .types import MAX_NAME

PART = 5_000  # clicks of one commit
MOST_PAUSE = 0.1  # seconds
MEMORY = 2 * 10**9  # bytes that a process may take for a file
BLOCK = 1 << 20
TOLD = (ColumnWarning, DroppedRowsWarning)  # of which the client hears


class Most(NamedTuple):
    """How much an upload may hold."""

    rows: int = 10_000_000
    users: int = 1_000_000
    items: int = 10_000  # that the model does not know: a refit grows with their square


MOST = Most()


class Found(NamedTuple):
    """The clicks of a file, and their names as text."""

    clicks: Clicks
    users: list[str]
    items: list[str]
    warnings: list[str]

    def counts(self) -> tuple[int, int, int]:
        """Users, items and clicks."""
        return len(self.users), len(self.items), len(self.clicks.codes)


def read_upload(path: Path, most: Most, known: Collection[str]) -> Found:
    """The clicks of a file, or an error that says what is wrong; `known` are items of the model."""
    _check_size(most.rows, _count_rows(path), "rows", "rows")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clicks = read_as(path, may_be_one_item=True)[0]
    except (ValueError, TypeError, OSError) as error:
        raise ServiceError(422, str(error).replace(str(path), "the file")) from None
    if not isinstance(clicks, Clicks):
        raise ServiceError(422, "the file must hold clicks (columns user, item), not rankings")
    users, items = [str(name) for name in clicks.users], [str(name) for name in clicks.items]
    _check_size(most.rows, len(clicks.codes), "rows", "clicks")
    _check_size(most.users, len(users), "users", "users")
    new = len(set(items).difference(known))
    _check_size(most.items, new, "items", "items that the model does not know")
    for name in users:
        check_name(name, "a user")
    for name in items:
        check_name(name, "an item")
    told = [str(one.message) for one in caught if issubclass(one.category, TOLD)]
    words = [text.replace(str(path), "the file")[:500] for text in told[:10]]
    return Found(clicks, users, items, words)


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


def _check_size(most: int, found: int, option: str, what: str) -> None:
    if found > most:
        raise ServiceError(
            413,
            f"an upload may have at most {most:,} {what}, and this has {found:,}: send it in "
            f"parts, or start the service with --upload-{option} {found}",
        )


def check_name(name: str, what: str) -> None:
    """Refuse a name that cannot be stored."""
    if not 1 <= len(name) <= MAX_NAME or "\0" in name or not _is_text(name):
        raise ServiceError(
            422, f"the name of {what} must have 1 to {MAX_NAME} letters, got {name[:40]!r}"
        )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def store_parts(store: Store, upload: int, found: Found) -> None:
    """Store the clicks of an upload, and leave room between the parts for clicks of others."""
    for part in _parts(found):
        started = time.monotonic()
        store.add_part(upload, part)
        time.sleep(min(time.monotonic() - started, MOST_PAUSE))


def _parts(found: Found) -> Iterator[list[Pair]]:
    codes, starts = found.clicks.codes, found.clicks.starts
    for first in range(0, len(codes), PART):
        part = codes[first : first + PART]
        rows = np.searchsorted(starts, np.arange(first, first + len(part)), side="right") - 1
        pairs = zip(rows.tolist(), part.tolist(), strict=True)
        yield [(found.users[row], found.items[code]) for row, code in pairs]


# As a process


def main() -> int:
    """Read the order, then the file; store it once there is a number."""
    order = json.loads(sys.stdin.readline())
    _be_modest()
    try:
        found = read_upload(Path(order["path"]), Most(*order["most"]), set(order["known"]))
        _say({"found": found.counts(), "warnings": found.warnings})
        upload = int(sys.stdin.readline() or 0)
        if not upload:  # the service has gone
            return 3
        threading.Thread(target=_end_with_the_service, daemon=True).start()
        store = open_store(order["store"])
        store.be_lazy()
        store_parts(store, upload, found)
        store.close()
        _say({"stored": upload})
    except StoreError as error:
        _say({"status": error.status, "error": error.words, "reason": error.reason})
    except ServiceError as error:
        _say({"status": error.status, "error": error.words})
    except ValueError as error:  # the store cannot be opened
        _say({"status": 503, "error": "the store has a problem; see the log", "reason": str(error)})
    except MemoryError:
        words = f"the file takes more than {MEMORY / 1e9:g} GB of memory to read: send it in parts"
        _say({"status": 413, "error": words})
    return 0


def _be_modest() -> None:
    """Requests go first; and if memory is short, this process ends, not the service."""
    os.nice(5)
    with suppress(OSError, ValueError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_the_service() -> None:
    sys.stdin.read()
    os._exit(3)


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
