"""What a saved fit must hold, in tables, and the checks by them: nothing in a file is trusted."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
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

# Arrays: their type and their axes. Axes of one name have one length; an array without any number
# stands for one that this fit does not have.
Arrays = dict[str, tuple[Any, str]]
POSTERIOR: Arrays = {
    "consensus": (np.int32, "chain draw cluster item"),
    "alpha": (np.float64, "chain draw cluster"),
    "weights": (np.float64, "chain draw"),
    "log_posterior": (np.float64, "chain draw"),
    "best": (np.int32, "cluster item"),
    "latent": (np.int32, "chain draw row item"),
    "shares": (np.float64, "chain draw cluster"),
    "chain_memberships": (np.float32, "chain user cluster"),
    "errors": (np.float64, "chain draw error"),
}
ALPHAS: Arrays = {"alphas": (np.float64, "alpha"), "alpha_shares": (np.float64, "alpha")}
PERSONAL: Arrays = ALPHAS | {
    "item_weights": (np.float64, "item item"),
    "popularity": (np.float64, "item"),
    "ties": (np.int64, "item"),
    "scores": (np.float64, "user item"),
    "bias": (np.float64, "item"),
    "first": (np.float64, "window item"),
}
SPARSE: Arrays = {  # instead of `item_weights`, with many items
    "weight_starts": (np.int64, "start"),
    "weight_items": (np.int32, "weight"),
    "weight_values": (np.float32, "weight"),
    "left": (np.float32, "item factor"),
    "right": (np.float32, "factor item"),
}
CORRECTION: Arrays = {
    "coefficients": (np.float64, "feature"),
    "marks": (np.float64, "mark"),
    "knots": (np.float64, "knot"),
    "values": (np.float64, "knot"),
    "slopes": (np.float64, "knot"),
    "largest": (np.int64, ""),
}
NEVER_EMPTY = {"consensus", "alpha", "weights", "log_posterior", "best", "shares", "popularity"}
NEVER_EMPTY |= {"ties", "first", "alphas", "alpha_shares", "weight_starts", *CORRECTION}

# Settings and options: a test of the value, or the names that it may be.
Test = Callable[[Any], bool]


def number(least: float = -math.inf, most: float = math.inf) -> Test:
    """A finite number."""

    def test(value: Any) -> bool:
        return type(value) in (int, float) and math.isfinite(value) and least <= value <= most

    return test


def count(least: int = 0, most: float = math.inf) -> Test:
    """A whole number."""
    return lambda value: type(value) is int and least <= value <= most


def optional(test: Test) -> Test:
    """None, or what passes the test."""
    return lambda value: value is None or test(value)


def list_of(test: Test, least: int = 0, most: float = math.inf) -> Test:
    """A list of so many values, each of which passes the test."""

    def is_list(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(test, value))

    return is_list


def fields(**tests: Test) -> Test:
    """A dict that has these values, and perhaps others."""

    def is_dict(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in value and test(value[name]) for name, test in tests.items()
        )

    return is_dict


def is_text(value: Any) -> bool:
    """Text."""
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    """True or False."""
    return type(value) is bool


def is_recency(value: Any) -> bool:
    """The arguments of a `Recency`."""
    has_all = fields(half_life=number(sys.float_info.min), unit=lambda unit: unit in UNITS)
    return has_all(value) and len(value) == 2


def is_curve(value: Any) -> bool:
    """The curve of `choose_clusters`."""
    columns = ("n_clusters", "means", "errors")
    has_all = fields(chosen=count(), **dict.fromkeys(columns, list_of(number())))
    return (
        has_all(value)
        and len({len(value[name]) for name in columns}) == 1
        and is_text(value.get("doubt", ""))
    )


SETTINGS: dict[str, Test | tuple[str, ...]] = {
    "kind": tuple(KINDS),
    "is_full": is_flag,
    "alpha": optional(number(0, MAX_ALPHA)),
    "seed": optional(count()),
    "n_users": count(),
    "updates": count(),
    "stored_clicks": count(),
    "seconds": number(),
    "is_best_proved": is_flag,
    "latent": is_text,
    "chosen": is_text,
    "thinning": count(),
    "reading": is_text,
    "starts": optional(fields(n_starts=number(), rand_index=number(), same_users=number())),
    "tempered": optional(
        fields(powers=list_of(number(), 2), log_evidence=number(), log_evidence_error=number())
    ),
    "votes": optional(fields(p_value=number())),
    "matched": optional(fields(effective_share=number())),
    "model_check": optional(fields(split=number(), z=number())),
    "unbounded": list_of(count()),
    "stuck": list_of(count()),
    "contradictions": is_text,
    "curve": optional(is_curve),
}
FLAGS = ["samples_alpha", "balanced", "weighted", "blend", "ridge_given", "calibrate"]
FLAGS += ["alpha_given", "held_out", "given_scores", "with_consensus"]
OPTIONS: dict[str, Test | tuple[str, ...]] = {
    **dict.fromkeys(FLAGS, is_flag),
    "order": optional(lambda name: name in ORDERS),
    "calibration": optional(lambda name: name in CALIBRATIONS),
}
NAMED = {"move": tuple(MOVES), "start": STARTS, "errors": ERROR_MODELS, "gaps": GAPS}
POSTERIOR_OPTIONS: dict[str, Test | tuple[str, ...]] = {
    "n_draws": count(1),
    "n_chains": count(1),
    "warmup": count(),
    "thin": count(1),
    "leap": count(1),
    "n_moves": optional(count(1)),
    "temperatures": optional(count(2)),
    "sigma": number(0),
    "share_prior": number(0),
    "alpha_prior": list_of(number(), 2, 2),
    **NAMED,
}
PERSONAL_OPTIONS: dict[str, Test | tuple[str, ...]] = {
    "ridge": optional(number(0)),
    "parts": list_of(fields(part=is_text, weight=number(), worth=number(), error=number())),
    "recency": optional(is_recency),
}


def check_settings(
    settings: dict[str, Any], is_personal: bool, n_users: int, n_clusters: int
) -> None:
    """Refuse settings from which no answer can be made."""
    method, options = settings.get("method"), settings.get("options")
    if not isinstance(method, str) or (method == "personal") != is_personal:
        raise WrongFileError(f"has damaged settings: method is {method!r}")
    if not isinstance(options, dict):
        raise WrongFileError("has damaged settings: there are no options")
    known = {"method": METHODS, "distance": tuple(OWN_LAWS if is_personal else DISTANCES)}
    _check_values(settings, SETTINGS | known, ("kind", "distance", "is_full"))
    _check_values(options, OPTIONS | {"keep_latent": list_of(count(0, n_users - 1))})
    if is_personal:
        _check_values(options, PERSONAL_OPTIONS, ("ridge",))
    else:
        tests = POSTERIOR_OPTIONS | {"n_clusters": count(n_clusters, n_clusters)}
        _check_values(options, tests, ("n_draws", "n_clusters"))


def _check_values(
    values: dict[str, Any],
    tests: Mapping[str, Test | tuple[str, ...]],
    wanted: Iterable[str] = (),
) -> None:
    """Refuse a value that is wrong, or is `wanted` and missing."""
    for name in (name for name in tests if name in values or name in wanted):
        test, value = tests[name], values.get(name)
        if isinstance(test, tuple) and isinstance(value, str) and value not in test:
            raise WrongFileError(  # a newer version may know it
                f"was fitted with {name}={value!r}, and this version knows "
                f"{', '.join(map(repr, test))} only: update pseudomallows"
            )
        is_right = is_text(value) if isinstance(test, tuple) else test(value)
        if name not in values or not is_right:
            raise WrongFileError(f"has damaged settings: {name} is {value!r}")


def check_shapes(arrays: dict[str, NDArray[Any]], table: Arrays, **lengths: int) -> None:
    """Refuse arrays that do not fit together, or to axes of these lengths."""
    for name, (_, axes) in table.items():
        array = arrays[name]
        if array.ndim != len(axes.split()):
            raise WrongFileError(f"has an array {name!r} with {array.ndim} axes")
        if array.size or name in NEVER_EMPTY:
            for axis, length in zip(axes.split(), array.shape, strict=True):
                if not length or lengths.setdefault(axis, length) != length:
                    raise WrongFileError(f"is damaged: its arrays {[name]} do not fit together")


def check_posterior(arrays: dict[str, NDArray[Any]], n_items: int, n_users: int) -> None:
    """Refuse arrays that no posterior has."""
    check_shapes(arrays, POSTERIOR, item=max(n_items, 2), user=n_users)
    weights, alpha = arrays["weights"], arrays["alpha"]
    for name in ("consensus", "best", "latent"):
        if not (np.sort(arrays[name], axis=-1) == np.arange(1, n_items + 1)).all():
            raise WrongFileError(f"is damaged: its {name} is not made of rankings")
    wrong = alpha[~((alpha >= 0) & (alpha <= MAX_ALPHA))]
    if wrong.size:
        raise WrongFileError(
            f"is damaged: its alpha must be numbers from 0 to {MAX_ALPHA:g}, and is {wrong[0]}"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6):
        raise WrongFileError("is damaged: its weights are not weights")
    if not (np.isfinite(arrays["errors"]).all() and (arrays["errors"] >= 0).all()):
        raise WrongFileError("is damaged: its errors must be finite numbers, 0 or more")
    for name in ("chain_memberships", "shares"):
        parts = arrays[name]
        if not (np.abs(parts.sum(axis=2) - 1) < 1e-3).all() or not (parts >= 0).all():
            raise WrongFileError(f"is damaged: its {name} are not probabilities")


def check_personal(
    parts: dict[str, NDArray[Any]], is_sparse: bool, n_items: int, n_users: int
) -> None:
    """Refuse arrays that no personal fit has."""
    table = PERSONAL | (SPARSE if is_sparse else {})
    check_shapes(parts, table, item=max(n_items, 2), user=n_users, start=n_items + 1)
    kinds = (parts["item_weights"].size > 0, parts["scores"].size > 0, is_sparse)
    fits = (
        sum(kinds) == 1
        and sorted(parts["ties"].tolist()) == list(range(n_items))
        and len(parts["first"]) <= len(FIRST_WINDOWS)
        and bool((parts["first"] >= 0).all() and (parts["first"] <= 1).all())
        and all(np.isfinite(array).all() for array in parts.values())
    )
    if is_sparse:
        starts, items = parts["weight_starts"], parts["weight_items"]
        fits = (
            fits
            and starts[0] == 0
            and starts[-1] == len(items) == len(parts["weight_values"])
            and bool((np.diff(starts) >= 0).all())
            and 0 <= items.min(initial=0) <= items.max(initial=0) < n_items
            and bool(parts["left"].size) == bool(parts["right"].size)
        )
    if not fits:
        raise WrongFileError("is damaged: its personal scores do not fit together")
    check_alphas(parts)


def check_alphas(parts: dict[str, NDArray[Any]]) -> None:
    """Refuse what is no distribution of alpha."""
    check_shapes(parts, ALPHAS)
    alphas, shares = parts["alphas"], parts["alpha_shares"]
    is_possible = (alphas >= 0).all() and (alphas <= MAX_ALPHA).all() and (shares >= 0).all()
    if not (is_possible and abs(float(shares.sum()) - 1) < 1e-3):
        raise WrongFileError("is damaged: its alphas do not fit together")


def check_correction(parts: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays that are no correction."""
    check_shapes(parts, CORRECTION, feature=N_FEATURES + 1, mark=5)
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
