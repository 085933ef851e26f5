"""Which law is exact for which data: (kind of data, distance) to the population of a fit, which
says how likely the data are.

Full rankings need none. Users known in part without an exact law have latent rankings that a chain
keeps, and moves by exchanges.
"""

from typing import Any

from .. import distances
from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .augmented.error_rates import Errors
from .augmented.latent_rankings import AugmentedPopulation, HammingPopulation
from .augmented.votes import VotePopulation
from .bucket_orders import BucketPopulation
from .click_laws import ClickLaw
from .click_population import ClickPopulation
from .kendall_clicks import KendallClicks, KendallLaw, KendallShards
from .matched.matched_tables import MatchedTables
from .population import LocalPopulation, Population, check_informative
from .ranking_population import RankingPopulation
from .shards import ShardedClicks, ShardedPopulation, shard_clicks

EXACT: dict[tuple[str, str], type[LocalPopulation]] = {
    ("rankings", "footrule"): RankingPopulation,
    ("rankings", "kendall"): BucketPopulation,
    ("rankings", "hamming"): HammingPopulation,
    ("clicks", "footrule"): ClickPopulation,
    ("clicks", "kendall"): KendallClicks,
    ("pairs", "kendall"): VotePopulation,
}
SHARDED: dict[tuple[str, str], type[ShardedPopulation]] = {  # on workers
    ("clicks", "footrule"): ShardedPopulation,
    ("clicks", "kendall"): KendallShards,
}
CLICK_LAWS: dict[str, Any] = {"footrule": MatchedTables, "kendall": KendallLaw}


def exact_of(prefs: Preferences, distance: str) -> type[LocalPopulation] | None:
    """The population whose likelihood of these data is exact, if there is one."""
    found = EXACT.get((prefs.kind, distance))
    return found if found is not None and found.holds(prefs) else None


def make_population(
    prefs: Preferences,
    executor: Executor | None,
    distance: str = "footrule",
    errors: Errors | None = None,
) -> Population:
    """The users of a fit, here or on workers; `errors` says how often comparisons are wrong."""
    check_preferences(prefs)
    kind = distances.get(distance)
    data: Any = prefs
    if isinstance(data, ShardedClicks):
        return _sharded(data, kind.name).of(data.population)
    check_informative(prefs.is_informative)
    if is_remote(executor):
        return _sharded(prefs, kind.name).of(shard_clicks(data, executor))
    if prefs.is_full:
        return BucketPopulation(data, executor, distance=kind)
    exact: Any = exact_of(prefs, kind.name)
    if exact is None:
        return AugmentedPopulation(prefs, executor, distance=kind, errors=errors)
    population: Population = exact(prefs, executor)
    return population


def _sharded(prefs: Preferences, distance: str) -> type[ShardedPopulation]:
    """The users of such data on workers."""
    if (prefs.kind, distance) not in SHARDED:
        known = ", ".join(f"{kind} by {name}" for kind, name in SHARDED)
        raise TypeError(
            f"Dask workers run fits of {known}, got {prefs.kind} by {distance}: leave executor out"
        )
    return SHARDED[prefs.kind, distance]


def make_click_law(population: Population, distance: str) -> ClickLaw:
    """The law of clicks that adds up over the clicked items, on which chains run."""
    sizes, executor = population.click_sizes, population.executor
    law: ClickLaw = CLICK_LAWS[distance](population.n_items, sizes, executor)
    return law
