"""Checks of what a saved fit holds: nothing in a file is trusted."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances import DISTANCES
from ..distances.tallies import MOVES
from ..files.archive import WrongFileError
from ..kernels.footrule.own_orders import N_FEATURES
from ..laws.own_laws import OWN_LAWS
from ..preferences import KINDS
from ..rankings import MAX_ALPHA
from .names import CALIBRATIONS, ERROR_MODELS, GAPS, METHODS, ORDERS, STARTS
from .personal_fit import FIRST_WINDOWS
from .recency import UNITS

ARRAYS = {
    "consensus": 4,
    "alpha": 3,
    "weights": 2,
    "log_posterior": 2,
    "best": 2,
    "latent": 4,
    "shares": 3,
    "chain_memberships": 3,
    "errors": 3,
}  # and their axes
FLAGS = (  # among the options
    "samples_alpha",
    "balanced",
    "weighted",
    "blend",
    "ridge_given",
    "calibrate",
    "alpha_given",
    "held_out",
    "given_scores",
    "with_consensus",
)
STARTS_FIELDS = ("n_starts", "rand_index", "same_users")  # of starts that are compared
LEAST = {"n_draws": 1, "n_chains": 1, "n_clusters": 1, "warmup": 0, "thin": 1}
LEAST |= {"leap": 1, "n_moves": 1, "temperatures": 2}
OR_NONE = ("n_moves", "temperatures")  # by the warmup, and by whether chains agree
TEMPERED_FIELDS = ("log_evidence", "log_evidence_error")
NAMED = {  # options that are names, and these names
    "move": tuple(MOVES),
    "start": STARTS,
    "errors": ERROR_MODELS,
    "gaps": GAPS,
}


def check_shapes(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays of a posterior that do not fit together."""
    for name, n_axes in ARRAYS.items():
        if arrays[name].ndim != n_axes:
            raise WrongFileError(f"has an array {name!r} with {arrays[name].ndim} axes")
    n_chains, n_draws, n_clusters, n_items = arrays["consensus"].shape
    shapes = {
        "alpha": (n_chains, n_draws, n_clusters),
        "weights": (n_chains, n_draws),
        "log_posterior": (n_chains, n_draws),
        "best": (n_clusters, n_items),
        "latent": (n_chains, n_draws, arrays["latent"].shape[2], n_items),
        "shares": (n_chains, n_draws, n_clusters),
        "chain_memberships": (n_chains, len(header["users"]), n_clusters),
    }
    if arrays["errors"].size:
        shapes["errors"] = (n_chains, n_draws, arrays["errors"].shape[2])
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong or len(header["items"]) != n_items:
        raise WrongFileError(f"is damaged: its arrays {wrong or ['items']} do not fit together")
    if not arrays["consensus"].size or n_items < 2:
        raise WrongFileError("is damaged: it has no draws")


