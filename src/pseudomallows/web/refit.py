"""Fit again, in a process of its own: the clicks of the first model and the stored ones.

Those that earlier versions learned from the store are taken from the store alone: what was removed
there does not come back.

The order is read as one line of JSON from standard input, so that no address of a store is seen in
the list of processes; how far it is goes to standard output, one line of JSON each time. When
standard input ends, the service has gone, and so does this.
"""

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inference.fit import fit
from ..inference.reproduce import fit_options
from ..posteriors.personal import Fit
from ..preferences.preferences import Clicks, clicks_of_pairs
from .errors import StoreError
from .stores.store import open_store
from .stores.tables import Pair
from .versions import Versions


def main() -> int:
    """Read the order, fit, save; the last line says the number of the version, or what failed."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    os.nice(5)  # requests go first
    try:
        versions = Versions(order["model"])
        newest = versions.load(order["number"])
        first = versions.load(1).clicks if order["number"] > 1 else newest.clicks
        posterior = refit(newest, order, first, progress=_say_progress)
        _say({"saved": versions.save(posterior)})
    except StoreError as error:
        _say({"error": f"the store failed: {error.reason}"})
        return 1
    except (ValueError, TypeError, OSError, MemoryError) as error:
        _say({"error": str(error) or type(error).__name__})
        return 1
    return 0


def _end_with_the_service() -> None:
    sys.stdin.read()
    os._exit(3)


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def _say_progress(done: int, total: int) -> None:
    _say({"done": done, "total": total})


def refit(posterior: Fit, order: dict[str, Any], first: Clicks | None, progress: Any = None) -> Fit:
    """A new posterior by the options of an old one, from the first clicks and the stored ones."""
    assert first is not None
    store = open_store(order["store"])
    try:
        n_stored, changes = store.counts()  # first: what comes meanwhile is for the next refit
        prefs = join_clicks(first, store.all_clicks())
    finally:
        store.close()
    method, clusters = order.get("method"), order.get("clusters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether to trust it is said at /model
        found = fit(prefs, progress=progress, **_options(posterior, method, clusters))
    found.settings["stored_clicks"], found.settings["stored_changes"] = n_stored, changes
    return found


def _options(posterior: Fit, method: str | None, clusters: int | str | None) -> dict[str, Any]:
    """The options of the old fit, unless others are asked for."""
    settings = posterior.settings
    new_method = method or settings["method"]
    options: dict[str, Any] = {"method": new_method, "rng": settings.get("seed")}
    if new_method == settings["method"]:
        given = fit_options(posterior)
        if any(repr(value) == "..." for value in given.values()):
            raise ValueError(
                "this model was fitted with data of its own (scores, held_out, with_clusters), "
                "which the service does not have: name another method"
            )
        given.pop("keep_latent", None)
        options |= given
    elif new_method != "personal":
        options["n_clusters"] = posterior.n_clusters
    if new_method == "personal":
        options.pop("n_clusters", None)
        if clusters is not None:
            raise ValueError("method 'personal' has no clusters: leave them out")
    elif clusters is not None and clusters != options.get("n_clusters"):
        options = {key: options[key] for key in ("method", "rng", "n_draws") if key in options}
        options["n_clusters"] = clusters
    return options


def join_clicks(old: Clicks, pairs: Iterable[Pair]) -> Clicks:
    """The clicks of a fit with new ones, whose names are text; new users and items come last."""
    users, items = _Names(old.users), _Names(old.items)
    rows = [np.repeat(np.arange(old.n_users), old.n_clicks)]
    codes = [old.codes.astype(np.int64)]
    new = [(users.code(user), items.code(item)) for user, item in pairs]
    if new:
        found = np.array(new)
        rows.append(found[:, 0])
        codes.append(found[:, 1])
    weights = np.ones(len(users.names), dtype=np.int64)
    weights[: old.n_users] = old.weights
    every = np.concatenate(rows), np.concatenate(codes)
    return clicks_of_pairs(*every, weights, users.array(), items.array())


class _Names:
    """Names in order, found by their text."""

    def __init__(self, names: NDArray[Any]):
        self.names: list[Any] = names.tolist()
        self._codes = {str(name): code for code, name in enumerate(self.names)}
        self._are_numbers = all(type(name) is int for name in self.names)

    def code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(_number(text) if self._are_numbers else text)
        return code

    def array(self) -> NDArray[Any]:
        return as_objects(self.names)


def as_objects(names: Sequence[Any]) -> NDArray[Any]:
    """Names as an array, each as it is."""
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def _number(text: str) -> int | str:
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text else text


if __name__ == "__main__":
    raise SystemExit(main())
