"""Which law is exact for which data: (kind of data, distance) to the population of a fit.

Full rankings need none.
"""

from typing import Any

from .. import distances
from ..distances import Distance
from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .clicks import ClickPopulation
from .full_rankings import FullPopulation
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
    kind = distances.get(distance)
    if isinstance(prefs, ShardedClicks):
        return prefs.population
    check_informative(prefs.is_informative)
    if (prefs.kind, kind.name) not in EXACT:
        return FullPopulation(check_full(prefs, kind), executor, distance=kind)
    if is_remote(executor) and prefs.kind in ON_WORKERS:
        shared: Population = ON_WORKERS[prefs.kind](prefs, executor)
        return shared
    if is_remote(executor):
        known = ", ".join(ON_WORKERS)
        raise TypeError(f"Dask workers run fits of {known}, got {prefs.kind}: leave executor out")
    law: Any = FullPopulation if prefs.is_full else EXACT[prefs.kind, kind.name]
    population: Population = law(prefs, executor)
    return population


def check_full(prefs: Any, distance: Distance) -> Any:
    """Refuse users known in part, where no exact law is known of them."""
    if prefs.kind != "rankings" or not prefs.is_full:
        known = ", ".join(repr(name) for kind, name in EXACT if kind == prefs.kind)
        raise ValueError(
            f"distance={distance.name!r} takes full rankings, got {prefs.shape_words}: use one of "
            f"{known}"
        )
    return prefs
