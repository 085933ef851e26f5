"""Which law is exact for which data: (kind of data, distance) to the population of a fit."""

from typing import Any

from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .clicks import ClickPopulation
from .population import Population, check_informative
from .rankings import RankingPopulation
from .shards import ShardedClicks, shard_clicks

EXACT: dict[tuple[str, str], Any] = {
    ("rankings", "footrule"): RankingPopulation,
    ("clicks", "footrule"): ClickPopulation,
}
ON_WORKERS: dict[str, Any] = {"clicks": shard_clicks}


def make_population(
    prefs: Preferences, executor: Executor | None, distance: str = "footrule"
) -> Population:
    """The users of a fit, here or on workers."""
    check_preferences(prefs)
    if isinstance(prefs, ShardedClicks):
        return prefs.population
    check_informative(prefs.is_informative)
    if (prefs.kind, distance) not in EXACT:
        known = ", ".join(repr(name) for kind, name in EXACT if kind == prefs.kind)
        raise ValueError(f"distance={distance!r} is not built for {prefs.kind}: use one of {known}")
    if not is_remote(executor):
        population: Population = EXACT[prefs.kind, distance](prefs, executor)
        return population
    if prefs.kind not in ON_WORKERS:
        known = ", ".join(ON_WORKERS)
        raise TypeError(f"Dask workers run fits of {known}, got {prefs.kind}: leave executor out")
    shared: Population = ON_WORKERS[prefs.kind](prefs, executor)
    return shared
