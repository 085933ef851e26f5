"""Which law is exact for which data: (kind of data, distance) to the population of a fit, and to
how likely the data are.

Full rankings need none. Users known in part without an exact law have latent rankings that a chain
keeps, and moves by exchanges.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..distances.tallies import Ranking
from ..engines.executors import Executor, is_remote
from ..kernels.click_rows import slice_clicks
from ..preferences import Preferences, check_preferences
from .bucket_orders import BucketPopulation, has_buckets_only, log_likelihoods_of_buckets
from .click_laws import ClickLaw
from .clicks import ClickPopulation, log_likelihoods_of_clicks
from .full_rankings import FullPopulation
from .kendall_clicks import KendallClicks, KendallLaw, KendallShards, kendall_likelihoods
from .kept.errors import Errors
from .kept.rankings import HammingPopulation, KeptPopulation, log_likelihoods_by_hamming
from .kept.votes import VotePopulation, log_likelihoods_of_votes
from .matched.tables import MatchedTables
from .population import Population, check_informative
from .rankings import RankingPopulation, log_likelihoods_of_rankings
from .shards import ShardedClicks, ShardedPopulation, shard_clicks


class Exact(NamedTuple):
    """What is exact of a kind of data: the population of a fit, and the log likelihoods of a slice
    of rows of the preferences, given a consensus and alpha; and for which data it is so."""

    population: Any
    log_likelihoods: Callable[[Any, slice, Ranking, float], NDArray[np.float64]]
    holds: Callable[[Any], bool] = lambda prefs: True


EXACT = {
    ("rankings", "footrule"): Exact(
        RankingPopulation,
        lambda prefs, rows, consensus, alpha: log_likelihoods_of_rankings(
            prefs.rankings[rows], consensus, alpha
        ),
    ),
    ("clicks", "footrule"): Exact(
        ClickPopulation,
        lambda prefs, rows, consensus, alpha: log_likelihoods_of_clicks(
            slice_clicks(prefs, rows), consensus, alpha
        ),
    ),
    ("clicks", "kendall"): Exact(
        KendallClicks,
        lambda prefs, rows, consensus, alpha: kendall_likelihoods(
            slice_clicks(prefs, rows), consensus, alpha
        ),
    ),
    ("rankings", "kendall"): Exact(
        BucketPopulation,
        lambda prefs, rows, consensus, alpha: log_likelihoods_of_buckets(
            prefs.rankings[rows], consensus, alpha
        ),
        lambda prefs: has_buckets_only(prefs.rankings),
    ),
    ("rankings", "hamming"): Exact(
        HammingPopulation,
        lambda prefs, rows, consensus, alpha: log_likelihoods_by_hamming(
            prefs.rankings[rows], consensus, alpha
        ),
    ),
    ("pairs", "kendall"): Exact(
        VotePopulation, log_likelihoods_of_votes, lambda prefs: bool(prefs.is_vote)
    ),
}
SHARDED: dict[tuple[str, str], type[ShardedPopulation]] = {  # on workers
    ("clicks", "footrule"): ShardedPopulation,
    ("clicks", "kendall"): KendallShards,
}
CLICK_LAWS: dict[str, Any] = {"footrule": MatchedTables, "kendall": KendallLaw}


def exact_of(prefs: Preferences, distance: str) -> Exact | None:
    """What is exact of these data, if anything is."""
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
    made_of = exact_of(prefs, kind.name)
    if prefs.is_full:
        return FullPopulation(data, executor, distance=kind)
    if made_of is None:
        return KeptPopulation(prefs, executor, distance=kind, errors=errors)
    population: Population = made_of.population(prefs, executor)
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
