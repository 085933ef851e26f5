"""Checkpoints: a fit that was interrupted goes on where it was saved last, with the same bits.

A checkpoint is a ZIP archive of arrays, those of the chain and those that are filled, and
``checkpoint.json``, which says which fit it is of and holds a few values. Checksums find damage;
there is no pickle in it; types, shapes and the numbers that are used as places are looked at, so
that a forged file can give wrong draws, and do no other harm.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

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
DIGESTS = {"data": "of other data", "seed": "with another seed"}  # which say nothing to anybody


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
        """What was saved of this fit, if anything; `check` it, before it is used."""
        if not self._path.exists():
            return None
        with self._path.open("rb") as file:
            start = file.read(100)
            if not (start.startswith(START) and HEADER.encode() in start):
                raise ValueError(f"{self._path} is not a checkpoint: give another name")
            try:
                with open_archive(file) as archive:
                    header = archive.header(HEADER)
                    arrays = {name: archive.array(name) for name in archive.arrays}
                self._check_call(header)
            except WrongFileError as error:
                raise ValueError(f"{self._path} {error}: delete it to start over") from None
        return Saved(header["state"], arrays)

    def check(self, saved: Saved, like: Saved) -> None:
        """Refuse what this fit would not save: values and arrays must be as those of `like`."""
        try:
            _check_like(saved.values, like.values)
            _check_like(saved.arrays, like.arrays)
            _check_places(saved.arrays)
        except WrongFileError as error:
            raise ValueError(f"{self._path} {error}: delete it to start over") from None

    def save(self, state: Saved, at_once: bool) -> None:
        """Write the state, at once, or if the last time is long ago."""
        started = time.monotonic()
        if not at_once and started < self._next:
            return
        header = {"format": FORMAT, "call": self._call, "state": state.values}
        with write_whole(self._path) as file:
            write_archive(file, HEADER, header, state.arrays, packed=False)
        now = time.monotonic()
        self._next = now + max(PAUSE, (now - started) / SHARE)

    def remove(self) -> None:
        """The fit has ended."""
        self._path.unlink(missing_ok=True)

    def _check_call(self, header: dict[str, Any]) -> None:
        """Refuse the checkpoint of another fit."""
        if set(header) != {"format", "call", "state"} or header["format"] != FORMAT:
            raise WrongFileError("is damaged: its header is of another kind")
        if header["call"] != self._call:
            raise ValueError(
                f"{self._path} is the checkpoint of another fit "
                f"({_first_difference(header['call'], self._call)}): delete it, or give another "
                "name"
            )


def _check_like(saved: Any, like: Mapping[str, Any]) -> None:
    """Refuse values, or arrays of another type or shape, that are not those of this fit."""
    if not isinstance(saved, dict) or saved.keys() != like.keys():
        raise WrongFileError(f"is damaged or forged: it must hold {', '.join(like)}")
    for name, mine in like.items():
        kinds = [(each.dtype, each.shape) for each in (saved[name], mine) if hasattr(each, "dtype")]
        if len(set(kinds)) > 1:
            raise WrongFileError(
                f"is damaged or forged: {name!r} must be {mine.dtype} of shape {mine.shape}"
            )


def _check_places(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse ranks and labels that kernels would look for outside of their arrays."""
    for name, array in arrays.items():
        if name.endswith(("/consensus", "/latent")):
            is_drawn = array.any(axis=-1) | name.startswith("state/")
            if not (np.sort(array[is_drawn]) == np.arange(1, array.shape[-1] + 1)).all():
                raise WrongFileError(f"is damaged or forged: {name!r} must be made of rankings")
    labels, n_clusters = arrays["state/labels"], len(arrays["state/alpha"])
    if not ((labels >= 0) & (labels < n_clusters)).all():
        raise WrongFileError(f"is damaged or forged: labels must be in 0..{n_clusters - 1}")


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
        "seed": hashlib.sha256(state.encode()).hexdigest()[:16],
        **plan.settings(),
    }


def _first_difference(saved: Any, wanted: dict[str, Any]) -> str:
    known = saved if isinstance(saved, dict) else {}
    name = next(name for name in (*wanted, "") if known.get(name) != wanted.get(name))
    return DIGESTS.get(name, f"{name}: it has {known.get(name)!r}, this one {wanted.get(name)!r}")
