"""What is known of the users."""

from .preferences import (
    KINDS,
    Clicks,
    ColumnWarning,
    DroppedRowsWarning,
    IgnoredColumnWarning,
    Preferences,
    Rankings,
    ZeroBasedWarning,
)

__all__ = [
    "KINDS",
    "Clicks",
    "ColumnWarning",
    "DroppedRowsWarning",
    "IgnoredColumnWarning",
    "Preferences",
    "Rankings",
    "ZeroBasedWarning",
]
