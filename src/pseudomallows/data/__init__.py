"""What is known about the users: read, checked once, then trusted."""

from .blocks import Clicks, Rankings, SizeTable, check_clicks
from .checks import check_known, rows_of_names
from .mixed import KINDS, Mixed
from .pairs import Pairs
from .parquet import Parts, split
from .preferences import (
    AbsentItemsWarning,
    ColumnWarning,
    DroppedRowsWarning,
    IgnoredColumnWarning,
    Preferences,
    ZeroBasedWarning,
    check_preferences,
    rows_of_users,
)
from .read import read

__all__ = [
    "KINDS",
    "AbsentItemsWarning",
    "Clicks",
    "ColumnWarning",
    "DroppedRowsWarning",
    "IgnoredColumnWarning",
    "Mixed",
    "Pairs",
    "Parts",
    "Preferences",
    "Rankings",
    "SizeTable",
    "ZeroBasedWarning",
    "check_clicks",
    "check_known",
    "check_preferences",
    "read",
    "rows_of_names",
    "rows_of_users",
    "split",
]
