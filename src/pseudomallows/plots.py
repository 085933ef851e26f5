"""Figures: `pm.plots.heat`, `pm.plots.intervals` and others; see `pseudomallows.show.plots`."""

from .show.plots import (
    certainty,
    elbow,
    heat,
    intervals,
    rank_histograms,
    reliability,
    shares,
    trace,
)

__all__ = [
    "certainty",
    "elbow",
    "heat",
    "intervals",
    "rank_histograms",
    "reliability",
    "shares",
    "trace",
]
