"""pseudomallows info: what a file holds, a model or data."""

import argparse
import zipfile
from typing import Any

import numpy as np

from ..files.read import read
from ..files.write import as_text
from ..posteriors.posterior import Posterior
from ..posteriors.save import load
from ..preferences.preferences import Rankings


def info(options: argparse.Namespace) -> int:
    """What a file holds, in a few lines."""
    found = _about(options)
    if options.json:
        print(as_text(found))
    else:
        width = max(map(len, found))
        for name, value in found.items():
            print(f"{name:<{width}}  {value}")
    return 0


def _about(options: argparse.Namespace) -> dict[str, Any]:
    if options.file != "-" and _is_model(options.file):
        return _about_model(load(options.file))
    prefs = read(options.file, options.kind, encoding=options.encoding)
    about: dict[str, Any] = {"users": prefs.n_users, "items": prefs.n_items}
    if isinstance(prefs, Rankings):
        n_full = int(prefs.is_full.sum())
        about |= {
            "holds": "rankings",
            "first user": _first_words(prefs),
            "people": int(prefs.weights.sum()),
            "full": n_full,
        }
        about |= {"partial": prefs.n_users - n_full}
    else:
        counts = prefs.item_counts()
        about |= {
            "holds": "clicks",
            "clicks": len(prefs.codes),
            "clicks of a user": f"{int(np.median(prefs.n_clicks))} in the median, at most "
            f"{int(prefs.n_clicks.max())}",
            "most clicked": str(prefs.items[counts.argmax()]),
            "density": round(len(prefs.codes) / prefs.n_users / prefs.n_items, 4),
        }
    return {"holds": about.pop("holds")} | about


def _first_words(prefs: Rankings) -> str:
    """The best items of the first user, to see that the file was understood."""
    ranks = prefs.rankings[0]
    order = [item for item in np.argsort(ranks, kind="stable") if ranks[item] > 0][:3]
    return f"{prefs.users[0]}: {', '.join(str(prefs.items[item]) for item in order)}"


def _is_model(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):  # the reader of data says what it is
        return False


def _about_model(posterior: Posterior) -> dict[str, Any]:
    settings = posterior.settings
    n_chains, n_draws = posterior.consensus.shape[:2]
    about = {
        "holds": "model",
        "method": settings.get("method"),
        "users": len(posterior.users) or f"{settings.get('n_users', 0)}, who are not kept",
        "items": posterior.n_items,
        "clusters": posterior.n_clusters,
        "alpha": ", ".join(f"{a:.3g}" for a in posterior.alpha.mean(axis=(0, 1))),
        "draws": f"{n_chains} chains of {n_draws}",
        "fitted to": "rankings" if posterior.clicks is None else "clicks",
        "seed": settings.get("seed"),
        "version": settings.get("version"),
        "seconds": settings.get("seconds"),
    }
    if posterior.personal is None:
        found = [posterior.diagnostics(cluster) for cluster in range(posterior.n_clusters)]
        about["worst R-hat"] = round(max(each.worst_rhat for each in found), 3)
        about["least effective size"] = round(min(each.least_effective_size for each in found), 1)
    return about
