"""The state of a fit as it comes from a file: nothing of it is used before it is checked."""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .archive import WrongFileError


class Saved:
    """One part of a checkpoint. Every value is asked for by name and by what it has to be."""

    def __init__(self, values: Any, arrays: dict[str, NDArray[Any]], path: str = ""):
        if not isinstance(values, dict):
            raise self._wrong(path, "is missing or of another kind")
        self._values, self._arrays, self._path = values, arrays, path
        self._used: set[str] = set()
        self._parts: list[Saved] = []

    def _wrong(self, name: str, why: str) -> WrongFileError:
        return WrongFileError(f"is damaged or forged: {name.strip('/') or 'state'!r} {why}")

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse one of the values."""
        raise self._wrong(f"{self._path}/{name}", why)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            self.refuse(name, "is missing")
        self._used.add(name)
        return self._values[name]

    def count(self, name: str, least: int, most: int) -> int:
        """A whole number."""
        value = self._value(name)
        if type(value) is not int or not least <= value <= most:
            self.refuse(name, f"must be a whole number in {least}..{most}")
        return int(value)

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number."""
        value = self._value(name)
        if type(value) is not float or not (math.isfinite(value) and least <= value <= most):
            self.refuse(name, f"must be a finite number in {least:g}..{most:g}")
        return float(value)

    def generator(self, name: str) -> np.random.Generator:
        """A source of random numbers in the state it had."""
        given = self.part(name)
        inner = given.part("state")
        if given._value("bit_generator") != "PCG64":
            self.refuse(name, "must be of PCG64")
        increment = inner.count("inc", 1, 2**128 - 1)
        if increment % 2 == 0:
            self.refuse(name, "has an even increment")
        made = np.random.PCG64(0)
        made.state = {
            "bit_generator": "PCG64",
            "state": {"state": inner.count("state", 0, 2**128 - 1), "inc": increment},
            "has_uint32": given.count("has_uint32", 0, 1),
            "uinteger": given.count("uinteger", 0, 2**32 - 1),
        }
        return np.random.Generator(made)

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array of this type and shape."""
        path = f"{self._path}/{name}"[1:]
        if path not in self._arrays:
            self.refuse(name, "is missing")
        self._used.add(path)
        saved = self._arrays[path]
        if saved.dtype != np.dtype(dtype) or saved.shape != shape:
            self.refuse(name, f"must be {np.dtype(dtype)} of shape {shape}")
        return saved

    def rankings(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Rankings on the last axis."""
        ranks = self.array(name, np.int32, shape)
        self.check_rankings(name, ranks)
        return ranks

    def check_rankings(self, name: str, array: NDArray[Any]) -> None:
        """Refuse what is not a ranking on the last axis."""
        if not (np.sort(array, axis=-1) == np.arange(1, array.shape[-1] + 1)).all():
            self.refuse(name, "must be made of rankings")

    def check_shares(self, name: str, array: NDArray[Any], total: float = 1.0) -> None:
        """Refuse what is not a probability on the last axis."""
        with np.errstate(invalid="ignore"):
            fits = (array >= 0).all() and (abs(array.sum(axis=-1) - total) <= 1e-3 * total).all()
        if not fits:
            self.refuse(name, f"must be shares that sum to {total:g}")

    def check_range(self, name: str, array: NDArray[Any], least: float, most: float) -> None:
        """Refuse numbers that are not between these, both included, and NaN."""
        if not ((array >= least) & (array <= most)).all():
            self.refuse(name, f"must be numbers in {least:g}..{most:g}")

    def part(self, name: str) -> "Saved":
        """A part with values of its own."""
        inner = Saved(self._value(name), self._arrays, f"{self._path}/{name}")
        self._parts.append(inner)
        return inner

    def parts(self, name: str, number: int) -> list["Saved"]:
        """So many parts."""
        values = self._value(name)
        if not isinstance(values, list) or len(values) != number:
            self.refuse(name, f"must have {number} parts")
        paths = [f"{self._path}/{name}/{place}" for place in range(number)]
        inner = [Saved(each, self._arrays, path) for each, path in zip(values, paths, strict=True)]
        self._parts += inner
        return inner

    def check_all_used(self) -> None:
        """Refuse values that nobody asked for: they are of another fit, or of a forger."""
        every = self._everything()
        for part in every:
            strange = part._values.keys() - part._used
            if strange:
                part.refuse(min(strange), "does not belong here")
        strange = set(self._arrays) - set().union(*(part._used for part in every))
        if strange:
            raise self._wrong(min(strange), "does not belong here")

    def _everything(self) -> list["Saved"]:
        return [self, *(inner for part in self._parts for inner in part._everything())]
