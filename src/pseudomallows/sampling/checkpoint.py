"""Checkpoints: a fit that was interrupted goes on where it was saved last, with the same bits.

A checkpoint is a ZIP archive of arrays and ``checkpoint.json``, which says which fit it is of and
holds the numbers of its state. There is no pickle in it, and what is read from it is compared with
what this fit would save, before it is used.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..data.archive import START, WrongFileError, open_archive, write_archive
from ..data.atomic import check_target, write_whole
from ..data.preferences import Preferences
from .options import Options

FORMAT = "pseudomallows checkpoint"
HEADER = "checkpoint.json"
PAUSE = 30.0  # seconds between two checkpoints, at least: what a crash costs, at most
SHARE = 0.05  # of the time may go into them: if they are slow, a crash costs 20 times one
DIGESTS = {"data": "of other data", "seed": "with another seed"}


class Saved(NamedTuple):
    """What a checkpoint holds: values of JSON, and arrays, by their names."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Checkpoint:
    """The file of one fit: read at its start, written now and then, and gone at its end."""

    def __init__(self, path: str | os.PathLike[str], call: dict[str, Any]):
        self._path, self._call = check_target(path), json.loads(json.dumps(call))
        self._next = time.monotonic() + PAUSE

    def load(self) -> Saved | None:
        """What was saved of this fit, if anything; within `refuse_damage`."""
        if not self._path.exists():
            return None
        with self._path.open("rb") as file:
            start = file.read(100)
            if not (start.startswith(START) and HEADER.encode() in start):
                raise ValueError(f"{self._path} is not a checkpoint: give another name")
            with open_archive(file) as archive:
                header = archive.header(HEADER)
                arrays = {name: archive.array(name) for name in archive.arrays}
        if set(header) != {"format", "call", "state"} or header["format"] != FORMAT:
            raise WrongFileError("is damaged: its header is of another kind")
        if header["call"] != self._call:
            differing = _first_difference(header["call"], self._call)
            raise ValueError(
                f"{self._path} is the checkpoint of another fit ({differing}): delete it, or give "
                "another name"
            )
        return Saved(header["state"], arrays)

    @contextmanager
    def refuse_damage(self) -> Iterator[None]:
        """Say what to do about a file that is damaged or forged."""
        try:
            yield
        except WrongFileError as error:
            raise ValueError(f"{self._path} {error}: delete it to start over") from None

    def save_if_due(self, state: Saved) -> None:
        """Write the state, if the last time is long ago."""
        started = time.monotonic()
        if started < self._next:
            return
        self.save(state)
        now = time.monotonic()
        self._next = now + max(PAUSE, (now - started) / SHARE)

    def save(self, state: Saved) -> None:
        """Write the state."""
        header = {"format": FORMAT, "call": self._call, "state": state.values}
        with write_whole(self._path) as file:
            write_archive(file, HEADER, header, state.arrays, packed=False)

    def remove(self) -> None:
        """The fit has ended."""
        self._path.unlink(missing_ok=True)


# Checks of what a file holds


def refuse(name: str, why: str) -> NoReturn:
    """Say what is wrong with a value."""
    raise WrongFileError(f"is damaged or forged: {name!r} {why}")


def check_like(saved: Any, like: Mapping[str, Any]) -> None:
    """Refuse values, or arrays of another type or shape, that are not those of this fit."""
    if not isinstance(saved, dict):
        refuse("state", "is of another kind")
    for name, mine in like.items():
        if name not in saved:
            refuse(name, "is missing")
        kinds = [(each.dtype, each.shape) for each in (saved[name], mine) if hasattr(each, "dtype")]
        if len(set(kinds)) > 1:
            refuse(name, f"must be {mine.dtype} of shape {mine.shape}")
    if strange := saved.keys() - like.keys():
        refuse(min(strange), "does not belong here")


def check_whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number."""
    if type(value) is not int or not least <= value <= most:
        refuse(name, f"must be a whole number in {least}..{most}")
    return int(value)


def check_range(name: str, array: NDArray[Any], least: float, most: float) -> None:
    """Refuse numbers that are not between these, both included, and NaN."""
    if not ((array >= least) & (array <= most)).all():
        refuse(name, f"must be numbers in {least:g}..{most:g}")


def check_rankings(name: str, array: NDArray[Any]) -> None:
    """Refuse what is not a ranking on the last axis."""
    if not (np.sort(array, axis=-1) == np.arange(1, array.shape[-1] + 1)).all():
        refuse(name, "must be made of rankings")


def check_shares(name: str, array: NDArray[Any]) -> None:
    """Refuse what is not a probability on the last axis."""
    with np.errstate(invalid="ignore"):
        fits = (array >= 0).all() and (abs(array.sum(axis=-1) - 1) <= 1e-3).all()
    if not fits:
        refuse(name, "must be shares that sum to 1")


def generator_of(state: Any) -> np.random.Generator:
    """A source of random numbers in the state it had."""
    made = np.random.PCG64(0)
    try:
        made.state = state
    except Exception as error:  # in a forged file, anything
        refuse("rng", f"must be of PCG64: {error}")
    if made.state["state"]["inc"] % 2 == 0:
        refuse("rng", "has an even increment")
    return np.random.Generator(made)


def describe_call(prefs: Preferences, plan: Options, rng: np.random.Generator) -> dict[str, Any]:
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
        "method": plan.method,
        "alpha": plan.alpha,
        "options": plan.settings(),
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
