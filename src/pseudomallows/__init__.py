"""Learn what people prefer, and how sure one can be of it, from rankings and clicks."""

import importlib
from typing import Any

from . import datasets, diagnostics, scores
from ._version import __version__
from .alpha import estimate_alpha
from .choose import ClusterCurve, choose_clusters
from .clicks import click_log_likelihood
from .datasets import simulate_clicks, simulate_rankings
from .diagnostics import (
    AgreementWarning,
    AlphaWarning,
    BalanceWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
)
from .evaluate import Evaluation, evaluate
from .executors import ClusterError, Threads
from .files import load
from .fit import fit
from .latent import log_likelihood
from .mallows import Mallows, maximum_likelihood_alpha
from .parts import Parts, split
from .personal import scores_from
from .posterior import Posterior
from .preferences import (
    Clicks,
    ColumnWarning,
    DroppedRowsWarning,
    IgnoredColumnWarning,
    Preferences,
    Rankings,
    ZeroBasedWarning,
)
from .pseudo import PseudoMallows, draw_v_ranking, v_rankings
from .rankings import footrule
from .read import read
from .recommend import Recommendations, memberships, recommend, user_intervals
from .report import report
from .scores import marginal_divergence
from .search import Search, search
from .stream import recommend_to

__all__ = [
    "AgreementWarning",
    "AlphaWarning",
    "BalanceWarning",
    "Clicks",
    "ClusterCurve",
    "ClusterError",
    "ColumnWarning",
    "ConvergenceWarning",
    "DaskExecutor",
    "DroppedRowsWarning",
    "EffectiveSizeWarning",
    "Evaluation",
    "IgnoredColumnWarning",
    "Mallows",
    "Parts",
    "Posterior",
    "Preferences",
    "PseudoMallows",
    "Rankings",
    "Recommendations",
    "Search",
    "Threads",
    "ZeroBasedWarning",
    "__version__",
    "choose_clusters",
    "click_log_likelihood",
    "datasets",
    "diagnostics",
    "draw_v_ranking",
    "estimate_alpha",
    "evaluate",
    "fit",
    "footrule",
    "load",
    "log_likelihood",
    "marginal_divergence",
    "maximum_likelihood_alpha",
    "memberships",
    "plots",
    "read",
    "recommend",
    "recommend_to",
    "report",
    "scores",
    "scores_from",
    "search",
    "simulate_clicks",
    "simulate_rankings",
    "split",
    "user_intervals",
    "v_rankings",
]


def __getattr__(name: str) -> Any:
    """Import `plots` and `DaskExecutor`, and their libraries, when they are first asked for."""
    if name == "plots":
        return importlib.import_module(".plots", __name__)
    if name == "DaskExecutor":
        return importlib.import_module(".engine", __name__).DaskExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
