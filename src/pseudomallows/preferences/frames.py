"""Tables as columns, as rows, as data frames. This module alone imports pandas."""

from abc import ABC, abstractmethod
from typing import Any


class Tabular(ABC):
    """What can be had as columns, as rows, or as a data frame."""

    @abstractmethod
    def to_columns(self, digits: int | None = None) -> dict[str, Any]:
        """Columns by their names; numbers have so many `digits`, default all."""

    def to_rows(self) -> list[dict[str, Any]]:
        """The same as one dict a row."""
        return rows_of(self.to_columns())

    def to_frame(self) -> Any:
        """The same as a pandas frame."""
        return make_frame(self.to_columns())


def rows_of(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """One dict a row, of columns.

    >>> rows_of({"item": ["tea", "rum"], "rank": [1, 2]})
    [{'item': 'tea', 'rank': 1}, {'item': 'rum', 'rank': 2}]
    """
    lists = (list(each.tolist() if hasattr(each, "tolist") else each) for each in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def make_frame(columns: dict[str, Any]) -> Any:
    """A pandas frame of columns."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:  # pragma: no cover
        raise ModuleNotFoundError(
            "data frames need pandas: pip install 'pseudomallows[frames]'", name=error.name
        ) from None
    return pd.DataFrame(columns)
