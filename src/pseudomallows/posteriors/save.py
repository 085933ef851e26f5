"""Files: saved posteriors, written whole or not at all.

A saved posterior is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 2, "items": [...],
  "users": [...], "settings": {...}, "arrays": {name: {"dtype": ..., "shape": [...]}}};
- ``consensus.npy``, ``alpha.npy``, ``weights.npy``, ``log_posterior.npy``, ``costs.npy``,
  ``latent.npy``, and since version 2 ``shares.npy``, ``chain_memberships.npy``, ``leaders.npy``:
  the arrays of :class:`Posterior`;
- of a fit from clicks, ``click_starts.npy``, ``click_codes.npy``, ``click_weights.npy``: the
  clicks, row by row;
- of a fit by method "personal", ``personal_*.npy``: the arrays of :class:`Personal` and of its
  corrections, one row a window; ``personal_clusters.npy``, the bytes of another such archive, if
  it is blended with clusters.

Versions above the one known here are refused; older ones stay readable.
"""

import io
import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import MOVES
from ..files.archive import START, Archive, WrongFileError, open_archive, write_archive
from ..files.atomic import write_whole
from ..inference.methods.mcmc import AUGMENTATIONS, STARTS
from ..inference.methods.pseudo import UPDATES
from ..latent.clicks import ORDERS
from ..preferences.preferences import MAX_WEIGHT, Clicks
from ..rankings import MAX_ALPHA
from ..recommendations.corrections import Correction
from ..recommendations.personal import Personal
from .posterior import Posterior

METHODS = ("pseudo", "balanced", "mcmc", "personal")
FORMAT, VERSION, HEADER = "pseudomallows posterior", 2, "header.json"
ARRAYS = {
    "consensus": 4,
    "alpha": 3,
    "weights": 2,
    "log_posterior": 2,
    "costs": 3,
    "latent": 4,
}  # and their axes
CLUSTER_ARRAYS = {"shares": 3, "chain_memberships": 3, "leaders": 4}  # since version 2
PERSONAL = ("item_weights", "popularity", "ties", "alphas", "alpha_shares", "scores")
CORRECTIONS = ("windows", "coefficients", "knots", "values")
CLICKS = {"click_starts": "starts", "click_codes": "codes", "click_weights": "weights"}
DTYPES = {  # all others are floats
    "consensus": np.int32,
    "latent": np.int32,
    "leaders": np.int32,
    "chain_memberships": np.float32,
    "click_starts": np.int64,
    "click_codes": np.int32,
    "click_weights": np.int64,
    "personal_ties": np.int64,
    "personal_windows": np.int64,
    "personal_clusters": np.uint8,
}
FLAGS = (  # among the options
    "samples_alpha",
    "balanced",
    "weighted",
    "nonnegative",
    "calibrate",
    "alpha_given",
    "held_out",
    "given_scores",
    "with_clusters",
)


LEAST = {"n_draws": 1, "n_chains": 1, "n_clusters": 1, "warmup": 0, "thin": 1, "refresh": 1}
LEAST |= {"n_swaps": 1, "leap": 1, "n_moves": 1, "n_alpha_moves": 1}
CHOICES = {"augmentation": AUGMENTATIONS, "update": UPDATES, "move": tuple(MOVES), "start": STARTS}


