"""Files: saved posteriors, written whole or not at all.

A saved posterior is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 2, "items": [...],
  "users": [...], "settings": {...}, "arrays": {name: {"dtype": ..., "shape": [...]}}};
- ``consensus.npy``, ``alpha.npy``, ``weights.npy``, ``log_posterior.npy``, ``costs.npy``,
  ``latent.npy``, and since version 2 ``shares.npy``, ``chain_memberships.npy``, ``leaders.npy``:
  the arrays of :class:`Posterior`;
- of a fit from clicks, ``click_starts.npy``, ``click_codes.npy``, ``click_weights.npy``: the
  clicks, row by row;
- of a fit by method "personal", ``personal_*.npy``: the arrays of :class:`Personal` and of its
  corrections, one row a window; ``personal_clusters.npy``, the bytes of another such archive, if
  it is blended with clusters.

Versions above the one known here are refused; older ones stay readable.
"""

import io
import json
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .correct import Correction
from .personal import Personal
from .posterior import Posterior
from .preferences import Clicks

FORMAT, VERSION = "pseudomallows posterior", 2
ARRAYS = {
    "consensus": 4,
    "alpha": 3,
    "weights": 2,
    "log_posterior": 2,
    "costs": 3,
    "latent": 4,
}  # and their axes
CLUSTER_ARRAYS = {"shares": 3, "chain_memberships": 3, "leaders": 4}  # since version 2
PERSONAL = ("item_weights", "popularity", "ties", "alphas", "alpha_shares", "scores")
CORRECTIONS = ("windows", "coefficients", "knots", "values")
CLICKS = {"click_starts": "starts", "click_codes": "codes", "click_weights": "weights"}


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that takes its place once all is written.

    A device, a pipe or an open file such as /dev/stdout is written to directly: it must stay what
    it is. Of a symbolic link, the file it leads to is replaced, and the link stays.
    """
    target = check_target(path)
    if is_stream(target):
        descriptor = _open_file(target)
        with open(target if descriptor is None else os.dup(descriptor), "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(target))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is no file of its own: a device, a pipe, /dev/stdout."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) or _open_file(path) is not None


def _open_file(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file of this process that a path such as /dev/stdout stands for."""
    place = os.path.abspath(path)
    for _ in range(40):  # links
        folder, name = os.path.split(place)
        if name.isdecimal() and os.path.realpath(folder) == os.path.realpath("/dev/fd"):
            return int(name)
        if not os.path.islink(place):
            break
        place = os.path.join(folder, os.readlink(place))
    return None


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path, or an error if no file can be written there: before work, not after it."""
    target = Path(path)
    folder = Path(os.path.realpath(target)).parent if target.is_symlink() else target.parent
    if target.is_dir() or not folder.is_dir():
        what = "it is a folder" if target.is_dir() else f"there is no folder {folder}"
        raise FileNotFoundError(f"cannot write {target}: {what}")
    return target


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made if it is not there."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write into {folder}: it is a file, and must be a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def save_posterior(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior to a file, whole or not at all."""
    content = io.BytesIO()
    _write(posterior, content)  # fails here, before anything is written
    with write_whole(path) as stream:
        stream.write(content.getbuffer())


