"""How well a fit recommends, and how to make it again."""

from .check import Check, check
from .evaluate import evaluate
from .result import Calibration, Evaluation

__all__ = ["Calibration", "Check", "Evaluation", "check", "evaluate"]
