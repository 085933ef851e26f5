"""Tables as columns, as rows, as data frames of any library."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..markup import N_PRINTED, plain

# Libraries whose frames are made of those of another: this other, the module, and what makes one.
OF_OTHERS = {
    "modin": ("pandas", "modin.pandas", "DataFrame"),
    "duckdb": ("pyarrow", "duckdb", "from_arrow"),
    "datasets": ("pyarrow", "datasets", "Dataset"),
}
BACKENDS = ("pandas", "polars", "pyarrow", *OF_OTHERS)  # libraries whose frames can be made


@dataclass(frozen=True, eq=False, kw_only=True)
class Tabular(ABC):
    """What can be had as columns, as rows, or as a data frame.

    `backend` is the library of the frame that the data came in, if they came in one.
    """

    backend: str | None = None

    @abstractmethod
    def to_columns(self, digits: int | None = None) -> dict[str, Any]:
        """Columns by their names; numbers have so many `digits`, default all."""

    def to_rows(self) -> list[dict[str, Any]]:
        """The same as one dict a row; it prints as a table."""
        return rows_of(self.to_columns())

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n{self.to_rows()}"

    def to_frame(self, backend: str | None = None) -> Any:
        """The same as a data frame of "pandas", "polars", "pyarrow" or "modin", a relation of
        "duckdb" or a data set of "datasets" (Hugging Face); by default of the library that the
        data came in, else of pandas if it is installed, else of polars."""
        return make_frame(self.to_columns(), backend, self.backend)


class TableRows(list[dict[str, Any]]):
    """One dict a row; as text they are a table."""

    def __repr__(self) -> str:
        return plain(self[:N_PRINTED], max(len(self) - N_PRINTED, 0))


def rows_of(columns: dict[str, Any]) -> TableRows:
    """One dict a row, of columns.

    >>> rows = rows_of({"item": ["tea", "rum"], "rank": [1, 2]})
    >>> rows[0], rows
    ({'item': 'tea', 'rank': 1}, item  rank
    tea      1
    rum      2)
    """
    lists = (list(each.tolist() if hasattr(each, "tolist") else each) for each in columns.values())
    return TableRows(dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True))


def backend_of(data: Any) -> str | None:
    """The library that a data frame is of, if frames of it can be made."""
    library = type(data).__module__.partition(".")[0]
    return library if library in BACKENDS else None


def make_frame(columns: dict[str, Any], backend: str | None, usual: str | None = None) -> Any:
    """A data frame of columns, of the library `backend`; without one, of the first that is
    installed of `usual`, pandas and polars.

    >>> make_frame({"item": ["tea", "rum"], "rank": [1, 2]}, "polars").shape
    (2, 2)
    """
    if backend is None:
        backend = next(name for name in (usual, "pandas", "polars") if name and find_spec(name))
    if backend not in BACKENDS:
        names = ", ".join(map(repr, BACKENDS))
        raise ValueError(f"backend must be one of {names}, got {backend!r}")
    import narwhals as nw

    library: Any
    library, module, maker = OF_OTHERS.get(backend, (backend, "", ""))
    typed = {name: typed_column(values) for name, values in columns.items()}
    try:
        make = getattr(import_module(module), maker) if module else None
        made = nw.from_dict(typed, backend=library).to_native()
        return made if make is None else make(made)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"frames of {backend} need {error.name}: pip install {backend}", name=error.name
        ) from None


def typed_column(values: Any) -> Any:
    """A column as every library takes it: an array of one type, or a list of values of one type;
    names of several types become text.

    >>> typed_column(["tea", None, 7]), typed_column(np.array([2, 1], dtype=object))
    (['tea', None, '7'], [2, 1])
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    types = set(map(type, listed)) - {type(None)}
    if types == {int, float}:
        return [None if value is None else float(value) for value in listed]
    if len(types) <= 1 and tuple not in types:
        return listed
    return [None if value is None else str(value) for value in listed]
