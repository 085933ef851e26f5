"""Distributions of rankings."""

from .mallows import Mallows, maximum_likelihood_alpha
from .pseudo import PseudoMallows, draw_v_ranking, v_rankings

__all__ = ["Mallows", "PseudoMallows", "draw_v_ranking", "maximum_likelihood_alpha", "v_rankings"]
