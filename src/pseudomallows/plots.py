"""Figures: `pm.plots.heat`, `pm.plots.intervals` and others; see `pseudomallows.show.plots`."""

from .show.plots import (
    certainty,
    distances,
    elbow,
    heat,
    intervals,
    memberships,
    pairs,
    rank_histograms,
    reliability,
    save,
    shares,
    top_k,
    trace,
    traces,
)

__all__ = [
    "certainty",
    "distances",
    "elbow",
    "heat",
    "intervals",
    "memberships",
    "pairs",
    "rank_histograms",
    "reliability",
    "save",
    "shares",
    "top_k",
    "trace",
    "traces",
]
