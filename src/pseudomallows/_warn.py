"""Warnings that point to the line of the caller, however deep in the package they arise."""

import os
import sys
import warnings

ROOT = os.path.dirname(__file__) + os.sep


def warn(warning: Warning) -> None:
    """Warn, on behalf of the first caller outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ROOT):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
