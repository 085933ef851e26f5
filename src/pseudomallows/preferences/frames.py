"""Data frames. This module alone imports pandas."""

from typing import Any


def make_frame(columns: dict[str, Any]) -> Any:
    """A pandas frame of columns."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:  # pragma: no cover
        raise ModuleNotFoundError(
            "data frames need pandas: pip install 'pseudomallows[frames]'", name=error.name
        ) from None
    return pd.DataFrame(columns)
