"""Files of personal fits, and of any fit: see `posterior.save`.

A personal fit has the arrays of PERSONAL and, with very many items, of SPARSE; those of its
CORRECTION, if it has one, and with ``new_`` before them alphas and correction for clicks that it
has not seen; with ``population_`` before them those of the consensus of all users, whose settings
are "population".
"""

import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.archive import WrongFileError
from ..kernels.correct import N_FEATURES
from ..posterior.names import CALIBRATIONS
from ..posterior.save import (
    POPULATION,
    POSTERIOR,
    Arrays,
    SavedFit,
    Tests,
    check_settings,
    count,
    fields,
    is_flag,
    is_text,
    list_of,
    number,
    optional,
    read_fit,
    read_posterior,
    take,
    write_fit,
)
from ..rankings import MAX_ALPHA
from .corrections import Correction
from .personal_fit import FIRST_WINDOWS, Fit, NewClicks, PersonalFit
from .recency import UNITS, Recency

ALPHAS: Arrays = {"alphas": (np.float64, "alpha"), "alpha_shares": (np.float64, "alpha")}
PERSONAL: Arrays = ALPHAS | {
    "item_weights": (np.float64, "[item item]"),
    "popularity": (np.float64, "item"),
    "ties": (np.int64, "item"),
    "scores": (np.float64, "[user item]"),
    "bias": (np.float64, "[item]"),
    "first": (np.float64, "window item"),
}
SPARSE: Arrays = {  # instead of `item_weights`, with many items
    "weight_starts": (np.int64, "start"),
    "weight_items": (np.int32, "[weight]"),
    "weight_values": (np.float32, "[weight]"),
    "left": (np.float32, "[item factor]"),
    "right": (np.float32, "[factor item]"),
}
CORRECTION: Arrays = {
    "coefficients": (np.float64, "feature"),
    "marks": (np.float64, "mark"),
    "knots": (np.float64, "knot"),
    "values": (np.float64, "knot"),
    "slopes": (np.float64, "knot"),
    "standard_errors": (np.float64, "knot"),
    "largest": (np.int64, ""),
    "per_click": (np.bool_, ""),
}
NEW_CLICKS = "new_"  # before the names of some arrays
TYPES: dict[str, Any] = {  # by the names in the file
    prefix + name: dtype
    for prefix, table in (
        ("", POSTERIOR | PERSONAL | SPARSE | CORRECTION),
        (NEW_CLICKS, ALPHAS | CORRECTION),
        (POPULATION, POSTERIOR),
    )
    for name, (dtype, _) in table.items()
}


def is_recency(value: Any) -> bool:
    """The arguments of a `Recency`."""
    has_all = fields(half_life=number(sys.float_info.min), unit=lambda unit: unit in UNITS)
    return has_all(value) and len(value) == 2


OPTIONS: Tests = {
    **dict.fromkeys(["blend", "calibrate", "held_out", "with_consensus"], is_flag),
    "calibration": optional(lambda name: name in CALIBRATIONS),
    "ridge": optional(number(0)),
    "parts": list_of(fields(part=is_text, weight=number(), worth=number(), error=number())),
    "recency": optional(is_recency),
    "later_share": number(0, 1),
    "days_ahead": number(0),
    "population": optional(fields(seed=count(), distance=is_text)),
    "trend": optional(fields(half_life=number(0), unit=is_text, power=number())),
}


def save(fit: PersonalFit, path: str | os.PathLike[str]) -> None:
    """Write a personal fit to a file, whole or not at all."""
    arrays = {name: getattr(fit, name) for name in PERSONAL}
    if fit.is_sparse:
        weights = fit.item_weights
        rows = (weights.indptr, weights.indices, weights.data, fit.left, fit.right)
        for (name, (dtype, _)), part in zip(SPARSE.items(), rows, strict=True):
            arrays[name] = part.astype(dtype)
        arrays["item_weights"] = np.empty((0, 0))
    arrays |= _correction_arrays(fit.correction, "")
    if fit.for_new is not None:
        arrays |= {NEW_CLICKS + name: getattr(fit.for_new, name) for name in ALPHAS}
        arrays |= _correction_arrays(fit.for_new.correction, NEW_CLICKS)
    write_fit(fit, arrays, path, fit.made_population)


