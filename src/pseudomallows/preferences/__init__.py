"""What is known of the users, checked once, then trusted."""

from .blocks import Clicks, Rankings, SizeTable, check_clicks
from .kinds import KINDS
from .mixed import Mixed
from .pairs import Pairs
from .preferences import (
    MAX_WEIGHT,
    ColumnWarning,
    DroppedRowsWarning,
    IgnoredColumnWarning,
    Preferences,
    ZeroBasedWarning,
    check_known,
    check_preferences,
    check_weights,
    rows_of_users,
)

__all__ = [
    "KINDS",
    "MAX_WEIGHT",
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
    "rows_of_users",
]
