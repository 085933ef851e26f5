"""stub"""

from typing import Any

Fit = Any
