"""Figures: `pm.plots.heat`, `pm.plots.intervals` and others; see `pseudomallows.show.plots`."""

from .show.plots import (
    certainty,
    distances,
    elbow,
    heat,
    intervals,
    pairs,
    rank_histograms,
    reliability,
    shares,
    trace,
)

__all__ = [
    "certainty",
    "distances",
    "elbow",
    "heat",
    "intervals",
    "pairs",
    "rank_histograms",
    "reliability",
    "shares",
    "trace",
]
