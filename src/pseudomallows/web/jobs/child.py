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

from ...data.blocks import Clicks
from ...data.checks import object_array
from ...data.from_clicks import clicks_of_pairs
from ...data.more_clicks import name_like
from ...personal.personal_fit import Fit
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
        changes = store.counts()[1]  # first: what comes meanwhile is for the next refit
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
    newer.settings["stored_changes"] = changes
    store = open_store(request["store"])
    try:
        forgotten = store.forgotten()
        if forgotten > changes:
            newer = without_removed(newer, first, store.all_clicks(), forgotten)
    finally:
        store.close()
    return newer


def _options(posterior: Fit, method: str | None, clusters: int | str | None) -> dict[str, Any]:
    """The options of the old fit, but for a method or a number of clusters that is asked for."""
    settings = posterior.settings
    options = {"method": method or settings["method"], "rng": settings.get("seed")}
    if settings.get("distance", "footrule") != "footrule":
        options["distance"] = settings["distance"]
    is_personal = options["method"] == "personal"
    if is_personal and clusters is not None:
        raise ValueError("method 'personal' has no clusters: leave them out")
    if options["method"] == settings["method"]:
        old = fit_options(posterior)
        if any(repr(value) == "..." for value in old.values()):
            raise ValueError(
                "this model was fitted with data of its own (scores, held_out), "
                "which the service does not have: name another method"
            )
        if clusters in (None, old.get("n_clusters", 1)):
            old.pop("keep_latent", None)
            return options | old
        options |= {name: old[name] for name in ("n_draws",) if name in old}
    if not is_personal:
        options["n_clusters"] = clusters or posterior.n_clusters
    return options


def join_clicks(old: Clicks, clicks: Iterable[Click]) -> Clicks:
    """The clicks of a fit with new ones, whose names are text; new users and items come last. Times
    count if the fit has them."""
    user_of, item_of = name_like(old.users), name_like(old.items)
    users, items = (
        {name: code for code, name in enumerate(names.tolist())} for names in (old.users, old.items)
    )
    new = [
        (
            users.setdefault(user_of(user), len(users)),
            items.setdefault(item_of(item), len(items)),
            np.nan if time is None else time,
        )
        for user, item, time in clicks
    ]
    rows, codes, when = np.array(new, dtype=np.float64).reshape(-1, 3).T
    weights = np.ones(len(users), dtype=np.int64)
    weights[: old.n_users] = old.weights
    return clicks_of_pairs(
        np.concatenate([old.owners, rows.astype(np.int64)]),
        np.concatenate([old.codes, codes.astype(np.int64)]),
        weights,
        object_array(list(users)),
        object_array(list(items)),
        None if old.times is None else np.concatenate([old.times, when]),
    )


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
