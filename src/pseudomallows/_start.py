"""What comes before the rest is imported: Ctrl-C ends the command with a word and no traceback, and
kernels that were compiled from other sources are forgotten."""

import contextlib
import os
import signal
import sys
import zlib
from pathlib import Path, PurePath
from typing import Any


def stop(*_: Any) -> None:
    """End at once: nothing is open yet."""
    os.write(2, b"pseudomallows: interrupted\n")
    os._exit(130)


def is_command() -> bool:
    """Was Python started as `pseudomallows`, or as `python -m pseudomallows`?"""
    asked = sys.orig_argv[1:3]
    return asked == ["-m", "pseudomallows"] or PurePath(*asked[:1]).stem == "pseudomallows"


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, stop)


def forget_stale(folder: Path) -> None:
    """Delete compiled kernels if any source in the folder has changed since, as an upgrade does.

    Numba compares a kernel with its own file alone, not with those that it calls, and fails at a
    kept one that names a module which has gone.
    """
    check = 0
    for source in sorted(folder.rglob("*.py")):
        check = zlib.crc32(source.read_bytes(), zlib.crc32(source.name.encode(), check))
    mark = folder / "__pycache__" / "sources.crc"
    with contextlib.suppress(OSError):  # of a folder that is read only: kernels are kept elsewhere
        if mark.exists() and mark.read_text() == str(check):
            return
        for kept in folder.rglob("*.nb[ci]"):
            kept.unlink(missing_ok=True)
        mark.parent.mkdir(exist_ok=True)
        draft = mark.with_suffix(f".{os.getpid()}")
        draft.write_text(str(check))
        draft.replace(mark)


forget_stale(Path(__file__).parent / "kernels")