def save_posterior(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior to a file, whole or not at all."""
    content = io.BytesIO()
    _write(posterior, content)  # fails here, before anything is written
    with write_whole(path) as stream:
        stream.write(content.getbuffer())


def _write(posterior: Posterior, stream: IO[bytes]) -> None:
    arrays = {name: getattr(posterior, name) for name in (*ARRAYS, *CLUSTER_ARRAYS)}
    if posterior.clicks is not None:
        arrays |= {name: getattr(posterior.clicks, field) for name, field in CLICKS.items()}
    arrays |= _personal_arrays(posterior)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "items": [_plain_name(name) for name in posterior.items.tolist()],
        "users": [_plain_name(name) for name in posterior.users.tolist()],
        "settings": posterior.settings,
        "arrays": {
            name: {"dtype": array.dtype.str, "shape": list(array.shape)}
            for name, array in arrays.items()
        },
    }
    write_archive(stream, HEADER, header, arrays, packed=True)


def load(path: str | os.PathLike[str]) -> Posterior:
    """Read a posterior that :meth:`Posterior.save` has written.

    A file that is damaged, cut short, forged or of another kind is refused with a ValueError.
    """
    content = Path(path).read_bytes()
    try:
        return _read(io.BytesIO(content))
    except WrongFileError as error:
        if not content.startswith(START):
            raise ValueError(
                f"{path} is not a saved posterior, or is damaged: it is no ZIP archive"
            ) from None
        raise ValueError(f"{path} {error}") from None


def _read(content: IO[bytes], is_inner: bool = False) -> Posterior:
    with open_archive(content) as archive:
        header = _read_header(archive)
        names = [*ARRAYS, *(CLUSTER_ARRAYS if header["version"] > 1 else ())]
        names += CLICKS if "click_codes" in header["arrays"] else ()
        personal = [name for name in header["arrays"] if name.startswith("personal_")]
        names += () if is_inner else personal
        arrays = {name: _read_array(archive, name, header) for name in names}
    if header["version"] == 1:
        arrays |= _one_cluster(arrays, len(header["users"]))
    items, users = (_names(header[what], what) for what in ("items", "users"))
    _check_shapes(header, arrays)
    _check_values(arrays)
    clicks = _read_clicks(arrays, users, items) if "click_codes" in arrays else None
    fields: dict[str, Any] = _read_personal(arrays, len(items), len(users)) | arrays
    check_settings(header["settings"], "personal" in fields, len(users))
    if "personal" not in fields:
        _check_options(header["settings"]["options"], arrays["consensus"].shape[2])
    return Posterior(items=items, users=users, settings=header["settings"], clicks=clicks, **fields)


def _personal_arrays(posterior: Posterior) -> dict[str, NDArray[Any]]:
    """Arrays of a personal posterior; ragged maps are filled up with their last knot."""
    personal = posterior.personal
    if personal is None:
        return {}
    arrays = {f"personal_{name}": getattr(personal, name) for name in PERSONAL}
    rows = list(personal.corrections.values())
    width = max((row.knots.shape[1] for row in rows), default=0)
    n_coefficients = len(rows[0].coefficients) if rows else 0
    arrays["personal_windows"] = np.array(list(personal.corrections), dtype=np.int64)
    arrays["personal_coefficients"] = np.array([row.coefficients for row in rows]).reshape(
        len(rows), n_coefficients
    )
    for name in ("knots", "values"):
        filled = [
            np.pad(getattr(row, name), ((0, 0), (0, width - row.knots.shape[1])), "edge")
            for row in rows
        ]
        arrays[f"personal_{name}"] = np.array(filled).reshape(len(rows), 2, width)
    if posterior.clusters is not None:
        stream = io.BytesIO()
        _write(posterior.clusters, stream)
        arrays["personal_clusters"] = np.frombuffer(stream.getvalue(), dtype=np.uint8)
    return arrays


def _read_personal(arrays: dict[str, NDArray[Any]], n_items: int, n_users: int) -> dict[str, Any]:
    """Take the arrays of a personal posterior out of `arrays`."""
    found = {name: arrays.pop(name) for name in list(arrays) if name.startswith("personal_")}
    if not found:
        return {}
    try:
        parts = {name: found[f"personal_{name}"] for name in (*PERSONAL, *CORRECTIONS)}
        n_windows, n_alphas = len(parts["windows"]), len(parts["alphas"])
        is_given = parts["scores"].size > 0
        fits = (
            parts["item_weights"].shape == ((0, 0) if is_given else (n_items, n_items))
            and parts["scores"].shape == ((n_users, n_items) if is_given else (0, 0))
            and parts["popularity"].shape == (n_items,)
            and sorted(parts["ties"].tolist()) == list(range(n_items))
            and parts["alpha_shares"].shape == (n_alphas,)
            and len(parts["coefficients"]) == len(parts["knots"]) == n_windows
            and parts["values"].shape == parts["knots"].shape
            and parts["knots"].shape[1] == 2
            and all(np.isfinite(array).all() for array in parts.values())
            and bool((parts["alphas"] >= 0).all() and (parts["alphas"] <= MAX_ALPHA).all())
            and bool((parts["alpha_shares"] >= 0).all())
            and abs(float(parts["alpha_shares"].sum()) - 1) < 1e-3
            and bool((parts["windows"] >= 1).all())
        )
    except (KeyError, TypeError, ValueError):
        fits = False
    if not fits:
        raise WrongFileError("is damaged: its personal scores do not fit together")
    corrections = {
        int(window): Correction(*(parts[name][row] for name in CORRECTIONS[1:]))
        for row, window in enumerate(parts["windows"])
    }
    personal = Personal(**{name: parts[name] for name in PERSONAL}, corrections=corrections)
    fields: dict[str, Any] = {"personal": personal}
    if "personal_clusters" in found:
        stream = io.BytesIO(found["personal_clusters"].tobytes())
        clusters = _read(stream, is_inner=True)
        if clusters.n_items != n_items or clusters.clicks is None:
            raise WrongFileError("is damaged: its clusters are of another kind")
        fields["clusters"] = clusters
    return fields


def _one_cluster(arrays: dict[str, NDArray[Any]], n_users: int) -> dict[str, NDArray[Any]]:
    """What files of version 1, which know one cluster only, leave out."""
    n_chains, n_draws = arrays["consensus"].shape[:2]
    return {
        "shares": np.ones((n_chains, n_draws, 1)),
        "chain_memberships": np.ones((n_chains, n_users, 1), np.float32),
        "leaders": np.empty((0, 0, 1, arrays["consensus"].shape[-1]), np.int32),
    }


def _read_header(archive: Archive) -> dict[str, Any]:
    if HEADER not in archive.names:
        raise WrongFileError(f"is a ZIP archive, but not a saved posterior: it has no {HEADER}")
    header = archive.header(HEADER)
    if header.get("format") != FORMAT:
        raise WrongFileError(
            "is a ZIP archive, but not a saved posterior: its header has another format"
        )
    if type(header.get("version")) is not int or not 1 <= header["version"] <= VERSION:
        raise WrongFileError(
            f"has format version {header.get('version')!r}, and this program reads up to "
            f"{VERSION}: update pseudomallows"
        )
    kinds = {"items": list, "users": list, "settings": dict, "arrays": dict}
    for key, kind in kinds.items():
        if not isinstance(header.get(key), kind):
            raise WrongFileError(f"has a damaged header: {key!r} is missing or of the wrong type")
    return header


def _read_array(archive: Archive, name: str, header: dict[str, Any]) -> NDArray[Any]:
    """An array of the kind of numbers that it has to be, as the header has it."""
    array = archive.array(name)
    if header["arrays"].get(name) != {"dtype": array.dtype.str, "shape": list(array.shape)}:
        raise WrongFileError(f"has an array {name!r} that does not agree with its header")
    dtype = np.dtype(DTYPES.get(name, np.float64))
    if array.dtype.kind != dtype.kind:
        raise WrongFileError(f"has an array {name!r} of {array.dtype}, and it must be {dtype}")
    return array.astype(dtype, copy=False)


def _check_shapes(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    for name, n_axes in (ARRAYS | CLUSTER_ARRAYS).items():
        if arrays[name].ndim != n_axes:
            raise WrongFileError(f"has an array {name!r} with {arrays[name].ndim} axes")
    n_chains, n_draws, n_clusters, n_items = arrays["consensus"].shape
    shapes = {
        "alpha": (n_chains, n_draws, n_clusters),
        "weights": (n_chains, n_draws),
        "log_posterior": (n_chains, n_draws),
        "costs": (n_clusters, n_items, n_items),
        "latent": (n_chains, n_draws, arrays["latent"].shape[2], n_items),
        "shares": (n_chains, n_draws, n_clusters),
        "chain_memberships": (n_chains, len(header["users"]), n_clusters),
        "leaders": (
            n_chains if arrays["leaders"].size else 0,
            arrays["leaders"].shape[1],
            n_clusters,
            n_items,
        ),
    }
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong or len(header["items"]) != n_items:
        raise WrongFileError(f"is damaged: its arrays {wrong or ['items']} do not fit together")
    if not arrays["consensus"].size or n_items < 2:
        raise WrongFileError("is damaged: it has no draws")


def _check_values(arrays: dict[str, NDArray[Any]]) -> None:
    n_items = arrays["consensus"].shape[-1]
    weights, alpha, costs = arrays["weights"], arrays["alpha"], arrays["costs"]
    for name in ("consensus", "leaders", "latent"):
        if not (np.sort(arrays[name], axis=-1) == np.arange(1, n_items + 1)).all():
            raise WrongFileError(f"is damaged: its {name} is not made of rankings")
    if not ((alpha >= 0) & (alpha <= MAX_ALPHA)).all():
        raise WrongFileError(
            f"is damaged: its alpha must be numbers from 0 to {MAX_ALPHA:g}, and is "
            f"{alpha[~((alpha >= 0) & (alpha <= MAX_ALPHA))][0]}"
        )
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) < 1e-6):
        raise WrongFileError("is damaged: its weights are not weights")
    if not (np.isfinite(costs).all() and costs.min() >= 0):
        raise WrongFileError("is damaged: its costs are not distances")
    for name in ("chain_memberships", "shares"):
        parts = arrays[name]
        if not (np.abs(parts.sum(axis=2) - 1) < 1e-3).all() or not (parts >= 0).all():
            raise WrongFileError(f"is damaged: its {name} are not probabilities")


def _read_clicks(
    arrays: dict[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
) -> Clicks:
    """Take the clicks out of `arrays`."""
    starts, codes, weights = (arrays.pop(name) for name in CLICKS)
    n_users = len(users)
    fits = starts.shape == (n_users + 1,) and weights.shape == (n_users,)
    fits = fits and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    fits = fits and codes.shape == (starts[-1],)
    if not fits or (len(codes) and not 0 <= codes.min() <= codes.max() < len(items)):
        raise WrongFileError("is damaged: its clicks do not fit together")
    owners = np.repeat(np.arange(n_users), np.diff(starts))
    pairs = owners * len(items) + codes
    if not (np.diff(pairs) > 0).all() and len(np.unique(pairs)) < len(pairs):
        raise WrongFileError("is damaged: a user has clicked an item twice")
    if len(weights) and not (weights.min() >= 0 and weights.astype(float).sum() <= MAX_WEIGHT):
        raise WrongFileError("is damaged: its clicks have weights below 0, or too large ones")
    return Clicks(weights, users, items, starts, codes)


def check_settings(settings: dict[str, Any], is_personal: bool, n_users: int) -> None:
    """Refuse settings from which no answer can be made."""
    method, options = settings.get("method"), settings.get("options")
    if method not in METHODS or (method == "personal") != is_personal:
        raise WrongFileError(f"has damaged settings: method is {method!r}")
    if not isinstance(options, dict):
        raise WrongFileError("has damaged settings: there are no options")
    settings.setdefault("alpha", None)
    options.setdefault("order", None)
    kept = options.get("keep_latent", [])
    alpha, curve = settings["alpha"], settings.get("curve")
    wrong = {
        "alpha": alpha is not None and not (_is_number(alpha) and 0 <= alpha <= MAX_ALPHA),
        "seed": not _is_count(settings.get("seed", 0), or_none=True),
        "n_users": not _is_count(settings.get("n_users", 0)),
        "stored_clicks": not _is_count(settings.get("stored_clicks", 0)),
        "seconds": not _is_number(settings.get("seconds", 0.0)),
        "order": options["order"] not in (None, *ORDERS),
        "keep_latent": not isinstance(kept, list)
        or not all(_is_count(row) and row < n_users for row in kept),
        "curve": curve is not None and not _is_curve(curve),
        "ridge": is_personal and not _is_ridge(options.get("ridge", "missing")),
    }
    wrong |= {name: type(options.get(name, True)) is not bool for name in FLAGS}
    if any(wrong.values()):
        name = next(name for name, is_wrong in wrong.items() if is_wrong)
        raise WrongFileError(
            f"has damaged settings: {name} is {options.get(name, settings.get(name))!r}"
        )


def _check_options(options: dict[str, Any], n_clusters: int) -> None:
    """Refuse options with which a fit could not be made again."""
    options.setdefault("n_clusters", 1)  # files of version 1 know no more
    wrong = {
        name: not _is_count(value := options.get(name, least)) or value < least
        for name, least in LEAST.items()
    }
    wrong |= {name: options.get(name, known[0]) not in known for name, known in CHOICES.items()}
    wrong |= {
        name: not _is_number(options.get(name, 1)) or options.get(name, 1) < 0
        for name in ("sigma", "share_prior")
    }
    prior = options.get("alpha_prior", [1, 1])
    wrong["alpha_prior"] = (
        not isinstance(prior, list) or len(prior) != 2 or not all(map(_is_number, prior))
    )
    wrong["n_clusters"] |= options["n_clusters"] != n_clusters
    wrong["n_draws"] |= "n_draws" not in options
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise WrongFileError(f"has damaged settings: {name} is {options.get(name)!r}")


def _is_count(value: Any, or_none: bool = False) -> bool:
    return (value is None and or_none) or (type(value) is int and value >= 0)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_ridge(value: Any) -> bool:
    return value is None or (_is_number(value) and value >= 0)


def _is_curve(curve: Any) -> bool:
    """The curve of `choose_clusters`."""
    if not isinstance(curve, dict) or not _is_count(curve.get("chosen")):
        return False
    columns = [curve.get(name) for name in ("n_clusters", "means", "errors")]
    return all(
        isinstance(column, list)
        and len(column) == len(columns[0] or ())
        and all(_is_number(value) for value in column)
        for column in columns
    )


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


def _plain_name(name: Any) -> str | int | float:
    if isinstance(name, str | int | float):
        return name
    raise TypeError(f"item names must be text or numbers to be saved, got {name!r}")
