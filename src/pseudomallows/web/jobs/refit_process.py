"""Fit again, in a process of its own: ``python -m pseudomallows.web.jobs.refit_process``.

From the clicks of the first model and the stored ones. Those that earlier versions learned from the
store are taken from the store alone: what was removed there does not come back. If the chains of
the newest version can go on with these clicks, they do.

The request is one line of JSON on standard input; how far it is goes to standard output, one line
of JSON each time. When standard input ends, the service has gone, and so does this.
"""

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...inference.fit import fit
from ...inference.reproduce import fit_options
from ...inference.update import can_go_on, fit_again
from ...posteriors.personal import Fit
from ...preferences import Clicks
from ...preferences.inputs.clicks import clicks_of_pairs
from ..errors import StoreError
from ..models.versions import Versions, without_removed
from ..stores.open import open_store
from ..stores.store import Click
from .child import end_with_the_service, let_requests_go_first, read_line, say


def main() -> int:
    """Read the request, fit, save; the last line says the number of the version, or what failed."""
    request = read_line()
    end_with_the_service()
    let_requests_go_first()
    try:
        versions = Versions(request["model"])
        newest = versions.load(request["number"])
        first = versions.load(1).clicks if request["number"] > 1 else newest.clicks
        posterior = refit(newest, request, first, progress=_say_progress)
        say({"saved": versions.save(posterior)})
    except StoreError as error:
        say({"error": f"the store failed: {error.reason}"})
        return 1
    except (ValueError, TypeError, OSError, MemoryError) as error:
        print(repr(error), file=sys.stderr)  # for the log
        say({"error": _without_folders(error, request)})
        return 1
    return 0


def _without_folders(error: Exception, request: dict[str, Any]) -> str:
    """What went wrong; where the files of the service are is not for everybody."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    words = str(error) or type(error).__name__
    for path in (request["model"], os.path.abspath(request["store"]), request["store"]):
        words = words.replace(os.path.join(os.path.dirname(path), ""), "") if path else words
    return words


def _say_progress(done: int, total: int) -> None:
    """How far it is."""
    say({"done": done, "total": total})


def refit(
    posterior: Fit, request: dict[str, Any], first: Clicks | None, progress: Any = None
) -> Fit:
    """A new posterior by the options of an old one, from the first clicks and the stored ones."""
    assert first is not None
    store = open_store(request["store"])
    try:
        n_stored, changes = store.counts()  # first: what comes meanwhile is for the next refit
        prefs = join_clicks(first, store.all_clicks())
    finally:
        store.close()
    method, clusters = request.get("method"), request.get("clusters")
    is_update = _is_as_before(posterior, method, clusters) and can_go_on(posterior, prefs)
    say({"how": "update" if is_update else "fit"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether to trust it is said at /model
        if is_update:
            newer = fit_again(posterior, prefs, rng=_next_seed(posterior), progress=progress)
        else:
            newer = fit(prefs, progress=progress, **_options(posterior, method, clusters))
    newer.settings["stored_clicks"], newer.settings["stored_changes"] = n_stored, changes
    store = open_store(request["store"])
    try:
        forgotten = store.forgotten()
        if forgotten > changes:
            newer = without_removed(newer, first, store.all_clicks(), forgotten)
    finally:
        store.close()
    return newer


def _is_as_before(posterior: Fit, method: str | None, clusters: int | str | None) -> bool:
    """Is the same method asked for, with as many clusters?"""
    is_same = method in (None, posterior.settings["method"])
    return is_same and clusters in (None, posterior.n_clusters)


def _next_seed(posterior: Fit) -> int | None:
    """Chains do not go on with the random numbers that made them."""
    seed = posterior.settings.get("seed")
    return None if seed is None else seed + 1


def _options(posterior: Fit, method: str | None, clusters: int | str | None) -> dict[str, Any]:
    """The options of the old fit, unless others are asked for."""
    settings = posterior.settings
    new_method = method or settings["method"]
    options: dict[str, Any] = {"method": new_method, "rng": settings.get("seed")}
    if settings.get("distance", "footrule") != "footrule":
        options["distance"] = settings["distance"]
    if new_method == settings["method"]:
        given = fit_options(posterior)
        if any(repr(value) == "..." for value in given.values()):
            raise ValueError(
                "this model was fitted with data of its own (scores, held_out), "
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
        kept = ("method", "rng", "n_draws", "distance")
        options = {key: options[key] for key in kept if key in options}
        options["n_clusters"] = clusters
    return options


def join_clicks(old: Clicks, clicks: Iterable[Click]) -> Clicks:
    """The clicks of a fit with new ones, whose names are text; new users and items come last. Times
    count if the fit has them."""
    users, items = _Names(old.users), _Names(old.items)
    rows = [np.repeat(np.arange(old.n_users), old.n_clicks)]
    codes = [old.codes.astype(np.int64)]
    new, when = list[tuple[int, int]](), list[float]()
    for user, item, time in clicks:
        new.append((users.code(user), items.code(item)))
        when.append(np.nan if time is None else time)
    if new:
        added = np.array(new)
        rows.append(added[:, 0])
        codes.append(added[:, 1])
    weights = np.ones(len(users.names), dtype=np.int64)
    weights[: old.n_users] = old.weights
    every = np.concatenate(rows), np.concatenate(codes)
    times = None
    if old.times is not None:
        times = np.concatenate([old.times, when])
    return clicks_of_pairs(*every, weights, users.array(), items.array(), times)


class _Names:
    """Names in order, found by their text."""

    def __init__(self, names: NDArray[Any]):
        self.names: list[Any] = names.tolist()
        self._codes = {str(name): code for code, name in enumerate(self.names)}
        self._are_numbers = all(type(name) is int for name in self.names)

    def code(self, text: str) -> int:
        """The code of a name; a new name comes last."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.names)
            self.names.append(_number(text) if self._are_numbers else text)
        return code

    def array(self) -> NDArray[Any]:
        """All names."""
        return as_objects(self.names)


def as_objects(names: Sequence[Any]) -> NDArray[Any]:
    """Names as an array, each as it is."""
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _number(text: str) -> int | str:
    """The number, if this is how it is written."""
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text else text


if __name__ == "__main__":
    raise SystemExit(main())
