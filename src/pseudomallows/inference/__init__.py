"""From preferences to a posterior."""

from .choose_clusters import ClusterCurve, ClustersWarning, choose_clusters
from .choose_distance import DistanceScores, choose_distance
from .fit import fit
from .personal.item_scores import scores_from
from .update import update
from .visit_order_search import Search, search

__all__ = [
    "ClusterCurve",
    "ClustersWarning",
    "DistanceScores",
    "Search",
    "choose_clusters",
    "choose_distance",
    "fit",
    "scores_from",
    "search",
    "update",
]
