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
from .clicks import ClickPopulation, log_likelihoods_of_clicks
from .full_rankings import FullPopulation
from .kept_rankings import (
    HammingPopulation,
    KeptPopulation,
    as_rankings,
    log_likelihoods_by_hamming,
)
from .population import Population, check_informative
from .rankings import RankingPopulation, log_likelihoods_of_rankings
from .shards import ShardedClicks, shard_clicks


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
    ("clicks", "hamming"): Exact(
        HammingPopulation,
        lambda prefs, rows, consensus, alpha: log_likelihoods_by_hamming(
            as_rankings(prefs.take(np.arange(rows.start, rows.stop))).rankings, consensus, alpha
        ),
    ),
}
ON_WORKERS: dict[tuple[str, str], Any] = {("clicks", "footrule"): shard_clicks}


def exact_of(prefs: Preferences, distance: str) -> Exact | None:
    """What is exact of these data, if anything is."""
    found = EXACT.get((prefs.kind, distance))
    return found if found is not None and found.holds(prefs) else None


def make_population(
    prefs: Preferences, executor: Executor | None, distance: str = "footrule"
) -> Population:
    """The users of a fit, here or on workers."""
    check_preferences(prefs)
    kind, data = distances.get(distance), prefs
    if isinstance(data, ShardedClicks):
        return data.population
    check_informative(prefs.is_informative)
    if is_remote(executor):
        return _on_workers(prefs, executor, kind.name)
    made_of = exact_of(prefs, kind.name)
    if prefs.is_full:
        full: Any = prefs
        return FullPopulation(full, executor, distance=kind)
    if made_of is None:
        return KeptPopulation(prefs, executor, distance=kind)
    population: Population = made_of.population(prefs, executor)
    return population


def _on_workers(prefs: Preferences, executor: Executor | None, distance: str) -> Population:
    if (prefs.kind, distance) not in ON_WORKERS:
        known = ", ".join(f"{kind} by {name}" for kind, name in ON_WORKERS)
        raise TypeError(
            f"Dask workers run fits of {known}, got {prefs.kind} by {distance}: leave executor out"
        )
    shared: Population = ON_WORKERS[prefs.kind, distance](prefs, executor)
    return shared
