"""Files: saved fits, written whole or not at all; nothing in a file is trusted.

A saved fit is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 8, "items": [...],
  "users": [...], "settings": {...}, "population": {...} or null};
- of a :class:`Posterior`, the arrays of the table POSTERIOR: ``consensus.npy``, ``alpha.npy``, ...;
  of a personal fit those of `personal.save_personal`;
- the data: clicks as ``click_starts.npy``, ``click_codes.npy``, ``click_weights.npy``, row by row;
  comparisons as ``pair_*.npy``; of several kinds, ``mixed_parts.npy`` and the arrays of each part
  with its number before them, ``part0_*.npy``.

Files of other versions are refused.
"""

import io
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.archive import START, Archive, WrongFileError, open_archive, write_archive
from ..data.atomic import check_path, write_whole
from ..data.frames import BACKENDS
from ..data.mixed import KINDS
from ..data.preferences import Preferences
from ..distances import DISTANCES
from ..distances.tallies import MOVES
from ..rankings import MAX_ALPHA
from .diagnose import ANSWERS
from .names import ERROR_MODELS, GAPS, METHODS, ORDERS, STARTS
from .posterior import Posterior

Made = TypeVar("Made")
FORMAT, VERSION, HEADER = "pseudomallows posterior", 8, "header.json"

# Arrays: their type and their axes. Axes of one name have one length; with those in brackets, an
# array without any number stands for one that this fit does not have.
Arrays = dict[str, tuple[Any, str]]
POSTERIOR: Arrays = {
    "consensus": (np.int32, "chain draw cluster item"),
    "alpha": (np.float64, "chain draw cluster"),
    "weights": (np.float64, "chain draw"),
    "log_posterior": (np.float64, "chain draw"),
    "best": (np.int32, "cluster item"),
    "latent": (np.int32, "[chain draw row item]"),
    "shares": (np.float64, "chain draw cluster"),
    "chain_memberships": (np.float32, "[chain user cluster]"),
    "errors": (np.float64, "[chain draw error]"),
}
POPULATION = (
    "population_"  # before the names of arrays of the consensus of all users of a personal fit
)

# Settings and options: a test of the value, or the names that it may be.
Test = Callable[[Any], bool]
Tests = dict[str, Test | tuple[str, ...]]


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


def is_answer(value: Any) -> bool:
    """An answer of a verdict."""
    return value in ANSWERS


SHARE = number(0, 1)


def is_curve(value: Any) -> bool:
    """The curve of `choose_clusters`."""
    columns = ("n_clusters", "means", "errors")
    has_all = fields(chosen=count(), **dict.fromkeys(columns, list_of(number())))
    return (
        has_all(value)
        and len({len(value[name]) for name in columns}) == 1
        and is_text(value.get("doubt", ""))
    )


def is_step(value: Any) -> bool:
    """A step of a fit with a time limit."""
    has_all = fields(stage=is_text, seconds=number(), gap=number())
    return has_all(value) and optional(number())(value.get("error"))


