"""Which law is exact for which data: (kind of data, distance) to the population of a fit.

Full rankings need none.
"""

from typing import Any

from .. import distances
from ..distances import Distance
from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .click_laws import ClickLaw
from .clicks import ClickPopulation
from .full_rankings import FullPopulation
from .kendall_clicks import KendallClicks, KendallLaw, KendallShards
from .matched.tables import MatchedTables
from .population import Population, check_informative
from .rankings import RankingPopulation
from .shards import ShardedClicks, ShardedPopulation, shard_clicks

EXACT: dict[tuple[str, str], Any] = {
    ("rankings", "footrule"): RankingPopulation,
    ("clicks", "footrule"): ClickPopulation,
    ("clicks", "kendall"): KendallClicks,
}
ON_WORKERS: dict[str, Any] = {"clicks": shard_clicks}
SHARDED: dict[str, type[ShardedPopulation]] = {
    "footrule": ShardedPopulation,
    "kendall": KendallShards,
}
CLICK_LAWS: dict[str, Any] = {"footrule": MatchedTables, "kendall": KendallLaw}


def make_population(
    prefs: Preferences, executor: Executor | None, distance: str = "footrule"
) -> Population:
    """The users of a fit, here or on workers."""
    check_preferences(prefs)
    kind = distances.get(distance)
    if isinstance(prefs, ShardedClicks):
        return _sharded(prefs.population, kind)
    check_informative(prefs.is_informative)
    if (prefs.kind, kind.name) not in EXACT:
        return FullPopulation(check_full(prefs, kind), executor, distance=kind)
    if is_remote(executor) and prefs.kind in ON_WORKERS:
        return _sharded(ON_WORKERS[prefs.kind](prefs, executor), kind)
    if is_remote(executor):
        known = ", ".join(ON_WORKERS)
        raise TypeError(f"Dask workers run fits of {known}, got {prefs.kind}: leave executor out")
    law: Any = FullPopulation if prefs.is_full else EXACT[prefs.kind, kind.name]
    population: Population = law(prefs, executor)
    return population


def _sharded(shared: ShardedPopulation, distance: Distance) -> Population:
    if distance.name not in SHARDED:
        known = ", ".join(map(repr, SHARDED))
        raise ValueError(f"distance={distance.name!r} is not for clicks: use one of {known}")
    return SHARDED[distance.name].of(shared)


def make_click_law(population: Population, distance: str) -> ClickLaw:
    """The law of clicks that adds up over the clicked items, on which chains run."""
    sizes, executor = population.click_sizes.sizes, population.executor
    law: ClickLaw = CLICK_LAWS[distance](population.n_items, sizes, executor)
    return law


def check_full(prefs: Any, distance: Distance) -> Any:
    """Refuse users known in part, where no exact law is known of them."""
    if prefs.kind != "rankings" or not prefs.is_full:
        known = ", ".join(repr(name) for kind, name in EXACT if kind == prefs.kind)
        raise ValueError(
            f"distance={distance.name!r} takes full rankings, got {prefs.shape_words}: use one of "
            f"{known}"
        )
    return prefs
