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

    shape = _whole(arrays, "shape")
    if shape.shape != (2,) or shape.min() < 0:
        raise ValueError(f"the shape of a sparse matrix must be two numbers, got {shape.tolist()}")
    n_rows, n_columns = (int(length) for length in shape)
    available = available_memory()
    if available is not None and 64 * (n_rows + n_columns) > available:  # 64 bytes for each name
        raise ValueError(
            f"a sparse matrix of {n_rows} x {n_columns} does not fit into memory "
            f"({as_size(available)} are available)"
        )
    most = max(1_000_000, 100 * len(_column(arrays, "data")))  # more are nearly all empty
    if n_rows + n_columns > most:
        raise ValueError(
            f"a sparse matrix of {n_rows} x {n_columns} with {len(arrays['data'])} numbers is "
            f"nearly empty, and may have {most} rows and columns: drop the empty ones"
        )
    if arrays["format"].size != 1:
        raise ValueError(
            f"'format' of a sparse matrix must be one word, such as csr, got "
            f"{arrays['format'].size} values"
        )
    kind = arrays["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if kind == "csr":
        rows, columns = _compressed(arrays, n_rows)
    elif kind == "csc":
        columns, rows = _compressed(arrays, n_columns)
    elif kind == "coo":
        rows, columns = _whole(arrays, "row"), _whole(arrays, "col")
    else:
        raise ValueError(f"a sparse matrix must be csr, csc or coo, got {kind!r}: use .tocsr()")
    data = _column(arrays, "data")[: len(rows)]
    if not len(rows) == len(columns) == len(data):
        raise ValueError(
            f"a sparse matrix must have as many rows as columns and numbers, got {len(rows)}, "
            f"{len(columns)} and {len(data)}"
        )
    for name, indices, length in (("row", rows, n_rows), ("column", columns, n_columns)):
        if len(indices) and not 0 <= indices.min() <= indices.max() < length:
            wrong = indices[(indices < 0) | (indices >= length)][0]
            raise ValueError(f"{name} {wrong} of a sparse matrix is not in 0..{length - 1}")
    return coo_array((data, (rows, columns)), shape=(n_rows, n_columns))


def _compressed(arrays: Arrays, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of a matrix by rows (csr); of one by columns, the other way round."""
    starts, columns, n_numbers = (
        _whole(arrays, "indptr"),
        _whole(arrays, "indices"),
        len(_column(arrays, "data")),
    )
    sizes = np.diff(starts)
    if len(starts) != n_rows + 1 or starts[0] != 0 or (sizes < 0).any():
        raise ValueError(
            f"indptr of a sparse matrix must be {n_rows + 1} numbers that rise from 0, got "
            f"{len(starts)}: {starts[:5].tolist()}"
        )
    if n_numbers != len(columns):
        raise ValueError(
            f"a sparse matrix must have as many indices as numbers, got {len(columns)} and "
            f"{n_numbers}"
        )
    if starts[-1] > len(columns):
        raise ValueError(
            f"indptr of a sparse matrix ends at {starts[-1]}, and there are {len(columns)} indices"
        )
    return np.repeat(np.arange(n_rows), sizes), columns[: starts[-1]]


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
