"""What is known about the users, checked once, then trusted."""

from .blocks import Clicks, Rankings, SizeTable, check_clicks
from .checks import MAX_WEIGHT, check_known, check_weights, rows_of_names
from .mixed import KINDS, Mixed
from .pairs import Pairs
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

__all__ = [
    "KINDS",
    "MAX_WEIGHT",
    "AbsentItemsWarning",
    "Clicks",
    "ColumnWarning",
    "DroppedRowsWarning",
    "IgnoredColumnWarning",
    "Mixed",
    "Pairs",
    "Preferences",
    "Rankings",
    "SizeTable",
    "ZeroBasedWarning",
    "check_clicks",
    "check_known",
    "check_preferences",
    "check_weights",
    "rows_of_names",
    "rows_of_users",
]
