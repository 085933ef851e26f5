"""All of the paper: Liu, Vitelli, Mannino, Frigessi and Scheel, "Pseudo-Mallows for Efficient
Probabilistic Preference Learning", ICML 2026. What we read differently: docs/paper/errata.md.

| In the paper | Here | Figure, and its script in `experiments/` |
|---|---|---|
| 2.1, equations 2 to 5: the Mallows model | `pm.Mallows`; `fit(method="mcmc")` | |
| 2.2, equations 6 to 10, Algorithm 1: Pseudo-Mallows given an order | `pseudo.PseudoMallows`: `draw(..., visit_order=)`, `log_probability` | |
| 2.3, equations 11 to 13: ELBO | `PseudoMallows.elbo`, `evidence` | |
| 2.4: V-rankings and the V-set | `visit_orders.v_rankings`, `draw_v_ranking` | 1, `medians` |
| 2.4, the conjecture, to exponential order | `conjecture.order_rate`, `best_order`, `count_consistent_orders`, `mean_costs` | `conjecture` |
| 2.4.2, equation 16: marginal divergence | `search.marginal_divergence` | 2, `best_orders` |
| 2.4.2, equation 17, Algorithm 2: the search | `search.search` | 3 and 4, `iterative_search` |
| 2.4.3, equation 18, Algorithm 3: all V-rankings | `PseudoMallows.draw`; `fit(method="pseudo")` on rankings | |
| 2.5: sigma, noise on the V-ranking | `PseudoMallows(sigma=)`, `fit(sigma=)` | 5, `sigma_heat`; 6, `best_sigma` |
| 2.6, 3.5, equation 26: alpha by similarity | `similarity`; `pm.estimate_alpha` | 10, `case_study` |
| 3.1, equations 19 and 20: exact latent rankings | `fit(method="mcmc", keep_latent=True)` | |
| 3.2, equations 21 to 24, Algorithm 4: the ranking of a user | `clicks.PseudoLaw` (`kernels.groups`) | |
| 3.3: orders for users | `visit_orders.ORDERS`, `fit(order=)` | 7, `user_orders` |
| 3.2, Algorithm 5: the chain for clicks | `clicks.PseudoChain`; `fit(method="pseudo")` on clicks | |
| 3.4, equation 25: recommendations | `clicks.count_next`; `pm.recommend` by exact sums | |
| 4.1: accuracy from full rankings | | 8, `accuracy_rankings` |
| 4.2: accuracy from clicks | | 9, `accuracy_clicks` |
| 4.3: the case study | `fit(method="pseudo", n_clusters=)`; `pm.evaluate` | tables 1 and 2, 10 and 11, `case_study` |
| 4.3: the best answer in a given time | `anytime.anytime`; `pm.plots.anytime` | |
| beyond the paper: balanced weights | `balanced.balance_weights`; `fit(method="balanced")` | `scaling` |
| alpha summed out, and the evidence | `summed_alpha`; `fit(method="balanced")` on full rankings | |
"""

# ruff: noqa: E501  (the table above)

from ..scores import rank_divergence
from .anytime import Anytime, anytime
from .clicks import count_next
from .conjecture import Rate, best_order, count_consistent_orders, mean_costs, order_rate
from .pseudo import PseudoMallows
from .search import Search, marginal_divergence, search
from .visit_orders import draw_v_ranking, v_rankings

__all__ = [
    "Anytime",
    "PseudoMallows",
    "Rate",
    "Search",
    "anytime",
    "best_order",
    "count_consistent_orders",
    "count_next",
    "draw_v_ranking",
    "marginal_divergence",
    "mean_costs",
    "order_rate",
    "rank_divergence",
    "search",
    "v_rankings",
]
