"""From preferences to a posterior."""

from ..posterior.diagnostics import ClustersWarning
from .choose_clusters import ClusterCurve, choose_clusters
from .choose_distance import DistanceScores, choose_distance
from .fit import fit
from .update import update

__all__ = [
    "ClusterCurve",
    "ClustersWarning",
    "DistanceScores",
    "choose_clusters",
    "choose_distance",
    "fit",
    "update",
]
