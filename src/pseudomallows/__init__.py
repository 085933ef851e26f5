"""Learn what people prefer, and how sure one can be of it, from rankings and clicks."""

import importlib
from typing import Any

from ._version import __version__
from .distributions import datasets, scores
from .distributions.datasets import simulate_clicks, simulate_rankings
from .distributions.mallows import Mallows, maximum_likelihood_alpha
from .distributions.pseudo import PseudoMallows, draw_v_ranking, v_rankings
from .distributions.scores import marginal_divergence
from .engines.executors import ClusterError, Threads
from .files.parquet_parts import Parts, split
from .files.read import read
from .inference.alpha import estimate_alpha
from .inference.choose_clusters import ClusterCurve, choose_clusters
from .inference.evaluate import Evaluation, evaluate
from .inference.fit import fit
from .inference.item_scores import scores_from
from .inference.search import Search, search
from .latent.likelihood import click_log_likelihood, log_likelihood
from .posteriors import diagnostics
from .posteriors.diagnostics import (
    AgreementWarning,
    AlphaWarning,
    BalanceWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
)
from .posteriors.personal import PersonalFit
from .posteriors.posterior import Posterior
from .posteriors.save import load
from .preferences.preferences import (
    Clicks,
    ColumnWarning,
    DroppedRowsWarning,
    IgnoredColumnWarning,
    Preferences,
    Rankings,
    ZeroBasedWarning,
)
from .rankings import footrule
from .recommendations.recommend import Recommendations, memberships, recommend, user_intervals
from .recommendations.to_file import recommend_to
from .show.report import report

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
    "PersonalFit",
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
        return importlib.import_module(".show.plots", __name__)
    if name == "DaskExecutor":
        return importlib.import_module(".engines.dask", __name__).DaskExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
