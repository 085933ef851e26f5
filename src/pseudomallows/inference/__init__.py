"""From preferences to a posterior."""

from .choose_clusters import ClusterCurve, ClustersWarning, choose_clusters
from .choose_distance import DistanceScores, choose_distance
from .fit import fit
from .personal.item_scores import scores_from
from .update import update

__all__ = [
    "ClusterCurve",
    "ClustersWarning",
    "DistanceScores",
    "choose_clusters",
    "choose_distance",
    "fit",
    "scores_from",
    "update",
]
