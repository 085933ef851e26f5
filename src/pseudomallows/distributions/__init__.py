"""Distributions of rankings."""

from .mallows import Mallows, maximum_likelihood_alpha

__all__ = ["Mallows", "maximum_likelihood_alpha"]
