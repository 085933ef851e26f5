"""The paper: "Pseudo-Mallows for Efficient Probabilistic Preference Learning"."""

from .pseudo import PseudoMallows
from .search import Search, marginal_divergence, rank_divergence, search
from .visit_orders import draw_v_ranking, v_rankings

__all__ = [
    "PseudoMallows",
    "Search",
    "draw_v_ranking",
    "marginal_divergence",
    "rank_divergence",
    "search",
    "v_rankings",
]