def _correction_arrays(correction: Correction | None, prefix: str) -> dict[str, NDArray[Any]]:
    if correction is None:
        return {}
    return {prefix + name: np.asarray(getattr(correction, name)) for name in CORRECTION}


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit that :meth:`Posterior.save` or :meth:`PersonalFit.save` has written.

    A file that is damaged, cut short, forged or of another kind is refused with a ValueError.
    """
    return read_fit(path, TYPES, _make_fit)


def _make_fit(saved: SavedFit) -> Fit:
    """A fit from what a file holds."""
    if "popularity" not in saved.arrays:
        return read_posterior(saved)
    own = _read_personal(saved)
    population = None
    if isinstance(saved.header.get("population"), dict):
        population = read_posterior(saved, POPULATION)
        if population.n_clusters > 1:
            raise WrongFileError("is damaged: its population has clusters")
    settings = saved.header["settings"]
    return PersonalFit(**own, **saved.fields, settings=settings, made_population=population)


def _read_personal(saved: SavedFit) -> dict[str, Any]:
    """The fields that only a personal fit has."""
    settings, arrays = saved.header["settings"], saved.arrays
    n_items, n_users = len(saved.fields["items"]), len(saved.fields["users"])
    if saved.fields["data"] is None:
        raise WrongFileError("is damaged: its clicks are missing")
    check_settings(settings, n_users, ["kendall"], OPTIONS, ("ridge",), is_personal=True)
    is_sparse = "weight_starts" in arrays
    table = PERSONAL | (SPARSE if is_sparse else {})
    own = take(arrays, "", table, item=max(n_items, 2), user=n_users, start=n_items + 1)
    kinds = (own["item_weights"].size > 0, own["scores"].size > 0, is_sparse)
    fits = (
        sum(kinds) == 1
        and sorted(own["ties"].tolist()) == list(range(n_items))
        and len(own["first"]) <= len(FIRST_WINDOWS)
        and bool((own["first"] >= 0).all() and (own["first"] <= 1).all())
        and all(np.isfinite(array).all() for array in own.values())
    )
    if is_sparse:
        starts, items, values = (own.pop(f"weight_{n}") for n in ("starts", "items", "values"))
        fits = (
            fits
            and starts[0] == 0
            and starts[-1] == len(items) == len(values)
            and bool((np.diff(starts) >= 0).all())
            and 0 <= items.min(initial=0) <= items.max(initial=0) < n_items
            and bool(own["left"].size) == bool(own["right"].size)
        )
    if not fits:
        raise WrongFileError("is damaged: its personal scores do not fit together")
    if is_sparse:
        from scipy.sparse import csr_array

        own["item_weights"] = csr_array((values, items, starts), shape=(n_items, n_items))
    own |= _read_law(arrays, "")
    has_new = NEW_CLICKS + "alphas" in arrays
    recency = settings["options"].get("recency")
    return own | {
        "for_new": NewClicks(**_read_law(arrays, NEW_CLICKS)) if has_new else None,
        "recency": None if recency is None else Recency(**recency),
    }


def _read_law(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
    """The distribution of alpha, and the correction, if there is one."""
    law = take(arrays, prefix, ALPHAS)
    alphas, shares = law["alphas"], law["alpha_shares"]
    is_possible = (alphas >= 0).all() and (alphas <= MAX_ALPHA).all() and (shares >= 0).all()
    if not (is_possible and abs(float(shares.sum()) - 1) < 1e-3):
        raise WrongFileError("is damaged: its alphas do not fit together")
    if prefix + "coefficients" not in arrays:
        return law | {"correction": None}
    parts = take(arrays, prefix, CORRECTION, feature=N_FEATURES + 1, mark=5)
    marks = parts["marks"]
    fits = (
        all(np.isfinite(array).all() for array in parts.values())
        and marks[1] > 0
        and marks[4] >= 1
        and (np.diff(parts["knots"]) > 0).all()
        and parts["largest"] >= 1
    )
    if not fits:
        raise WrongFileError("is damaged: its correction does not fit together")
    return law | {
        "correction": Correction(
            **parts | {"largest": int(parts["largest"]), "per_click": bool(parts["per_click"])}
        )
    }
