"""Files: saved fits, written whole or not at all; nothing in a file is trusted.

A saved fit is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 8, "items": [...],
  "users": [...], "settings": {...}, "population": {...} or null};
- of a :class:`Posterior`, the arrays of the table POSTERIOR: ``consensus.npy``, ``alpha.npy``, ...;
- of a :class:`PersonalFit` those of PERSONAL and, with very many items, of SPARSE; those of its
  CORRECTION, if it has one, and with ``undated_`` before them alphas and correction for clicks
  without times; with ``population_`` before them those of the consensus of all users, whose
  settings are "population";
- the data: clicks as ``click_starts.npy``, ``click_codes.npy``, ``click_weights.npy``, row by row;
  comparisons as ``pair_*.npy``; of several kinds, ``mixed_parts.npy`` and the arrays of each part
  with its number before them, ``part0_*.npy``.

Files of other versions are refused.
"""

import io
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.archive import START, Archive, WrongFileError, open_archive, write_archive
from ..data.atomic import check_path, write_whole
from ..data.frames import BACKENDS
from ..data.mixed import KINDS
from ..data.preferences import Preferences
from ..distances import DISTANCES
from ..distances.tallies import MOVES
from ..kernels.footrule.own_orders import N_FEATURES
from ..laws.own_laws import OWN_LAWS
from ..rankings import MAX_ALPHA
from .corrections import Correction
from .names import CALIBRATIONS, ERROR_MODELS, GAPS, METHODS, ORDERS, STARTS
from .personal_fit import FIRST_WINDOWS, Fit, PersonalFit, Undated
from .posterior import Posterior
from .recency import UNITS, Recency

FORMAT, VERSION, HEADER = "pseudomallows posterior", 8, "header.json"

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
UNDATED, POPULATION = "undated_", "population_"  # before the names of some arrays
NEVER_EMPTY = {"consensus", "alpha", "weights", "log_posterior", "best", "shares", "popularity"}
NEVER_EMPTY |= {"ties", "first", "alphas", "alpha_shares", "weight_starts", *CORRECTION}
TYPES: dict[str, Any] = {  # by the names in the file
    prefix + name: dtype
    for prefix, table in (
        ("", POSTERIOR | PERSONAL | SPARSE | CORRECTION),
        (UNDATED, ALPHAS | CORRECTION),
        (POPULATION, POSTERIOR),
    )
    for name, (dtype, _) in table.items()
}

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
    "stored_changes": count(),
    "stored_removals": count(),
    "seconds": number(),
    "is_best_proved": is_flag,
    "latent": is_text,
    "chosen": is_text,
    "thinning": count(),
    "reading": is_text,
    "backend": BACKENDS,
    "starts": optional(fields(n_starts=number(), rand_index=number(), same_users=number())),
    "tempered": optional(
        fields(powers=list_of(number(), 2), log_evidence=number(), log_evidence_error=number())
    ),
    "evidence": optional(fields(log_evidence=number(), log_evidence_error=number())),
    "votes": optional(fields(p_value=number())),
    "matched": optional(fields(effective_share=number())),
    "model_check": optional(fields(split=number(), z=number())),
    "unbounded": list_of(count()),
    "stuck": list_of(count()),
    "sigma": number(0),
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
    "sigma": lambda value: value == "auto" or number(0)(value),
    "share_prior": number(0),
    "alpha_prior": list_of(number(), 2, 2),
    **NAMED,
}
PERSONAL_OPTIONS: dict[str, Test | tuple[str, ...]] = {
    "ridge": optional(number(0)),
    "parts": list_of(fields(part=is_text, weight=number(), worth=number(), error=number())),
    "recency": optional(is_recency),
    "population": optional(fields(seed=count(), distance=is_text)),
    "trend": optional(fields(half_life=number(0), unit=is_text, power=number())),
}


# Writing


