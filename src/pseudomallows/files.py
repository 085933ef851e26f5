"""Files: saved posteriors, written whole or not at all.

A saved posterior is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 1, "items": [...],
  "settings": {...}, "arrays": {name: {"dtype": ..., "shape": [...]}}};
- ``consensus.npy``, ``alpha.npy``, ``weights.npy``, ``log_posterior.npy``, ``costs.npy``: the
  arrays of :class:`Posterior`.

Versions above the one known here are refused; older ones stay readable.
"""

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .posterior import Posterior

FORMAT, VERSION = "pseudomallows posterior", 1
ARRAYS = {
    "consensus": 4,
    "alpha": 3,
    "weights": 2,
    "log_posterior": 2,
    "costs": 3,
}  # and their axes


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that takes its place once all is written."""
    target = Path(path)
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


def save_posterior(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior to a file, whole or not at all."""
    arrays = {name: getattr(posterior, name) for name in ARRAYS}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "items": [_plain_name(name) for name in posterior.items.tolist()],
        "settings": posterior.settings,
        "arrays": {
            name: {"dtype": array.dtype.str, "shape": list(array.shape)}
            for name, array in arrays.items()
        },
    }
    text = json.dumps(header, indent=1)  # fails here, before anything is written
    with write_whole(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that :meth:`Posterior.save` has written.

    A file that is damaged, cut short or of another kind is refused with a ValueError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(archive, path)
            arrays = {name: _read_array(archive, name, header) for name in ARRAYS}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a saved posterior, or is damaged: {error}") from None
    except _WrongFileError as error:
        raise ValueError(f"{path} {error}") from None
    _check_shapes(path, header, arrays)
    items = np.empty(len(header["items"]), dtype=object)
    items[:] = header["items"]
    if all(isinstance(name, int) for name in header["items"]):
        items = items.astype(np.int64)
    return Posterior(items=items, settings=header["settings"], **arrays)


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
    if not isinstance(header.get("version"), int) or not 1 <= header["version"] <= VERSION:
        raise _WrongFileError(
            f"has format version {header.get('version')!r}, and this program reads up to "
            f"{VERSION}: update pseudomallows"
        )
    kinds = {"items": list, "settings": dict, "arrays": dict}
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
    for name, n_axes in ARRAYS.items():
        if arrays[name].ndim != n_axes:
            raise ValueError(f"{path} has an array {name!r} with {arrays[name].ndim} axes")
    n_chains, n_draws, n_clusters, n_items = arrays["consensus"].shape
    shapes = {
        "alpha": (n_chains, n_draws, n_clusters),
        "weights": (n_chains, n_draws),
        "log_posterior": (n_chains, n_draws),
        "costs": (n_clusters, n_items, n_items),
    }
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong or len(header["items"]) != n_items:
        raise ValueError(f"{path} is damaged: its arrays {wrong or ['items']} do not fit together")


def _plain_name(name: Any) -> str | int | float:
    if isinstance(name, str | int | float):
        return name
    raise TypeError(f"item names must be text or numbers to be saved, got {name!r}")
