"""Which law is exact for which data: (kind of data, distance) to the population of a fit, and to
how likely the data are.

Full rankings need none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..distances import PriceDistance
from ..distances.tallies import Ranking
from ..engines.executors import Executor, is_remote
from ..kernels.click_rows import slice_clicks
from ..preferences import Preferences, check_preferences
from .clicks import ClickPopulation, log_likelihoods_of_clicks
from .full_rankings import FullPopulation
from .population import Population, check_informative
from .rankings import RankingPopulation, log_likelihoods_of_rankings
from .shards import ShardedClicks, shard_clicks


class Exact(NamedTuple):
    """What is exact of a kind of data: the population of a fit, and the log likelihoods of a slice
    of rows of the preferences, given a consensus and alpha."""

    population: Any
    log_likelihoods: Callable[[Any, slice, Ranking, float], NDArray[np.float64]]


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
    made_of: Any = FullPopulation if prefs.is_full else EXACT[prefs.kind, kind.name].population
    population: Population = made_of(prefs, executor)
    return population


def check_full(prefs: Any, distance: PriceDistance) -> Any:
    """Refuse users known in part, where no exact law is known of them."""
    if prefs.kind != "rankings" or not prefs.is_full:
        known = ", ".join(repr(name) for kind, name in EXACT if kind == prefs.kind)
        raise ValueError(
            f"distance={distance.name!r} takes full rankings, got {prefs.shape_words}: use one of "
            f"{known}"
        )
    return prefs
