"""Files: saved fits, written whole or not at all.

A saved fit is a ZIP archive that `numpy.load` can open too, without pickle:

- ``header.json``: {"format": "pseudomallows posterior", "version": 7, "items": [...],
  "users": [...], "settings": {...}, "arrays": {name: {"dtype": ..., "shape": [...]}}};
- of a :class:`Posterior`, its arrays: ``consensus.npy``, ``alpha.npy``, ``weights.npy``,
  ``log_posterior.npy``, ``best.npy``, ``latent.npy``, ``shares.npy``, ``chain_memberships.npy``,
  ``errors.npy``;
- of a :class:`PersonalFit`, ``personal_*.npy``: its arrays and those of its correction, if it has
  one; ``personal_undated_*.npy``, alphas and correction for clicks without times; with very many
  items its weights are the rows of a sparse array, ``personal_weight_*.npy``, and factors;
  ``personal_population.npy``, the bytes of another such archive, if it has the consensus of all
  users;
- of a fit from clicks, ``click_starts.npy``, ``click_codes.npy``, ``click_weights.npy``: the
  clicks, row by row; of one from comparisons ``pair_*.npy``; of one from several kinds,
  ``mixed_parts.npy``, and the arrays of each part with its number before them, ``part0_*.npy``.

Files of other versions are refused.
"""

import io
import os
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..files.archive import START, Archive, WrongFileError, open_archive, write_archive
from ..files.atomic import check_path, write_whole
from ..preferences import KINDS, Preferences
from .check_saved import (
    ARRAYS,
    check_alphas,
    check_correction,
    check_options,
    check_personal,
    check_settings,
    check_shapes,
    check_values,
)
from .corrections import Correction
from .personal_fit import Fit, PersonalFit, Undated, as_posterior
from .posterior import Posterior
from .recency import Recency

FORMAT, VERSION, HEADER = "pseudomallows posterior", 7, "header.json"
ALPHAS = ("alphas", "alpha_shares")
PERSONAL = ("item_weights", "popularity", "ties", *ALPHAS, "scores", "bias", "first")
CORRECTION = ("coefficients", "marks", "knots", "values", "slopes", "largest")
UNDATED = "personal_undated_"
SPARSE = ("weight_starts", "weight_items", "weight_values", "left", "right")  # with many items
DTYPES: dict[str, Any] = {  # all others are floats
    "consensus": np.int32,
    "latent": np.int32,
    "best": np.int32,
    "chain_memberships": np.float32,
    "personal_ties": np.int64,
    "personal_largest": np.int64,
    "personal_undated_largest": np.int64,
    "personal_population": np.uint8,
    "personal_weight_starts": np.int64,
    "personal_weight_items": np.int32,
    "personal_weight_values": np.float32,
    "personal_left": np.float32,
    "personal_right": np.float32,
}


def save(fit: Fit, path: str | os.PathLike[str]) -> None:
    """Write a fit to a file, whole or not at all."""
    content = io.BytesIO()
    _write(fit, content)  # fails here, before anything is written
    with write_whole(path) as stream:
        stream.write(content.getbuffer())