def save(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit to a file, whole or not at all."""
    population = None
    if isinstance(fit, PersonalFit):
        arrays, population = _personal_arrays(fit), fit.made_population
    else:
        arrays = {name: getattr(fit, name) for name in POSTERIOR}
    if population is not None:  # its data are those of the fit
        arrays |= {POPULATION + name: getattr(population, name) for name in POSTERIOR}
    if fit.data is not None:
        arrays |= fit.data.to_arrays()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "items": [_plain_name(name) for name in fit.items.tolist()],
        "users": [_plain_name(name) for name in fit.users.tolist()],
        "settings": fit.settings,
        "population": None if population is None else population.settings,
    }
    content = io.BytesIO()
    write_archive(content, HEADER, header, arrays, packed=True)  # fails here, before a file is made
    with write_whole(path) as stream:
        stream.write(content.getbuffer())


def _personal_arrays(fit: PersonalFit) -> dict[str, NDArray[Any]]:
    """Arrays of a personal fit, without its population and its data."""
    arrays = {name: getattr(fit, name) for name in PERSONAL}
    if fit.is_sparse:
        weights = fit.item_weights
        rows = (weights.indptr, weights.indices, weights.data, fit.left, fit.right)
        for (name, (dtype, _)), part in zip(SPARSE.items(), rows, strict=True):
            arrays[name] = part.astype(dtype)
        arrays["item_weights"] = np.empty((0, 0))
    arrays |= _correction_arrays(fit.correction, "")
    if fit.undated is not None:
        arrays |= {UNDATED + name: getattr(fit.undated, name) for name in ALPHAS}
        arrays |= _correction_arrays(fit.undated.correction, UNDATED)
    return arrays


def _correction_arrays(correction: Correction | None, prefix: str) -> dict[str, NDArray[Any]]:
    if correction is None:
        return {}
    return {prefix + name: np.asarray(getattr(correction, name)) for name in CORRECTION}


def _plain_name(name: Any) -> str | int | float:
    if isinstance(name, str | int | float):
        return name
    raise TypeError(f"item names must be text or numbers to be saved, got {name!r}")


# Reading


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit that :meth:`Posterior.save` or :meth:`PersonalFit.save` has written.

    A file that is damaged, cut short, forged or of another kind is refused with a ValueError.
    """
    content = check_path(path).read_bytes()
    try:
        with open_archive(io.BytesIO(content)) as archive:
            header = _read_header(archive)
            arrays = {name: _read_array(archive, name) for name in archive.arrays}
        return _make_fit(header, arrays)
    except WrongFileError as error:
        if not content.startswith(START):
            raise ValueError(
                f"{path} is not a saved posterior, or is damaged: it is no ZIP archive"
            ) from None
        raise ValueError(f"{path} {error}") from None


def _read_header(archive: Archive) -> dict[str, Any]:
    if HEADER not in archive.names:
        raise WrongFileError(f"is a ZIP archive, but not a saved posterior: it has no {HEADER}")
    header = archive.header(HEADER)
    if header.get("format") != FORMAT:
        raise WrongFileError(
            "is a ZIP archive, but not a saved posterior: its header has another format"
        )
    if header.get("version") != VERSION:
        raise WrongFileError(
            f"has format version {header.get('version')!r}, and this program reads {VERSION}: fit "
            "again, or use the version of pseudomallows that wrote it"
        )
    kinds = {"items": list, "users": list, "settings": dict}
    for key, kind in kinds.items():
        if not isinstance(header.get(key), kind):
            raise WrongFileError(f"has a damaged header: {key!r} is missing or of the wrong type")
    return header


def _read_array(archive: Archive, name: str) -> NDArray[Any]:
    """An array of the kind of numbers that it has to be."""
    array, dtype = archive.array(name), TYPES.get(name) or _type_in_data(name)
    if dtype is None:
        raise WrongFileError(f"is damaged: it has an array {name!r}, which no fit has")
    if array.dtype.kind != np.dtype(dtype).kind:
        raise WrongFileError(
            f"has an array {name!r} of {array.dtype}, and it must be {np.dtype(dtype)}"
        )
    return array.astype(dtype, copy=False)


def _type_in_data(name: str) -> Any:
    """The type of an array of the data, None for one of the fit."""
    types = (kind.array_type(name) for kind in KINDS.values())
    return next((dtype for dtype in types if dtype is not None), None)


def _make_fit(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Fit:
    """A fit from what a file holds."""
    names = {what: _names(header[what], what) for what in ("items", "users")}
    fields: dict[str, Any] = names | {"data": _read_data(arrays, **names)}
    settings = header["settings"]
    if "popularity" not in arrays:
        return _read_posterior(arrays, "", settings, fields)
    own = _read_personal(arrays, settings, fields)
    population = None
    if isinstance(header.get("population"), dict):
        population = _read_posterior(arrays, POPULATION, header["population"], fields)
        if population.n_clusters > 1:
            raise WrongFileError("is damaged: its population has clusters")
    return PersonalFit(**own, **fields, settings=settings, made_population=population)


def _read_data(
    arrays: dict[str, NDArray[Any]], items: NDArray[Any], users: NDArray[Any]
) -> Preferences | None:
    """The data among `arrays`, if they are kept there."""
    for kind in KINDS.values():
        if kind.ARRAYS.keys() <= arrays.keys():
            own = {name: arrays[name] for name in arrays if kind.array_type(name) is not None}
            try:
                return kind.from_arrays(own, users, items)
            except ValueError as error:
                raise WrongFileError(f"is damaged: {error}") from None
    if any(_type_in_data(name) is not None for name in arrays):
        raise WrongFileError("is damaged: its data are not whole")
    return None


def _names(listed: list[Any], what: str) -> NDArray[Any]:
    """Names as an array, of integers if all of them are."""
    if not all(type(name) in (str, int, float) for name in listed):
        raise WrongFileError(f"is damaged: its {what} are not text or numbers")
    if len(set(listed)) < len(listed):
        raise WrongFileError(f"is damaged: two of its {what} have one name")
    if listed and all(type(name) is int and abs(name) < 2**63 for name in listed):
        return np.array(listed)
    names = np.empty(len(listed), dtype=object)
    names[:] = listed
    return names


def _take(
    arrays: dict[str, NDArray[Any]], prefix: str, table: Arrays, **lengths: int
) -> dict[str, Any]:
    """The arrays of a table, which must fit together, and to axes of these lengths."""
    taken = {}
    for name, (_, axes) in table.items():
        if prefix + name not in arrays:
            raise WrongFileError(f"has no array {prefix + name!r}")
        array = taken[name] = arrays[prefix + name]
        if array.ndim != len(axes.split()):
            raise WrongFileError(f"has an array {name!r} with {array.ndim} axes")
        if array.size or name in NEVER_EMPTY:
            for axis, length in zip(axes.split(), array.shape, strict=True):
                if not length or lengths.setdefault(axis, length) != length:
                    raise WrongFileError(f"is damaged: its arrays {[name]} do not fit together")
    return taken


def _read_posterior(
    arrays: dict[str, NDArray[Any]], prefix: str, settings: dict[str, Any], fields: dict[str, Any]
) -> Posterior:
    """A posterior, whose arrays have these beginnings of names."""
    n_items, n_users = len(fields["items"]), len(fields["users"])
    own = _take(arrays, prefix, POSTERIOR, item=max(n_items, 2), user=n_users)
    weights, alpha = own["weights"], own["alpha"]
    for name in ("consensus", "best", "latent"):
        if not (np.sort(own[name], axis=-1) == np.arange(1, n_items + 1)).all():
            raise WrongFileError(f"is damaged: its {name} is not made of rankings")
    wrong = alpha[~((alpha >= 0) & (alpha <= MAX_ALPHA))]
    if wrong.size:
        raise WrongFileError(
            f"is damaged: its alpha must be numbers from 0 to {MAX_ALPHA:g}, and is {wrong[0]}"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6):
        raise WrongFileError("is damaged: its weights are not weights")
    if not (np.isfinite(own["errors"]).all() and (own["errors"] >= 0).all()):
        raise WrongFileError("is damaged: its errors must be finite numbers, 0 or more")
    for name in ("chain_memberships", "shares"):
        parts = own[name]
        if not (np.abs(parts.sum(axis=2) - 1) < 1e-3).all() or not (parts >= 0).all():
            raise WrongFileError(f"is damaged: its {name} are not probabilities")
    _check_settings(settings, n_users, own["consensus"].shape[2])
    return Posterior(**fields, **own, settings=settings)


def _read_personal(
    arrays: dict[str, NDArray[Any]], settings: dict[str, Any], fields: dict[str, Any]
) -> dict[str, Any]:
    """The fields that only a personal fit has."""
    n_items, n_users = len(fields["items"]), len(fields["users"])
    if fields["data"] is None:
        raise WrongFileError("is damaged: its clicks are missing")
    _check_settings(settings, n_users, None)
    is_sparse = "weight_starts" in arrays
    table = PERSONAL | (SPARSE if is_sparse else {})
    own = _take(arrays, "", table, item=max(n_items, 2), user=n_users, start=n_items + 1)
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
    recency = settings["options"].get("recency")
    return own | {
        "undated": Undated(**_read_law(arrays, UNDATED)) if UNDATED + "alphas" in arrays else None,
        "distance": settings["distance"],
        "recency": None if recency is None else Recency(**recency),
    }


def _read_law(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, Any]:
    """The distribution of alpha, and the correction, if there is one."""
    law = _take(arrays, prefix, ALPHAS)
    alphas, shares = law["alphas"], law["alpha_shares"]
    is_possible = (alphas >= 0).all() and (alphas <= MAX_ALPHA).all() and (shares >= 0).all()
    if not (is_possible and abs(float(shares.sum()) - 1) < 1e-3):
        raise WrongFileError("is damaged: its alphas do not fit together")
    if prefix + "coefficients" not in arrays:
        return law | {"correction": None}
    parts = _take(arrays, prefix, CORRECTION, feature=N_FEATURES + 1, mark=5)
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
    return law | {"correction": Correction(**parts | {"largest": int(parts["largest"])})}


def _check_settings(settings: dict[str, Any], n_users: int, n_clusters: int | None) -> None:
    """Refuse settings from which no answer can be made; without clusters, of a personal fit."""
    method, options, is_personal = (
        settings.get("method"),
        settings.get("options"),
        n_clusters is None,
    )
    if not isinstance(method, str) or (method == "personal") != is_personal:
        raise WrongFileError(f"has damaged settings: method is {method!r}")
    if not isinstance(options, dict):
        raise WrongFileError("has damaged settings: there are no options")
    known = {"method": METHODS, "distance": tuple(OWN_LAWS if is_personal else DISTANCES)}
    _check_values(settings, SETTINGS | known, ("kind", "distance", "is_full"))
    _check_values(options, OPTIONS | {"keep_latent": list_of(count(0, n_users - 1))})
    if n_clusters is None:
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
