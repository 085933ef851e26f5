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

__all__ = ["Clicks", "ColumnWarning", "DroppedRowsWarning", "IgnoredColumnWarning", "KINDS", "Preferences", "Rankings", "ZeroBasedWarning"]
