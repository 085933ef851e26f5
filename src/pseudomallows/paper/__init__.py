"""All of the paper: Liu, Vitelli, Mannino, Frigessi and Scheel, "Pseudo-Mallows for Efficient
Probabilistic Preference Learning", ICML 2026.

docs/paper/index.md says where each section, equation, algorithm and figure is; what we read
differently is in docs/paper/errata.md.
"""

from ..scores import rank_divergence
from .clicks import count_next
from .conjecture import Rate, best_order, count_consistent_orders, mean_costs, order_rate
from .mixture_evidence import mixture_evidence
from .pseudo import PseudoMallows
from .search import Search, marginal_divergence, search
from .visit_orders import draw_v_ranking, v_rankings

__all__ = [
    "PseudoMallows",
    "Rate",
    "Search",
    "best_order",
    "count_consistent_orders",
    "count_next",
    "draw_v_ranking",
    "marginal_divergence",
    "mean_costs",
    "mixture_evidence",
    "order_rate",
    "rank_divergence",
    "search",
    "v_rankings",
]
