"""How well a fit recommends, and how to make it again."""

from .check import CalibrationCheck, check
from .evaluate import evaluate
from .figures import Calibration, Evaluated, Evaluation, Figure, Scores

__all__ = [
    "Calibration",
    "CalibrationCheck",
    "Evaluated",
    "Evaluation",
    "Figure",
    "Scores",
    "check",
    "evaluate",
]
