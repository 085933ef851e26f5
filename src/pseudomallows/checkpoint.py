"""Checkpoints: a fit that was interrupted goes on where it was saved last, with the same bits.

A checkpoint is a line of JSON that says which fit it is of, and the state of that fit in Python's
pickle format. Only the classes below are ever made from it, so a file from a stranger can do no
more than make a wrong state.
"""

import hashlib
import io
import json
import os
import pickle
import time
from typing import Any

import numpy as np

from ._version import __version__
from .files import check_target, write_whole
from .latent import Counts, Latent
from .preferences import Clicks, Preferences, Rankings

FORMAT = "pseudomallows checkpoint 1"
PAUSE = 30.0  # seconds between two checkpoints, at least
SHARE = 0.05  # of the time may go into them
DIGESTS = {"data": "of other data", "seed": "with another seed"}
KNOWN = {
    ("pseudomallows.states", "PseudoState"),
    ("pseudomallows.states", "PseudoOptions"),
    ("pseudomallows.mcmc", "Chain"),
    ("pseudomallows.mcmc", "ChainOptions"),
    ("pseudomallows.clusters", "Mixture"),
    ("pseudomallows.clusters", "StartState"),
    ("pseudomallows.clicks", "Source"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy.random._pickle", "__generator_ctor"),
    ("numpy.random._pickle", "__bit_generator_ctor"),
    ("numpy.random._pcg64", "PCG64"),
    ("numpy.random.bit_generator", "SeedSequence"),
    ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"),
}


class Checkpoint:
    """The file of one fit: read at its start, written now and then, and gone at its end."""

    def __init__(self, path: str | os.PathLike[str], call: dict[str, Any]):
        self._path, self._call = check_target(path), json.dumps(call, sort_keys=True)
        self._next = time.monotonic() + PAUSE

    def load(self, latent: Latent) -> dict[str, Any] | None:
        """What was saved of this fit, if anything."""
        if not self._path.exists():
            return None
        line, _, content = self._path.read_bytes().partition(b"\n")
        try:
            header = json.loads(line)
            kind, call, digest = (header[name] for name in ("format", "call", "sha256"))
        except (ValueError, TypeError, KeyError):
            kind = None
        if kind != FORMAT:
            raise ValueError(f"{self._path} is not a checkpoint: give another name")
        if call != json.loads(self._call):
            differing = _first_difference(call, json.loads(self._call))
            raise ValueError(
                f"{self._path} is the checkpoint of another fit ({differing}): delete it, or give "
                "another name"
            )
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{self._path} is damaged: delete it to begin anew")
        try:
            saved: dict[str, Any] = _Unpickler(content, latent).load()
        except Exception as error:  # of a forged one, anything
            raise ValueError(f"{self._path} is damaged: delete it to begin anew: {error}") from None
        return saved

    def save_if_due(self, saved: dict[str, Any], latent: Latent) -> None:
        """Write the state, if the last time is long ago."""
        started = time.monotonic()
        if started < self._next:
            return
        stream = io.BytesIO()
        _Pickler(stream, latent).dump(saved)
        content = stream.getvalue()
        header = {
            "format": FORMAT,
            "call": json.loads(self._call),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        with write_whole(self._path) as file:
            file.write(json.dumps(header).encode() + b"\n")
            file.write(content)
        now = time.monotonic()
        self._next = now + max(PAUSE, (now - started) / SHARE)

    def remove(self) -> None:
        """The fit has ended."""
        self._path.unlink(missing_ok=True)


def describe_call(
    prefs: Preferences, method: str, alpha: float | None, options: Any, rng: np.random.Generator
) -> dict[str, Any]:
    """What tells one fit from another: data, method, options, seed; and who makes the draws."""
    state = json.dumps(rng.bit_generator.state, sort_keys=True, default=str)
    return {
        "version": __version__,
        "data": _digest(prefs),
        "method": method,
        "alpha": alpha,
        "options": options.as_settings(),
        "seed": hashlib.sha256(state.encode()).hexdigest()[:16],
    }


def _digest(prefs: Preferences) -> str:
    digest = hashlib.sha256(str([prefs.n_users, *prefs.items.tolist()]).encode())
    if isinstance(prefs, Clicks):
        digest.update(str(prefs.checksum()).encode())
    elif isinstance(prefs, Rankings):
        for array in (prefs.weights, prefs.rankings):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _first_difference(saved: Any, wanted: Any) -> str:
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for name in sorted(saved.keys() | wanted.keys()):
            if saved.get(name) != wanted.get(name):
                if name in DIGESTS:  # which say nothing to anybody
                    return DIGESTS[name]
                inner = _first_difference(saved.get(name), wanted.get(name))
                return inner if name == "options" else f"{name}: {inner}"
    return f"it has {saved!r}, this one {wanted!r}"


class _Pickler(pickle.Pickler):
    """The users stay where they are: only which of them belong to a cluster is saved."""

    def __init__(self, stream: Any, latent: Latent):
        super().__init__(stream, protocol=5)
        self._latent = latent

    def persistent_id(self, thing: Any) -> Any:
        if not isinstance(thing, Latent):
            return None
        return () if thing is self._latent else (id(thing), thing.row_weights, thing.row_numbers)


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, latent: Latent):
        super().__init__(io.BytesIO(content))
        self._latent, self._chosen = latent, dict[int, Latent]()

    def persistent_load(self, pid: Any) -> Any:
        if not pid:
            return self._latent
        place, weights, numbers = pid
        if place not in self._chosen:
            self._chosen[place] = _select_again(self._latent, weights, numbers)
        return self._chosen[place]

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in KNOWN:
            raise ValueError(f"a checkpoint does not hold {module}.{name}: it is damaged or forged")
        return super().find_class(module, name)


def _select_again(latent: Latent, weights: Counts, numbers: Counts) -> Latent:
    """The rows of these numbers of first users, with these weights."""
    rows = np.searchsorted(latent.row_numbers, numbers, side="right") - 1
    given = np.zeros((2, latent.n_rows), dtype=np.int64)
    given[:, rows] = weights, numbers
    return latent.select(*given)
