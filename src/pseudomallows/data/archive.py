"""Arrays and a header of JSON in one ZIP file: no pickle, and nothing in it is trusted.

Each array is a .npy file, as `numpy.savez` writes them. Before one is read, what it claims to be is
compared with what the archive holds of it, and with the memory that there is.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import as_size, available_memory
from .checks import check_memory

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
LARGE = 20_000_000  # bytes of text that may be packed as tightly as they like: they fit anywhere
TIMES = 200  # that more text may be packed: tables pack 3 to 100 times, one letter 1,000 times
START = b"PK\x03\x04"


class WrongFileError(Exception):
    """What is wrong with the file, to follow its name."""


def is_bomb(n_bytes: int, n_packed: int) -> bool:
    """Whether text unpacks to far more than any table or header of its size does."""
    return n_bytes > max(LARGE, TIMES * n_packed)


def write_archive(
    stream: IO[bytes],
    header_name: str,
    header: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    packed: bool,
) -> None:
    """Write a header and arrays."""
    text = json.dumps(header, indent=1)
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", how) as archive:
        archive.writestr(header_name, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextmanager
def open_archive(content: IO[bytes]) -> Iterator["Archive"]:
    """An archive to read from; whatever goes wrong in it is a `WrongFileError`."""
    try:
        with zipfile.ZipFile(content) as opened:
            yield Archive(opened)
    except WrongFileError:
        raise
    except Exception as error:  # in a forged or damaged file, anything
        raise WrongFileError(f"is damaged or cut short: {error or type(error).__name__}") from None


class Archive:
    """An archive that is open."""

    def __init__(self, opened: zipfile.ZipFile):
        self._opened = opened
        self.names = opened.namelist()
        if len(set(self.names)) < len(self.names):
            raise WrongFileError("is damaged: it has two parts of one name")
        needed, available = 0, available_memory()
        for info in opened.infolist():
            needed += info.file_size
            # deflate packs at most 1,032 times
            if info.file_size > 1100 * info.compress_size + 1000:
                raise WrongFileError(
                    f"is damaged: {info.filename} claims {as_size(info.file_size)}"
                )
        if available is not None and 2 * needed > available:  # what is read is then used
            raise WrongFileError(
                f"does not fit into half of the memory: it needs {as_size(needed)}, and "
                f"{as_size(available)} are available"
            )

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays."""
        return [name.removesuffix(".npy") for name in self.names if name.endswith(".npy")]

    def header(self, name: str) -> dict[str, Any]:
        """The header, an object of JSON."""
        info = self._opened.getinfo(name)
        if is_bomb(info.file_size, info.compress_size):
            raise WrongFileError(
                f"is damaged or forged: its header unpacks from {as_size(info.compress_size)} to "
                f"{as_size(info.file_size)}, more than {TIMES} times as much"
            )
        try:
            header = json.loads(self._opened.read(info))
        except (ValueError, RecursionError) as error:
            raise WrongFileError(f"has a damaged header: {error}") from None
        if not isinstance(header, dict):
            raise WrongFileError("has a damaged header: it is not an object")
        return header

    def array(self, name: str) -> NDArray[Any]:
        """An array, or what is wrong with it."""
        try:
            info = self._opened.getinfo(f"{name}.npy")
        except KeyError:
            raise WrongFileError(f"has no array {name!r}") from None
        try:
            with self._opened.open(info) as member:  # is it as large as it claims?
                version = np.lib.format.read_magic(member)
                if version not in HEADERS:
                    raise ValueError(f"its format version is {version}")
                shape, _, dtype = HEADERS[version](member)
                if dtype.hasobject or dtype.names is not None:
                    raise ValueError("it holds objects, not numbers or text")
                claimed, held = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
                if min(shape, default=0) < 0 or claimed != held:
                    raise ValueError(f"it claims {as_size(claimed)}, and {as_size(held)} are there")
            with self._opened.open(info) as member:
                return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
        except Exception as error:
            raise WrongFileError(f"has a damaged array {name!r}: {error}") from None


# Files of NumPy and SciPy

Arrays = dict[str, NDArray[Any]]


def read_npz(content: bytes) -> Arrays:
    """The arrays of a file; none of them with objects in it."""
    with open_archive(io.BytesIO(content)) as archive:
        return {name: archive.array(name) for name in archive.arrays}


def sparse_matrix(arrays: Arrays) -> Any:
    """The matrix that `scipy.sparse.save_npz` has written, or what is wrong with it.

    SciPy believes what such a file says, until it is asked to check it.
    """
    from scipy import sparse

    shape, data = _numbers(arrays, "shape", "iu").tolist(), _numbers(arrays, "data", "biuf")
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"the shape of a sparse matrix must be two numbers, got {shape}")
    size = "{} x {}".format(*shape)
    check_memory(64 * sum(shape), f"a sparse matrix of {size}: its names")  # some 64 bytes each
    most = max(1_000_000, 100 * len(data))  # more are nearly all empty
    if sum(shape) > most:
        raise ValueError(
            f"a sparse matrix of {size} with {len(data)} numbers is nearly empty, and may have "
            f"{most} rows and columns: drop the empty ones"
        )
    kind = arrays["format"].item() if arrays["format"].size == 1 else arrays["format"].tolist()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc", "coo"):
        raise ValueError(f"a sparse matrix must be csr, csc or coo, got {kind!r}: use .tocsr()")
    names = ("row", "col") if kind == "coo" else ("indices", "indptr")
    places = [_numbers(arrays, name, "iu").astype(np.int64) for name in names]
    make = getattr(sparse, f"{kind}_array")
    try:
        matrix = make((data, tuple(places)) if kind == "coo" else (data, *places), shape=shape)
        if kind != "coo":
            matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"this is a sparse matrix that is damaged: {error}") from None
    return matrix


def _numbers(arrays: Arrays, name: str, kinds: str) -> NDArray[Any]:
    if name not in arrays or arrays[name].ndim != 1:
        raise ValueError(f"{name!r} of a sparse matrix is missing, or has not one axis")
    if arrays[name].dtype.kind not in kinds:
        wanted = "whole numbers" if kinds == "iu" else "numbers"
        raise TypeError(f"{name!r} of a sparse matrix must be {wanted}, got {arrays[name].dtype}")
    return arrays[name]
