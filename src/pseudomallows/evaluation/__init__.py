"""How well a fit recommends, and how to make it again."""

from .evaluate import evaluate
from .result import Calibration, Evaluation

__all__ = ["Calibration", "Evaluation", "evaluate"]
