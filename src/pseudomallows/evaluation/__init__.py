"""How well a fit recommends, and how to make it again."""

from .evaluate import evaluate
from .result import Calibration, Evaluation, Figure, Judged, Scores

__all__ = ["Calibration", "Evaluation", "Figure", "Judged", "Scores", "evaluate"]
