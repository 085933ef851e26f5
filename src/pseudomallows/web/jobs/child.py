"""The work of a job in a process of its own: ``python -m pseudomallows.web.jobs.child refit``.

A refit fits again, from the clicks of the first model and the stored ones. Those that earlier
versions learned from the store are taken from the store alone: what was removed there does not come
back. If the chains of the newest version can go on with these clicks, they do. An upload reads a
large file, which then neither holds up the service nor takes its memory; a second line, the number
of the upload, says to store it.

The request is one line of JSON on standard input, so that no address of a store is seen in the list
of processes; answers and how far it is go to standard output, one line of JSON each time. When
standard input ends, the service has gone, and so does this.
"""

import json
import os
import resource
import sys
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...posteriors.personal_fit import Fit
from ...preferences import Clicks
from ...preferences.checks import object_array
from ...preferences.inputs.from_clicks import clicks_of_pairs
from ...sampling.fit import fit
from ...sampling.reproduce import fit_options
from ...sampling.update import can_go_on, fit_again
from ..errors import ServiceError, StoreError
from ..models.versions import Versions, without_removed
from ..stores.open import open_store
from ..stores.store import Click
from .uploads import UploadLimits, read_upload, store_parts

MEMORY = 2 * 10**9  # bytes for a file: twenty times the largest that the service takes
FIRST_TO_END = "1000"  # the most: if memory is short, Linux ends this process, not the service


def main(job: str) -> int:
    """Do the job, "refit" or "upload"."""
    os.nice(5)  # of 19: requests go first, and the job still gets what they leave
    return {"refit": refit_and_save, "upload": take_upload}[job](read_line())


def read_line() -> Any:
    """The next line of JSON from the service; None if the service has gone."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def say(what: dict[str, Any]) -> None:
    """A line of JSON for the service."""
    print(json.dumps(what), flush=True)


def end_with_the_service() -> None:
    """From now on, end when standard input ends: then the service has gone."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


# Refits


def refit_and_save(request: dict[str, Any]) -> int:
    """Fit again and save; the last line says the number of the version, or what failed."""
    end_with_the_service()
    try:
        versions = Versions(request["model"])
        newest = versions.load(request["number"])
        first = versions.load(1).clicks if request["number"] > 1 else newest.clicks
        progress = lambda done, total: say({"done": done, "total": total})  # noqa: E731
        posterior = refit(newest, request, first, progress=progress)
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
    is_as_before = method in (None, posterior.settings["method"])
    is_as_before = is_as_before and clusters in (None, posterior.n_clusters)
    is_update = is_as_before and can_go_on(posterior, prefs)
    say({"how": "update" if is_update else "fit"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether to trust it is said at /model
        if is_update:  # chains do not go on with the random numbers that made them
            seed = posterior.settings.get("seed")
            rng = None if seed is None else seed + 1
            newer = fit_again(posterior, prefs, rng=rng, progress=progress)
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


def _options(posterior: Fit, method: str | None, clusters: int | str | None) -> dict[str, Any]:
    """The options of the old fit, unless others are asked for."""
    settings = posterior.settings
    new_method = method or settings["method"]
    options: dict[str, Any] = {"method": new_method, "rng": settings.get("seed")}
    if settings.get("distance", "footrule") != "footrule":
        options["distance"] = settings["distance"]
    if new_method == settings["method"]:
        old = fit_options(posterior)
        if any(repr(value) == "..." for value in old.values()):
            raise ValueError(
                "this model was fitted with data of its own (scores, held_out), "
                "which the service does not have: name another method"
            )
        old.pop("keep_latent", None)
        options |= old
    elif new_method != "personal":
        options["n_clusters"] = posterior.n_clusters
    if new_method == "personal":
        options.pop("n_clusters", None)
        if clusters is not None:
            raise ValueError("method 'personal' has no clusters: leave them out")
    elif clusters is not None and clusters != options.get("n_clusters"):
        of_all_methods = ("method", "rng", "n_draws", "distance")
        options = {key: options[key] for key in of_all_methods if key in options}
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
    """Names in order, and their codes by their text."""

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
        return object_array(self.names)


def _number(text: str) -> int | str:
    """The number, if this is how it is written."""
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text else text


# Uploads


def take_upload(request: dict[str, Any]) -> int:
    """Read the file; store it once there is a number."""
    _limit_memory()
    try:
        limits, known = UploadLimits(*request["limits"]), set(request["known"])
        clicks = read_upload(Path(request["path"]), limits, known)
        say({"counts": clicks.counts(), "warnings": clicks.warnings})
        upload = read_line()
        if upload is None:
            return 3
        end_with_the_service()
        store = open_store(request["store"])
        store.be_lazy()
        store_parts(store, upload, clicks)
        store.close()
        say({"stored": upload})
    except StoreError as error:
        say({"status": error.status, "error": error.words, "reason": error.reason})
    except ServiceError as error:
        say({"status": error.status, "error": error.words})
    except ValueError as error:  # the store cannot be opened
        say({"status": 503, "error": "the store has a problem; see the log", "reason": str(error)})
    except MemoryError:
        words = f"the file takes more than {MEMORY / 1e9:g} GB of memory to read: send it in parts"
        say({"status": 413, "error": words})
    return 0


def _limit_memory() -> None:
    """Of this process, above what the program itself takes."""
    with suppress(OSError, ValueError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_END)
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
