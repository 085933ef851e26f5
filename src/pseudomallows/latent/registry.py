"""The users of a fit, by the kind of data and the distance: by an exact law where there is one."""

from typing import Any

from .. import distances
from ..distances import Distance
from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .bucket_orders import BucketPopulation, has_buckets_only
from .clicks import ClickPopulation
from .full_rankings import FullPopulation
from .kept_rankings import HammingPopulation, KeptPopulation
from .population import Population, check_informative
from .rankings import RankingPopulation
from .shards import ShardedClicks, shard_clicks

EXACT: dict[tuple[str, str], Any] = {
    ("rankings", "footrule"): RankingPopulation,
    ("clicks", "footrule"): ClickPopulation,
}
ON_WORKERS: dict[tuple[str, str], Any] = {("clicks", "footrule"): shard_clicks}


def make_population(
    prefs: Preferences, executor: Executor | None, distance: str = "footrule"
) -> Population:
    """The users of a fit, here or on workers."""
    check_preferences(prefs)
    kind = distances.get(distance)
    if isinstance(prefs, ShardedClicks):
        return prefs.population
    check_informative(prefs.is_informative)
    if is_remote(executor):
        if (prefs.kind, kind.name) not in ON_WORKERS:
            known = ", ".join(f"{data} by {name}" for data, name in ON_WORKERS)
            raise TypeError(
                f"Dask workers run fits of {known}, got {prefs.kind} by {kind.name}: "
                "leave executor out"
            )
        shared: Population = ON_WORKERS[prefs.kind, kind.name](prefs, executor)
        return shared
    return _local(prefs, executor, kind)


def _local(prefs: Any, executor: Executor | None, distance: Distance) -> Population:
    """Users at hand; where no exact law is known of users known in part, by exchanges."""
    if prefs.is_full:
        return FullPopulation(prefs, executor, distance=distance)
    if (prefs.kind, distance.name) in EXACT:
        law: Population = EXACT[prefs.kind, distance.name](prefs, executor)
        return law
    if distance.name == "hamming":
        return HammingPopulation(prefs, executor, distance=distance)
    if distance.name == "kendall" and prefs.kind == "rankings" and has_buckets_only(prefs.rankings):
        return BucketPopulation(prefs, executor)
    return KeptPopulation(prefs, executor, distance=distance)
