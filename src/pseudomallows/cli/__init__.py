"""The command `pseudomallows`."""

from .parser import main

__all__ = ["main"]
