"""Checkpoints: a fit that was interrupted goes on where it was saved last, with the same bits.

A checkpoint is a ZIP archive of arrays and ``checkpoint.json``, which says which fit it is of and
holds the numbers of its state. There is no pickle in it, and what is read from it is checked before
it is used.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..data.archive import START, WrongFileError, open_archive, write_archive
from ..data.atomic import check_target, write_whole
from ..data.preferences import Preferences
from ..data.saved import Saved

FORMAT = "pseudomallows checkpoint"
HEADER = "checkpoint.json"
OLD = b'{"format": "pseudomallows checkpoint 1"'
PAUSE = 30.0  # seconds between two checkpoints, at least: what a crash costs, at most
SHARE = 0.05  # of the time may go into them: if they are slow, a crash costs 20 times one
DIGESTS = {"data": "of other data", "seed": "with another seed"}


class Checkpoint:
    """The file of one fit: read at its start, written now and then, and gone at its end."""

    def __init__(self, path: str | os.PathLike[str], call: dict[str, Any]):
        self._path, self._call = check_target(path), json.loads(json.dumps(call))
        self._next = time.monotonic() + PAUSE

    def load(self) -> "Saved | None":
        """What was saved of this fit, if anything."""
        if not self._path.exists():
            return None
        with self._path.open("rb") as file, self.refuse_damage():
            self._check_start(file.read(100))
            with open_archive(file) as archive:
                header = archive.header(HEADER)
                arrays = {name: archive.array(name) for name in archive.arrays}
            self._check_header(header)
            return Saved(header["state"], arrays)

    @contextmanager
    def refuse_damage(self) -> Iterator[None]:
        """Say what to do about a file that is damaged or forged."""
        try:
            yield
        except WrongFileError as error:
            raise ValueError(f"{self._path} {error}: delete it to start over") from None

    def _check_start(self, start: bytes) -> None:
        if start.startswith(OLD):
            raise ValueError(
                f"{self._path} is a checkpoint of an older version: delete it to start over"
            )
        if not (start.startswith(START) and HEADER.encode() in start):
            raise ValueError(f"{self._path} is not a checkpoint: give another name")

    def _check_header(self, header: dict[str, Any]) -> None:
        if set(header) != {"format", "call", "state"} or header["format"] != FORMAT:
            raise WrongFileError("is damaged: its header is of another kind")
        if header["call"] != self._call:
            differing = _first_difference(header["call"], self._call)
            raise ValueError(
                f"{self._path} is the checkpoint of another fit ({differing}): delete it, or give "
                "another name"
            )

    def save_if_due(self, state: dict[str, Any]) -> None:
        """Write the state, if the last time is long ago."""
        started = time.monotonic()
        if started < self._next:
            return
        self.save(state)
        now = time.monotonic()
        self._next = now + max(PAUSE, (now - started) / SHARE)

    def save(self, state: dict[str, Any]) -> None:
        """Write the state: dictionaries, lists, numbers and arrays."""
        arrays: dict[str, NDArray[Any]] = {}
        header = {"format": FORMAT, "call": self._call, "state": _take_arrays(state, "", arrays)}
        with write_whole(self._path) as file:
            write_archive(file, HEADER, header, arrays, packed=False)

    def remove(self) -> None:
        """The fit has ended."""
        self._path.unlink(missing_ok=True)


def _take_arrays(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The value without its arrays, which go into `arrays` by their path."""
    if isinstance(value, Mapping):
        parts = {key: _take_arrays(each, f"{name}/{key}", arrays) for key, each in value.items()}
        return {key: each for key, each in parts.items() if f"{name}/{key}"[1:] not in arrays}
    if isinstance(value, list | tuple):
        return [_take_arrays(each, f"{name}/{place}", arrays) for place, each in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[name[1:]] = value
        return None
    return value


def describe_call(
    prefs: Preferences, plan: dict[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """What tells one fit from another: data, method, options, seed; and who makes the draws."""
    if not isinstance(rng.bit_generator, np.random.PCG64):
        raise ValueError(
            "a checkpoint needs a generator of PCG64, as np.random.default_rng makes it, got "
            f"{type(rng.bit_generator).__name__}"
        )
    state = json.dumps(rng.bit_generator.state, sort_keys=True)
    return {
        "version": __version__,
        "data": prefs.digest(),
        **plan,
        "seed": hashlib.sha256(state.encode()).hexdigest()[:16],
    }


def _first_difference(saved: Any, wanted: Any) -> str:
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for name in sorted(saved.keys() | wanted.keys()):
            if saved.get(name) != wanted.get(name):
                if name in DIGESTS:  # which say nothing to anybody
                    return DIGESTS[name]
                inner = _first_difference(saved.get(name), wanted.get(name))
                return inner if name == "options" else f"{name}: {inner}"
    return f"it has {saved!r}, this one {wanted!r}"