def _write(posterior: Posterior, stream: IO[bytes]) -> None:
    arrays = {name: getattr(posterior, name) for name in (*ARRAYS, *CLUSTER_ARRAYS)}
    if posterior.clicks is not None:
        arrays |= {name: getattr(posterior.clicks, field) for name, field in CLICKS.items()}
    arrays |= _personal_arrays(posterior)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "items": [_plain_name(name) for name in posterior.items.tolist()],
        "users": [_plain_name(name) for name in posterior.users.tolist()],
        "settings": posterior.settings,
        "arrays": {
            name: {"dtype": array.dtype.str, "shape": list(array.shape)}
            for name, array in arrays.items()
        },
    }
    text = json.dumps(header, indent=1)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that :meth:`Posterior.save` has written.

    A file that is damaged, cut short or of another kind is refused with a ValueError.
    """
    return _read(io.BytesIO(Path(path).read_bytes()), path)


def _read(content: IO[bytes], path: str | os.PathLike[str]) -> Posterior:
    try:
        with zipfile.ZipFile(content) as archive:
            header = _read_header(archive, path)
            names = [*ARRAYS, *(CLUSTER_ARRAYS if header["version"] > 1 else ())]
            names += CLICKS if "click_codes" in header["arrays"] else ()
            names += [name for name in header["arrays"] if name.startswith("personal_")]
            arrays = {name: _read_array(archive, name, header) for name in names}
    except _WrongFileError as error:
        raise ValueError(f"{path} {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        # OSError: a damaged offset; RuntimeError: damage that looks like encryption
        raise ValueError(f"{path} is not a saved posterior, or is damaged: {error}") from None
    if header["version"] == 1:
        arrays |= _one_cluster(arrays, len(header["users"]))
    _check_shapes(path, header, arrays)
    items, users, clicks = _names(header["items"]), _names(header["users"]), None
    if "click_codes" in arrays:
        clicks = Clicks(
            arrays.pop("click_weights"),
            users,
            items,
            arrays.pop("click_starts"),
            arrays.pop("click_codes"),
        )
        _check_clicks(path, clicks)
    fields: dict[str, Any] = _read_personal(path, arrays, len(items), len(users)) | arrays
    return Posterior(items=items, users=users, settings=header["settings"], clicks=clicks, **fields)


def _personal_arrays(posterior: Posterior) -> dict[str, NDArray[Any]]:
    """Arrays of a personal posterior; ragged maps are filled up with their last knot."""
    personal = posterior.personal
    if personal is None:
        return {}
    arrays = {f"personal_{name}": getattr(personal, name) for name in PERSONAL}
    rows = list(personal.corrections.values())
    width = max((row.knots.shape[1] for row in rows), default=0)
    n_coefficients = len(rows[0].coefficients) if rows else 0
    arrays["personal_windows"] = np.array(list(personal.corrections), dtype=np.int64)
    arrays["personal_coefficients"] = np.array([row.coefficients for row in rows]).reshape(
        len(rows), n_coefficients
    )
    for name in ("knots", "values"):
        filled = [
            np.pad(getattr(row, name), ((0, 0), (0, width - row.knots.shape[1])), "edge")
            for row in rows
        ]
        arrays[f"personal_{name}"] = np.array(filled).reshape(len(rows), 2, width)
    if posterior.clusters is not None:
        stream = io.BytesIO()
        _write(posterior.clusters, stream)
        arrays["personal_clusters"] = np.frombuffer(stream.getvalue(), dtype=np.uint8)
    return arrays


def _read_personal(
    path: str | os.PathLike[str], arrays: dict[str, NDArray[Any]], n_items: int, n_users: int
) -> dict[str, Any]:
    """Take the arrays of a personal posterior out of `arrays`."""
    found = {name: arrays.pop(name) for name in list(arrays) if name.startswith("personal_")}
    if not found:
        return {}
    try:
        parts = {name: found[f"personal_{name}"] for name in (*PERSONAL, *CORRECTIONS)}
        n_windows, n_alphas = len(parts["windows"]), len(parts["alphas"])
        is_given = parts["scores"].size > 0
        fits = (
            parts["item_weights"].shape == ((0, 0) if is_given else (n_items, n_items))
            and parts["scores"].shape == ((n_users, n_items) if is_given else (0, 0))
            and parts["popularity"].shape == (n_items,)
            and sorted(parts["ties"].tolist()) == list(range(n_items))
            and parts["alpha_shares"].shape == (n_alphas,)
            and len(parts["coefficients"]) == len(parts["knots"]) == n_windows
            and parts["values"].shape == parts["knots"].shape
            and parts["knots"].shape[1] == 2
            and all(np.isfinite(array).all() for array in parts.values())
        )
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"{path} is damaged: its personal scores do not fit together")
    corrections = {
        int(window): Correction(*(parts[name][row] for name in CORRECTIONS[1:]))
        for row, window in enumerate(parts["windows"])
    }
    personal = Personal(**{name: parts[name] for name in PERSONAL}, corrections=corrections)
    fields: dict[str, Any] = {"personal": personal}
    if "personal_clusters" in found:
        stream = io.BytesIO(found["personal_clusters"].tobytes())
        fields["clusters"] = _read(stream, path)
    return fields


def _one_cluster(arrays: dict[str, NDArray[Any]], n_users: int) -> dict[str, NDArray[Any]]:
    """What files of version 1, which know one cluster only, leave out."""
    n_chains, n_draws = arrays["consensus"].shape[:2]
    return {
        "shares": np.ones((n_chains, n_draws, 1)),
        "chain_memberships": np.ones((n_chains, n_users, 1), np.float32),
        "leaders": np.empty((0, 0, 1, arrays["consensus"].shape[-1]), np.int32),
    }


class _WrongFileError(Exception):
    """What is wrong with the file, to follow its name."""


def _read_header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    if "header.json" not in archive.namelist():
        raise _WrongFileError("is a ZIP archive, but not a saved posterior: it has no header.json")
    try:
        header = json.loads(archive.read("header.json"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise _WrongFileError(f"has a damaged header: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _WrongFileError(
            "is a ZIP archive, but not a saved posterior: its header has another format"
        )
    if type(header.get("version")) is not int or not 1 <= header["version"] <= VERSION:
        raise _WrongFileError(
            f"has format version {header.get('version')!r}, and this program reads up to "
            f"{VERSION}: update pseudomallows"
        )
    kinds = {"items": list, "users": list, "settings": dict, "arrays": dict}
    for key, kind in kinds.items():
        if not isinstance(header.get(key), kind):
            raise _WrongFileError(f"has a damaged header: {key!r} is missing or of the wrong type")
    return header


def _read_array(archive: zipfile.ZipFile, name: str, header: dict[str, Any]) -> NDArray[Any]:
    try:
        member = archive.read(f"{name}.npy")
        array = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
    except KeyError:
        raise _WrongFileError(f"has no array {name!r}") from None
    except ValueError as error:
        raise _WrongFileError(f"has a damaged array {name!r}: {error}") from None
    expected = header["arrays"].get(name)
    if expected != {"dtype": array.dtype.str, "shape": list(array.shape)}:
        raise _WrongFileError(f"has an array {name!r} that does not agree with its header")
    return np.asarray(array)


def _check_shapes(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    for name, n_axes in (ARRAYS | CLUSTER_ARRAYS).items():
        if arrays[name].ndim != n_axes:
            raise ValueError(f"{path} has an array {name!r} with {arrays[name].ndim} axes")
    n_chains, n_draws, n_clusters, n_items = arrays["consensus"].shape
    shapes = {
        "alpha": (n_chains, n_draws, n_clusters),
        "weights": (n_chains, n_draws),
        "log_posterior": (n_chains, n_draws),
        "costs": (n_clusters, n_items, n_items),
        "latent": (n_chains, n_draws, arrays["latent"].shape[2], n_items),
        "shares": (n_chains, n_draws, n_clusters),
        "chain_memberships": (n_chains, len(header["users"]), n_clusters),
        "leaders": (
            n_chains if arrays["leaders"].size else 0,
            arrays["leaders"].shape[1],
            n_clusters,
            n_items,
        ),
    }
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong or len(header["items"]) != n_items:
        raise ValueError(f"{path} is damaged: its arrays {wrong or ['items']} do not fit together")
    weights = arrays["weights"]
    for name in ("consensus", "leaders"):
        if not (np.sort(arrays[name], axis=-1) == np.arange(1, n_items + 1)).all():
            raise ValueError(f"{path} is damaged: its {name} is not made of rankings")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6):
        raise ValueError(f"{path} is damaged: its weights are not weights")
    for name in ("chain_memberships", "shares"):
        parts = arrays[name]
        if not (np.abs(parts.sum(axis=2) - 1) < 1e-3).all() or (parts < 0).any():
            raise ValueError(f"{path} is damaged: its {name} are not probabilities")


def _check_clicks(path: str | os.PathLike[str], clicks: Clicks) -> None:
    n_users, starts, codes = clicks.n_users, clicks.starts, clicks.codes
    fits = starts.shape == (n_users + 1,) and clicks.weights.shape == (n_users,)
    fits = fits and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    fits = fits and codes.shape == (starts[-1],)
    if not fits or (len(codes) and not 0 <= codes.min() <= codes.max() < clicks.n_items):
        raise ValueError(f"{path} is damaged: its clicks do not fit together")


def _names(listed: list[Any]) -> NDArray[Any]:
    """Names as an array, of integers if all of them are."""
    if listed and all(type(name) is int for name in listed):
        return np.array(listed)
    names = np.empty(len(listed), dtype=object)
    names[:] = listed
    return names


def _plain_name(name: Any) -> str | int | float:
    if isinstance(name, str | int | float):
        return name
    raise TypeError(f"item names must be text or numbers to be saved, got {name!r}")
