"""Learn what people prefer, and how sure you can be of it, from rankings, clicks and
comparisons.

The names here are what most people need. Each room has more: `pm.data`, `pm.distances`,
`pm.recommendations`, `pm.sampling`, `pm.evaluation`, `pm.diagnostics`; and `pm.paper` holds all
of the paper.
"""

import importlib
import sys
from typing import Any

from . import _start  # noqa: F401

# isort: split
from . import distances, scores
from ._version import __version__
from .data import Clicks, Mixed, Pairs, Preferences, Rankings, datasets
from .data.datasets import simulate_clicks, simulate_rankings
from .data.read import read
from .distances import distance_between as distance
from .distances.mallows import Mallows, maximum_likelihood_alpha
from .engines.executors import Threads
from .evaluation.check import check
from .evaluation.evaluate import evaluate
from .laws.registry import click_log_likelihood, log_likelihood
from .paper.pseudo import PseudoMallows
from .paper.search import marginal_divergence
from .paper.visit_orders import draw_v_ranking, v_rankings
from .personal.personal_fit import PersonalFit
from .personal.save_personal import load
from .posterior import diagnostics
from .posterior.diagnostics import ConvergenceWarning
from .posterior.posterior import Posterior
from .rankings import footrule
from .recommendations.explain import explain
from .recommendations.next_pairs import next_pairs
from .recommendations.recommend import recommend
from .recommendations.similar import similar_items, similar_users
from .sampling.alpha import estimate_alpha
from .sampling.choose_clusters import choose_clusters
from .sampling.choose_distance import choose_distance
from .sampling.fit import fit
from .show.report import report

for _name, _module in (("datasets", datasets), ("diagnostics", diagnostics)):
    sys.modules[f"{__name__}.{_name}"] = (
        _module  # so that `from pseudomallows.datasets import` works
    )

__all__ = [
    "Clicks",
    "ConvergenceWarning",
    "DaskExecutor",
    "Mallows",
    "Mixed",
    "Pairs",
    "PersonalFit",
    "Posterior",
    "Preferences",
    "PseudoMallows",
    "Rankings",
    "Threads",
    "__version__",
    "check",
    "choose_clusters",
    "choose_distance",
    "click_log_likelihood",
    "datasets",
    "diagnostics",
    "distance",
    "distances",
    "draw_v_ranking",
    "estimate_alpha",
    "evaluate",
    "explain",
    "fit",
    "footrule",
    "load",
    "log_likelihood",
    "marginal_divergence",
    "maximum_likelihood_alpha",
    "next_pairs",
    "plots",
    "read",
    "recommend",
    "report",
    "scores",
    "similar_items",
    "similar_users",
    "simulate_clicks",
    "simulate_rankings",
    "v_rankings",
]


def __dir__() -> list[str]:
    """The public names, for Tab."""
    return [*__all__, "paper"]


def __getattr__(name: str) -> Any:
    """Import `plots` and `DaskExecutor`, and their libraries, when they are first asked for."""
    if name == "plots":
        return importlib.import_module(".plots", __name__)
    if name == "DaskExecutor":
        return importlib.import_module(".engines.dask", __name__).DaskExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
