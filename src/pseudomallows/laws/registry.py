"""Which law for which data: (kind of data, distance) to the class that says how probable they are.

Users known in part without a law of their own have latent rankings that a chain keeps.
"""

from typing import Any

from .. import distances
from ..engines.executors import Executor, is_remote
from ..preferences import Preferences, check_preferences
from .augmented import AugmentedLaw
from .block_laws import ClickBlocks, RankedBlocks
from .clicks_kendall import KendallClicks
from .error_rates import Errors
from .full import FullLaw, has_buckets_only
from .law import Law
from .shards import REMOTE, ShardedClicks, send_clicks
from .votes import VoteLaw


def make_law(
    prefs: Preferences,
    executor: Executor | None = None,
    distance: str = "footrule",
    errors: Errors | None = None,
    gaps: str = "auto",
) -> Law:
    """The law of some users, here or on workers; `errors` says how often comparisons are wrong."""
    check_preferences(prefs)
    kind = distances.get(distance)
    data: Any = prefs
    if isinstance(prefs, ShardedClicks) or is_remote(executor):
        if prefs.kind != "clicks" or distance not in REMOTE:
            known = ", ".join(f"clicks by {name}" for name in REMOTE)
            raise TypeError(
                f"Dask workers run fits of {known}, got {prefs.kind} by {distance}: leave executor "
                "out"
            )
        workers: Any = executor
        is_there = isinstance(prefs, ShardedClicks)
        shards = data.shards if is_there else send_clicks(data, workers)
        law: Law = REMOTE[distance](shards, distance)
        return law
    made = find_law(prefs, kind.name)
    if made is None:
        return AugmentedLaw(prefs, executor, kind, errors)
    if made is VoteLaw:
        return VoteLaw(data, executor, gaps)
    return made(data, executor) if prefs.kind == "clicks" else made(data, executor, kind)


def find_law(prefs: Preferences, distance: str) -> Any:
    """The law whose likelihood of these data is exact, if there is one."""
    if prefs.kind == "rankings":
        rankings: Any = prefs
        if prefs.is_full or (distance == "kendall" and has_buckets_only(rankings.rankings)):
            return FullLaw
        return RankedBlocks if distance in ("footrule", "hamming") else None
    if prefs.kind == "clicks":
        return {"footrule": ClickBlocks, "kendall": KendallClicks}.get(distance)
    return VoteLaw if prefs.is_vote and distance == "kendall" else None
