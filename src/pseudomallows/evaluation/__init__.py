"""How well a fit recommends, and how to make it again."""

from .evaluate import Calibration, Evaluation, evaluate

__all__ = ["Calibration", "Evaluation", "evaluate"]
