"""How well a fit recommends, and how to make it again."""

from .check import CalibrationCheck, check
from .evaluate import evaluate
from .figures import Calibration, Evaluation, Figure, Judged, Scores

__all__ = [
    "Calibration",
    "CalibrationCheck",
    "Evaluation",
    "Figure",
    "Judged",
    "Scores",
    "check",
    "evaluate",
]
