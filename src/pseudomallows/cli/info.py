"""pseudomallows info: what a file holds, a model or data."""

import argparse
import zipfile
from typing import Any

import numpy as np

from ..data.columns import KINDS
from ..data.read import read_as
from ..data.splits import time_in_words
from ..data.write import as_text
from ..personal.personal_fit import Fit, PersonalFit
from ..personal.save_personal import load
from ..posterior.posterior import Posterior
from .arguments import JSON, READING, command, headline, layout_of, option


@command(
    "info",
    "Tell what a file holds: a model, rankings, clicks or comparisons.",
    "clicks.csv",
    option("file", "a saved model, or data", metavar="FILE"),
    option("--kind", "kind of the data", choices=KINDS),
    *READING,
    JSON,
)
def describe_file(options: argparse.Namespace) -> int:
    """What a file holds, in a few lines."""
    facts = _about(options)
    if options.json:
        print(as_text(facts))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            print(f"{name:<{width}}  {value}")
    return 0


def _about(options: argparse.Namespace) -> dict[str, Any]:
    """What is said of a file, by words."""
    if options.file != "-" and is_model(options.file):
        return _about_model(load(options.file))
    prefs, _ = read_as(options.file, options.kind, options.encoding, layout=layout_of(options))
    facts = {words: round(value, 4) for words, value in prefs.facts().items()}
    return {"holds": prefs.kind} | facts | GLIMPSES[prefs.kind](prefs)


def _glimpse_of_rankings(prefs: Any) -> dict[str, str]:
    """The best items of the first user, to see that the file was understood."""
    ranks = prefs.rankings[0]
    order = [item for item in np.argsort(ranks, kind="stable") if ranks[item] > 0][:3]
    names = ", ".join(str(prefs.items[item]) for item in order)
    return {"first user": f"{prefs.users[0]}: {names}"}


def _glimpse_of_clicks(prefs: Any) -> dict[str, str]:
    """The item with the most clicks, to see that the file was understood."""
    glimpse = {"most clicked": str(prefs.items[prefs.item_counts().argmax()])}
    if prefs.times is not None:
        known = prefs.times[~np.isnan(prefs.times)]
        glimpse["times"] = f"{time_in_words(known.min())} to {time_in_words(known.max())}"
    return glimpse


def _glimpse_of_pairs(prefs: Any) -> dict[str, str]:
    """The item with the most wins and a contradiction, to see that the file was understood."""
    wins = np.bincount(prefs.better, prefs.counts * prefs.weights[prefs.owners], prefs.n_items)
    glimpse = {"most preferred": str(prefs.items[wins.argmax()])}
    for user, cycle in prefs.contradictions(1):
        shown = " over ".join(str(name) for name in [*cycle, cycle[0]][:5])
        glimpse["a contradiction"] = f"{user}: {shown}{', ...' if len(cycle) > 4 else ''}"
    return glimpse


GLIMPSES = {  # by kind; no file holds several
    "rankings": _glimpse_of_rankings,
    "clicks": _glimpse_of_clicks,
    "pairs": _glimpse_of_pairs,
}


def is_model(path: str) -> bool:
    """Is it a file that `fit` has saved?"""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):  # the reader of data says what it is
        return False


def _about_model(fitted: Fit) -> dict[str, Any]:
    """What is said of a model, by words."""
    settings = fitted.settings
    return {
        "holds": "model",
        "method": settings.get("chosen", settings.get("method")),
        "distance": settings.get("distance"),
        "fitted to": fitted.kind,
        "users": len(fitted.users) or f"{settings.get('n_users', 0)}, who are not kept",
        "items": fitted.n_items,
        **(_about_personal(fitted) if isinstance(fitted, PersonalFit) else _about_draws(fitted)),
        **_checks(fitted),
        "seed": settings.get("seed"),
        "version": settings.get("version"),
        "seconds": settings.get("seconds"),
    }


def _about_personal(fitted: PersonalFit) -> dict[str, Any]:
    windows = "none" if fitted.correction is None else fitted.correction.windows
    options, population = fitted.settings["options"], fitted.made_population
    consensus = "learnt when it is asked for" if options.get("population") else ""
    consensus = consensus if population is None else headline(population)
    parts = options.get("parts", [])
    blend = {"scores": "; ".join(f"{part['weight']:.0%} {part['part']}" for part in parts)}
    return {
        "alpha": f"{fitted.mean_alpha:.3g}",
        "corrected windows": windows,
        **(blend if parts else {}),
        **({"consensus": consensus} if consensus else {}),
    }


def _about_draws(posterior: Posterior) -> dict[str, Any]:
    n_chains, n_draws = posterior.consensus.shape[:2]
    return {
        "clusters": posterior.n_clusters,
        "alpha": ", ".join(f"{a:.3g}" for a in posterior.alpha.mean(axis=(0, 1))),
        "draws": f"{n_chains} chains of {n_draws}",
    }


def _checks(fitted: Fit) -> dict[str, str]:
    """The verdict, and the figure of each check."""
    verdict = fitted.verdict()
    rows = {"trusted": f"{verdict.answer}: {verdict.words} {verdict.advice}".rstrip()}
    for check in verdict.checks:
        wanted = f" (want {check.wanted})" if check.wanted else ""
        rows[check.name] = f"{check.answer}: {check.found}{wanted}"
    return rows
