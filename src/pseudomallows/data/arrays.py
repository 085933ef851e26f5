"""Files of NumPy arrays and of sparse matrices (.npz), checked before they are used."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import as_size, available_memory
from .archive import open_archive

Arrays = dict[str, NDArray[Any]]


def read_npz(content: bytes) -> Arrays:
    """The arrays of a file; none of them with objects in it."""
    with open_archive(io.BytesIO(content)) as archive:
        return {name: archive.array(name) for name in archive.arrays}


def sparse_matrix(arrays: Arrays) -> Any:
    """The matrix that `scipy.sparse.save_npz` has written, or what is wrong with it.

    SciPy itself believes what such a file says, and then reads and writes where nothing is.
    """
    from scipy.sparse import coo_array

    shape, data = _whole(arrays, "shape").tolist(), _column(arrays, "data")
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"the shape of a sparse matrix must be two numbers, got {shape}")
    size, available = "{} x {}".format(*shape), available_memory()
    if available is not None and 64 * sum(shape) > available:  # 64 bytes for each name
        raise ValueError(
            f"a sparse matrix of {size} does not fit into memory ({as_size(available)} are "
            "available)"
        )
    most = max(1_000_000, 100 * len(data))  # more are nearly all empty
    if sum(shape) > most:
        raise ValueError(
            f"a sparse matrix of {size} with {len(data)} numbers is nearly empty, and may have "
            f"{most} rows and columns: drop the empty ones"
        )
    kind = arrays["format"].item() if arrays["format"].size == 1 else arrays["format"].tolist()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind == "coo":
        places = [_whole(arrays, "row"), _whole(arrays, "col")]
    elif kind == "csr":
        places = _expanded(arrays, shape[0])
    elif kind == "csc":
        places = _expanded(arrays, shape[1])[::-1]
    else:
        raise ValueError(f"a sparse matrix must be csr, csc or coo, got {kind!r}: use .tocsr()")
    data = data[: len(places[0])]
    if not len(places[0]) == len(places[1]) == len(data):
        raise ValueError(
            f"a sparse matrix must have as many rows as columns and numbers, got "
            f"{len(places[0])}, {len(places[1])} and {len(data)}"
        )
    for name, indices, length in zip(("row", "column"), places, shape, strict=True):
        wrong = indices[(indices < 0) | (indices >= length)]
        if len(wrong):
            raise ValueError(f"{name} {wrong[0]} of a sparse matrix is not in 0..{length - 1}")
    return coo_array((data, tuple(places)), shape=tuple(shape))


def _expanded(arrays: Arrays, n_rows: int) -> list[NDArray[np.int64]]:
    """Rows and columns of a matrix by rows (csr); of one by columns, the other way round."""
    starts, columns = _whole(arrays, "indptr"), _whole(arrays, "indices")
    sizes = np.diff(starts)
    is_sound = len(starts) == n_rows + 1 and starts[0] == 0 and bool((sizes >= 0).all())
    if not (is_sound and starts[-1] <= len(columns)):
        raise ValueError(
            f"indptr of a sparse matrix must be {n_rows + 1} numbers that rise from 0 to "
            f"{len(columns)}, the number of indices, got {len(starts)}: {starts[:5].tolist()}"
        )
    if len(columns) != len(arrays["data"]):
        raise ValueError(
            f"a sparse matrix must have as many indices as numbers, got {len(columns)} and "
            f"{len(arrays['data'])}"
        )
    return [np.repeat(np.arange(n_rows), sizes), columns[: starts[-1]]]


def _whole(arrays: Arrays, name: str) -> NDArray[np.int64]:
    numbers = _column(arrays, name)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"{name!r} of a sparse matrix must be whole numbers, got {numbers.dtype}")
    return numbers.astype(np.int64)


def _column(arrays: Arrays, name: str) -> NDArray[Any]:
    if name not in arrays or arrays[name].ndim != 1:
        raise ValueError(f"{name!r} of a sparse matrix is missing, or has not one axis")
    if arrays[name].dtype.kind not in "biuf":
        raise TypeError(f"{name!r} of a sparse matrix must be numbers, got {arrays[name].dtype}")
    return arrays[name]
