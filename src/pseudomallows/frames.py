"""Data frames. This module alone imports pandas."""

from typing import Any


def make_frame(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """A pandas frame of rows."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:  # pragma: no cover
        raise ModuleNotFoundError(
            "data frames need pandas: pip install 'pseudomallows[frames]'", name=error.name
        ) from None
    return pd.DataFrame(rows, columns=columns)
