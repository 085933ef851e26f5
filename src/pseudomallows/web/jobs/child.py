"""What the processes of the service share: a request of one line in, lines of JSON out."""

import json
import os
import sys
import threading
from typing import Any


def read_line() -> Any:
    """The next line of JSON from the service; None if the service has gone.

    It comes by standard input, so that no address of a store is seen in the list of processes.
    """
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def say(what: dict[str, Any]) -> None:
    """A line of JSON for the service."""
    print(json.dumps(what), flush=True)


def end_with_the_service() -> None:
    """From now on, end when standard input ends: then the service has gone."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    sys.stdin.read()
    os._exit(3)


def let_requests_go_first() -> None:
    """Take the processor only when the service leaves it."""
    os.nice(5)