def check_values(arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse numbers that no posterior has."""
    n_items = arrays["consensus"].shape[-1]
    weights, alpha = arrays["weights"], arrays["alpha"]
    for name in ("consensus", "best", "latent"):
        if not (np.sort(arrays[name], axis=-1) == np.arange(1, n_items + 1)).all():
            raise WrongFileError(f"is damaged: its {name} is not made of rankings")
    if not ((alpha >= 0) & (alpha <= MAX_ALPHA)).all():
        raise WrongFileError(
            f"is damaged: its alpha must be numbers from 0 to {MAX_ALPHA:g}, and is "
            f"{alpha[~((alpha >= 0) & (alpha <= MAX_ALPHA))][0]}"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6):
        raise WrongFileError("is damaged: its weights are not weights")
    if not (np.isfinite(arrays["errors"]).all() and (arrays["errors"] >= 0).all()):
        raise WrongFileError("is damaged: its errors must be finite numbers, 0 or more")
    for name in ("chain_memberships", "shares"):
        parts = arrays[name]
        if not (np.abs(parts.sum(axis=2) - 1) < 1e-3).all() or not (parts >= 0).all():
            raise WrongFileError(f"is damaged: its {name} are not probabilities")


def check_personal(parts: dict[str, NDArray[Any]], n_items: int, n_users: int) -> None:
    """Refuse arrays of a personal fit that do not fit together."""
    is_given, is_sparse = parts["scores"].size > 0, "weight_starts" in parts
    is_empty = is_given or is_sparse
    fits = (
        n_items >= 2
        and parts["item_weights"].shape == ((0, 0) if is_empty else (n_items, n_items))
        and not (is_sparse and (is_given or not _are_sparse_rows(parts, n_items)))
        and parts["scores"].shape == ((n_users, n_items) if is_given else (0, 0))
        and parts["popularity"].shape == (n_items,)
        and parts["bias"].shape in ((0,), (n_items,))
        and sorted(parts["ties"].tolist()) == list(range(n_items))
        and parts["first"].shape[1:] == (n_items,)
        and 1 <= len(parts["first"]) <= len(FIRST_WINDOWS)
        and bool((parts["first"] >= 0).all() and (parts["first"] <= 1).all())
        and all(np.isfinite(array).all() for array in parts.values())
    )
    if not fits:
        raise WrongFileError("is damaged: its personal scores do not fit together")
    check_alphas(parts["alphas"], parts["alpha_shares"])


def check_alphas(alphas: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
    """Refuse what is no distribution of alpha."""
    if not (
        alphas.shape == shares.shape
        and bool((alphas >= 0).all() and (alphas <= MAX_ALPHA).all() and (shares >= 0).all())
        and abs(float(shares.sum()) - 1) < 1e-3
    ):
        raise WrongFileError("is damaged: its alphas do not fit together")


def check_correction(parts: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays that are no correction."""
    knots = parts["knots"]
    fits = (
        parts["coefficients"].shape == (N_FEATURES + 1,)
        and all(np.isfinite(array).all() for array in parts.values())
        and parts["marks"].shape == (5,)
        and parts["marks"][1] > 0
        and parts["marks"][4] >= 1
        and knots.ndim == 1
        and len(knots) >= 1
        and (np.diff(knots) > 0).all()
        and parts["values"].shape == parts["slopes"].shape == knots.shape
        and parts["largest"].shape == ()
        and parts["largest"] >= 1
    )
    if not fits:
        raise WrongFileError("is damaged: its correction does not fit together")


def _are_sparse_rows(parts: dict[str, NDArray[Any]], n_items: int) -> bool:
    """Are these sparse item weights, by rows, and factors of so many items?"""
    starts, items, left, right = (
        parts[name] for name in ("weight_starts", "weight_items", "left", "right")
    )
    if starts.shape != (n_items + 1,) or items.ndim != 1 or left.ndim != 2 or right.ndim != 2:
        return False
    has_factors = left.size or right.size
    return bool(
        starts[0] == 0
        and starts[-1] == len(items)
        and (np.diff(starts) >= 0).all()
        and items.min(initial=0) >= 0
        and items.max(initial=0) < n_items
        and parts["weight_values"].shape == items.shape
        and (not has_factors or (len(left) == n_items and right.shape == left.shape[::-1]))
    )


def check_settings(settings: dict[str, Any], is_personal: bool, n_users: int) -> None:
    """Refuse settings from which no answer can be made."""
    method, options = settings.get("method"), settings.get("options")
    if not isinstance(method, str) or (method == "personal") != is_personal:
        raise WrongFileError(f"has damaged settings: method is {method!r}")
    if method not in METHODS:
        raise WrongFileError(_unknown("method", method, METHODS))
    if not isinstance(options, dict):
        raise WrongFileError("has damaged settings: there are no options")
    kept = options.get("keep_latent", [])
    alpha, curve = settings.get("alpha"), settings.get("curve")
    wrong = {
        "alpha": alpha is not None and not (_is_number(alpha) and 0 <= alpha <= MAX_ALPHA),
        "seed": not _is_count(settings.get("seed", 0), or_none=True),
        "n_users": not _is_count(settings.get("n_users", 0)),
        "updates": not _is_count(settings.get("updates", 0)),
        "stored_clicks": not _is_count(settings.get("stored_clicks", 0)),
        "seconds": not _is_number(settings.get("seconds", 0.0)),
        "kind": settings.get("kind") not in tuple(KINDS),
        "distance": settings.get("distance") not in tuple(OWN_LAWS if is_personal else DISTANCES),
        "is_full": type(settings.get("is_full")) is not bool,
        "is_best_proved": type(settings.get("is_best_proved", True)) is not bool,
        "latent": not isinstance(settings.get("latent", ""), str),
        "chosen": not isinstance(settings.get("chosen", ""), str),
        "thinning": not _is_count(settings.get("thinning", 1)),
        "reading": not isinstance(settings.get("reading", ""), str),
        "starts": not _has_numbers(settings.get("starts"), STARTS_FIELDS),
        "tempered": not _is_tempered(settings.get("tempered")),
        "votes": not _has_numbers(settings.get("votes"), ("p_value",)),
        "matched": not _has_numbers(settings.get("matched"), ("effective_share",)),
        "model_check": not _has_numbers(settings.get("model_check"), ("split", "z")),
        "unbounded": not _are_counts(settings.get("unbounded", [])),
        "stuck": not _are_counts(settings.get("stuck", [])),
        "contradictions": not isinstance(settings.get("contradictions", ""), str),
        "order": options.get("order") not in (None, *ORDERS),
        "keep_latent": not isinstance(kept, list)
        or not all(_is_count(row) and row < n_users for row in kept),
        "curve": curve is not None and not _is_curve(curve),
        "ridge": is_personal and not _is_ridge(options.get("ridge", "missing")),
        "parts": is_personal and not _are_parts(options.get("parts", [])),
        "recency": is_personal and not _is_recency(options.get("recency")),
        "calibration": options.get("calibration") not in (None, *CALIBRATIONS),
    }
    wrong |= {name: type(options.get(name, True)) is not bool for name in FLAGS}
    if any(wrong.values()):
        name = next(name for name, is_wrong in wrong.items() if is_wrong)
        raise WrongFileError(
            f"has damaged settings: {name} is {options.get(name, settings.get(name))!r}"
        )


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_count(each) for each in value)