SETTINGS: Tests = {
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
    "given": list_of(is_text),
    "backend": BACKENDS,
    "starts": optional(fields(n_starts=number(), same_users=number())),
    "tempered": optional(
        fields(powers=list_of(number(), 2), log_evidence=number(), log_evidence_error=number())
    ),
    "evidence": optional(fields(log_evidence=number(), log_evidence_error=number())),
    "in_time": optional(fields(stage=is_text, error=number(), steps=list_of(is_step))),
    "votes": optional(fields(p_value=number())),
    "matched": optional(fields(effective_share=number())),
    "model_check": optional(fields(split=number(), z=number())),
    "unbounded": list_of(count()),
    "stuck": list_of(count()),
    "sigma": number(0),
    "contradictions": is_text,
    "curve": optional(is_curve),
    "evaluation": fields(
        verdict=fields(answer=is_answer, words=is_text, advice=is_text),
        accuracy=SHARE,
        accuracy_error=optional(SHARE),
        popularity=SHARE,
        n_users=count(1),
        hidden=is_text,
        method=is_text,
        n_clusters=count(1),
        calibration_error=SHARE,
        calibration=list_of(fields(stated=SHARE, observed=SHARE, count=count(), error=SHARE), 1),
        certificate=list_of(
            fields(
                **dict.fromkeys(("by", "cell"), is_text),
                **dict.fromkeys(("stated", "observed", "low", "high"), number()),
                n_recommendations=count(),
            )
        ),
    ),
}
NAMED = {"move": tuple(MOVES), "start": STARTS, "errors": ERROR_MODELS, "gaps": GAPS}
OPTIONS: Tests = {
    **dict.fromkeys(["samples_alpha", "balanced", "weighted"], is_flag),
    "order": optional(lambda name: name in ORDERS),
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
# Writing


def save(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior to a file, whole or not at all."""
    write_fit(posterior, {name: getattr(posterior, name) for name in POSTERIOR}, path)


def write_fit(
    fit: Any,
    arrays: dict[str, NDArray[Any]],
    path: str | os.PathLike[str],
    population: Posterior | None = None,
) -> None:
    """Write these arrays of a fit and its data; with the consensus of all users, if there is one,
    whose data are those of the fit."""
    if population is not None:
        arrays = arrays | {POPULATION + name: getattr(population, name) for name in POSTERIOR}
    if fit.data is not None:
        arrays = arrays | fit.data.to_arrays()
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


def _plain_name(name: Any) -> str | int | float:
    if isinstance(name, str | int | float):
        return name
    raise TypeError(f"item names must be text or numbers to be saved, got {name!r}")


# Reading


class SavedFit(NamedTuple):
    """What a file holds: its header, the arrays by their names, and items, users and data."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    fields: dict[str, Any]


def read_fit(
    path: str | os.PathLike[str], types: dict[str, Any], make: Callable[[SavedFit], Made]
) -> Made:
    """Make a fit of what a file holds, whose arrays, but for those of the data, have these types.

    A file that is damaged, cut short, forged or of another kind is refused with a ValueError.
    """
    content = check_path(path).read_bytes()
    try:
        with open_archive(io.BytesIO(content)) as archive:
            header = _read_header(archive)
            arrays = {name: _read_array(archive, name, types) for name in archive.arrays}
        names = {what: _names(header[what], what) for what in ("items", "users")}
        return make(SavedFit(header, arrays, names | {"data": _read_data(arrays, **names)}))
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


def _read_array(archive: Archive, name: str, types: dict[str, Any]) -> NDArray[Any]:
    """An array of the kind of numbers that it has to be."""
    array, dtype = archive.array(name), types.get(name) or _type_in_data(name)
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


def take(
    arrays: dict[str, NDArray[Any]], prefix: str, table: Arrays, **lengths: int
) -> dict[str, Any]:
    """The arrays of a table, which must fit together, and to axes of these lengths."""
    taken = {}
    for name, (_, axes) in table.items():
        if prefix + name not in arrays:
            raise WrongFileError(f"has no array {prefix + name!r}")
        array = taken[name] = arrays[prefix + name]
        names, may_be_empty = axes.strip("[]").split(), axes.startswith("[")
        if array.ndim != len(names):
            raise WrongFileError(f"has an array {name!r} with {array.ndim} axes")
        if array.size or not may_be_empty:
            for axis, length in zip(names, array.shape, strict=True):
                if not length or lengths.setdefault(axis, length) != length:
                    raise WrongFileError(f"is damaged: its arrays {[name]} do not fit together")
    return taken


def read_posterior(saved: SavedFit, prefix: str = "") -> Posterior:
    """A posterior, whose arrays have these beginnings of names."""
    fields, settings = saved.fields, saved.header["population" if prefix else "settings"]
    n_items, n_users = len(fields["items"]), len(fields["users"])
    own = take(saved.arrays, prefix, POSTERIOR, item=max(n_items, 2), user=n_users)
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
    n_clusters = own["consensus"].shape[2]
    tests = OPTIONS | {"n_clusters": count(n_clusters, n_clusters)}
    check_settings(settings, n_users, DISTANCES, tests, ("n_draws", "n_clusters"))
    return Posterior(**fields, **own, settings=settings)


def check_settings(
    settings: dict[str, Any],
    n_users: int,
    distances: Iterable[str],
    tests: Tests,
    wanted: Iterable[str],
    is_personal: bool = False,
) -> None:
    """Refuse settings from which no answer can be made; `tests` are those of the options."""
    method, options = settings.get("method"), settings.get("options")
    if not isinstance(method, str) or (method == "personal") != is_personal:
        raise WrongFileError(f"has damaged settings: method is {method!r}")
    if not isinstance(options, dict):
        raise WrongFileError("has damaged settings: there are no options")
    known = {"method": METHODS, "distance": tuple(distances)}
    _check_values(settings, SETTINGS | known, ("kind", "distance", "is_full"))
    kept = {"keep_latent": list_of(count(0, n_users - 1))}
    _check_values(options, tests | kept, wanted)


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