def _write(fit: Fit, stream: IO[bytes]) -> None:
    if isinstance(fit, PersonalFit):
        arrays = _personal_arrays(fit)
    else:
        arrays = {name: getattr(fit, name) for name in ARRAYS}
    if fit.data is not None:
        arrays |= fit.data.to_arrays()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "items": [_plain_name(name) for name in fit.items.tolist()],
        "users": [_plain_name(name) for name in fit.users.tolist()],
        "settings": fit.settings,
        "arrays": {
            name: {"dtype": array.dtype.str, "shape": list(array.shape)}
            for name, array in arrays.items()
        },
    }
    write_archive(stream, HEADER, header, arrays, packed=True)


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit that :meth:`Posterior.save` or :meth:`PersonalFit.save` has written.

    A file that is damaged, cut short, forged or of another kind is refused with a ValueError.
    """
    content = check_path(path).read_bytes()
    try:
        return _read(io.BytesIO(content))
    except WrongFileError as error:
        if not content.startswith(START):
            raise ValueError(
                f"{path} is not a saved posterior, or is damaged: it is no ZIP archive"
            ) from None
        raise ValueError(f"{path} {error}") from None


def _read(content: IO[bytes], is_inner: bool = False) -> Fit:
    """A fit; an inner one, the consensus of another, is a posterior."""
    with open_archive(content) as archive:
        header = _read_header(archive)
        personal = [name for name in header["arrays"] if name.startswith("personal_")]
        is_personal = bool(personal) and not is_inner
        names = personal if is_personal else list(ARRAYS)
        names += [name for name in header["arrays"] if _type_in_data(name) is not None]
        arrays = {str(name): _read_array(archive, name, header) for name in names}
    items, users = (_names(header[what], what) for what in ("items", "users"))
    data, settings = _read_data(arrays, users, items), header["settings"]
    check_settings(settings, is_personal, len(users))
    fields: dict[str, Any] = {"items": items, "users": users, "data": data, "settings": settings}
    if is_personal:
        return PersonalFit(**_read_personal(arrays, fields), **fields)
    check_shapes(header, arrays)
    check_values(arrays)
    check_options(settings["options"], arrays["consensus"].shape[2])
    return Posterior(**(fields | arrays))


def _read_data(
    arrays: dict[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
) -> Preferences | None:
    """Take the data out of `arrays`, if they are kept there."""
    for kind in KINDS.values():
        if kind.ARRAYS.keys() <= arrays.keys():
            names = [name for name in arrays if kind.array_type(name) is not None]
            mine = {name: arrays.pop(name) for name in names}
            try:
                return kind.from_arrays(mine, users, items)
            except ValueError as error:
                raise WrongFileError(f"is damaged: {error}") from None
    if any(_type_in_data(name) is not None for name in arrays):
        raise WrongFileError("is damaged: its data are not whole")
    return None


def _type_in_data(name: str) -> Any:
    """The type of an array of the data, None for one of the fit."""
    types = (kind.array_type(name) for kind in KINDS.values())
    return next((dtype for dtype in types if dtype is not None), None)


def _personal_arrays(fit: PersonalFit) -> dict[str, NDArray[Any]]:
    """Arrays of a personal fit."""
    arrays = {f"personal_{name}": getattr(fit, name) for name in PERSONAL}
    if fit.is_sparse:
        arrays |= _sparse_arrays(fit)
    arrays |= _correction_arrays(fit.correction, "personal_")
    if fit.undated is not None:
        arrays |= {f"{UNDATED}{name}": getattr(fit.undated, name) for name in ALPHAS}
        arrays |= _correction_arrays(fit.undated.correction, UNDATED)
    if fit.population is not None:  # its data are those of the fit
        arrays["personal_population"] = _packed(replace(fit.population, data=None))
    return arrays


def _correction_arrays(found: Correction | None, prefix: str) -> dict[str, NDArray[Any]]:
    if found is None:
        return {}
    return {f"{prefix}{name}": np.asarray(getattr(found, name)) for name in CORRECTION}


def _packed(inner: Posterior) -> NDArray[np.uint8]:
    stream = io.BytesIO()
    _write(inner, stream)
    return np.frombuffer(stream.getvalue(), dtype=np.uint8)


def _sparse_arrays(fit: PersonalFit) -> dict[str, NDArray[Any]]:
    """Sparse item weights, by rows, and factors; an empty array stands for the weights."""
    weights = fit.item_weights
    parts = (
        weights.indptr.astype(np.int64),
        weights.indices.astype(np.int32),
        weights.data.astype(np.float32),
        fit.left,
        fit.right,
    )
    named = {f"personal_{name}": part for name, part in zip(SPARSE, parts, strict=True)}
    return named | {"personal_item_weights": np.empty((0, 0))}


def _read_sparse(parts: dict[str, NDArray[Any]], n_items: int) -> dict[str, Any]:
    """The fields of sparse item weights."""
    from scipy.sparse import csr_array

    rows = (parts["weight_values"], parts["weight_items"], parts["weight_starts"])
    weights = csr_array(rows, shape=(n_items, n_items))
    return {"item_weights": weights, "left": parts["left"], "right": parts["right"]}


def _read_personal(arrays: dict[str, NDArray[Any]], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that only a personal fit has."""
    n_items, n_users = len(fields["items"]), len(fields["users"])
    if fields["data"] is None:
        raise WrongFileError("is damaged: its clicks are missing")
    is_sparse = "personal_weight_starts" in arrays
    names = (*PERSONAL, *(SPARSE if is_sparse else ()))
    try:
        parts = {name: arrays[f"personal_{name}"] for name in names}
        check_personal(parts, n_items, n_users)
        correction, undated = _read_correction(arrays, "personal_"), None
        if f"{UNDATED}alphas" in arrays:
            alphas, shares = (arrays[f"{UNDATED}{name}"] for name in ALPHAS)
            check_alphas(alphas, shares)
            undated = Undated(alphas, shares, _read_correction(arrays, UNDATED))
    except (KeyError, TypeError, ValueError, IndexError):
        raise WrongFileError("is damaged: its personal scores do not fit together") from None
    found: dict[str, Any] = {name: parts[name] for name in PERSONAL}
    found |= _read_sparse(parts, n_items) if is_sparse else {}
    if "personal_population" in arrays:
        inner = _read(io.BytesIO(arrays["personal_population"].tobytes()), is_inner=True)
        if (inner.n_items, inner.n_users, inner.n_clusters) != (n_items, n_users, 1):
            raise WrongFileError("is damaged: its consensus is of other users or items")
        found["population"] = replace(as_posterior(inner), data=fields["data"])
    recency = fields["settings"]["options"].get("recency")
    return found | {
        "correction": correction,
        "undated": undated,
        "distance": fields["settings"]["distance"],
        "recency": None if recency is None else Recency(**recency),
    }


def _read_correction(arrays: dict[str, NDArray[Any]], prefix: str) -> Correction | None:
    if f"{prefix}coefficients" not in arrays:
        return None
    parts = {name: arrays[f"{prefix}{name}"] for name in CORRECTION}
    check_correction(parts)
    largest = int(parts.pop("largest"))
    return Correction(**parts, largest=largest)


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
    dtype = np.dtype(_type_in_data(name) or DTYPES.get(name, np.float64))
    if array.dtype.kind != dtype.kind:
        raise WrongFileError(f"has an array {name!r} of {array.dtype}, and it must be {dtype}")
    return array.astype(dtype, copy=False)


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