def _has_numbers(value: Any, names: Iterable[str]) -> bool:
    """Is it None, or a dict with a number under each of these names?"""
    return value is None or (
        isinstance(value, dict) and all(_is_number(value.get(name)) for name in names)
    )


def _is_tempered(value: Any) -> bool:
    """Is it None, or the powers of parallel tempering and the log evidence?"""
    if value is None:
        return True
    powers = value.get("powers") if isinstance(value, dict) else None
    is_list = isinstance(powers, list) and len(powers) > 1 and all(map(_is_number, powers))
    return is_list and _has_numbers(value, TEMPERED_FIELDS)


def check_options(options: dict[str, Any], n_clusters: int) -> None:
    """Refuse options of the wrong type or size, or with a name that is not known."""
    wrong = {
        name: not _is_count(value := options.get(name, least)) or value < least
        for name, least in LEAST.items()
        if name not in OR_NONE or options.get(name) is not None
    }
    wrong |= {name: not isinstance(options.get(name, ""), str) for name in NAMED}
    wrong |= {
        name: not _is_number(options.get(name, 1)) or options.get(name, 1) < 0
        for name in ("sigma", "share_prior")
    }
    prior = options.get("alpha_prior", [1, 1])
    wrong["alpha_prior"] = (
        not isinstance(prior, list) or len(prior) != 2 or not all(map(_is_number, prior))
    )
    wrong["n_clusters"] |= options.get("n_clusters") != n_clusters
    wrong["n_draws"] |= "n_draws" not in options
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise WrongFileError(f"has damaged settings: {name} is {options.get(name)!r}")
    for name in NAMED.keys() & options.keys():
        if options[name] not in NAMED[name]:
            raise WrongFileError(_unknown(name, options[name], NAMED[name]))


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    """A name that a newer version may know."""
    return (
        f"was fitted with {what}={name!r}, and this version knows {', '.join(map(repr, known))} "
        "only: update pseudomallows"
    )


def _is_count(value: Any, or_none: bool = False) -> bool:
    return (value is None and or_none) or (type(value) is int and value >= 0)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_ridge(value: Any) -> bool:
    return value is None or (_is_number(value) and value >= 0)


def _is_recency(value: Any) -> bool:
    is_made = isinstance(value, dict) and set(value) == {"half_life", "unit"}
    return value is None or (
        is_made
        and _is_number(value["half_life"])
        and value["half_life"] > 0
        and value["unit"] in UNITS
    )


def _are_parts(value: Any) -> bool:
    """The parts of a blend of scores: each has a name and its figures."""
    return isinstance(value, list) and all(
        isinstance(part, dict)
        and isinstance(part.get("part"), str)
        and _has_numbers(part, ("weight", "worth", "error"))
        for part in value
    )


def _is_curve(curve: Any) -> bool:
    """The curve of `choose_clusters`."""
    if not isinstance(curve, dict) or not _is_count(curve.get("chosen")):
        return False
    if not isinstance(curve.get("doubt", ""), str):
        return False
    columns = [curve.get(name) for name in ("n_clusters", "means", "errors")]
    return all(
        isinstance(column, list)
        and len(column) == len(columns[0] or ())
        and all(_is_number(value) for value in column)
        for column in columns
    )
