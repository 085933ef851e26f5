"""Ctrl-C while the command imports the package: a word, no traceback. Imported before the rest."""

import os
import signal
import sys
from pathlib import PurePath
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
