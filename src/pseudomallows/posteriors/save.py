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
    ALPHAS,
    CORRECTION,
    PERSONAL,
    POSTERIOR,
    SPARSE,
    check_alphas,
    check_correction,
    check_personal,
    check_posterior,
    check_settings,
)
from .corrections import Correction
from .personal_fit import Fit, PersonalFit, Undated, as_posterior
from .posterior import Posterior
from .recency import Recency

FORMAT, VERSION, HEADER = "pseudomallows posterior", 7, "header.json"
OWN, UNDATED = "personal_", "personal_undated_"  # beginnings of names
DTYPES: dict[str, Any] = {
    **{name: dtype for name, (dtype, _) in POSTERIOR.items()},
    **{OWN + name: dtype for name, (dtype, _) in (PERSONAL | SPARSE | CORRECTION).items()},
    **{UNDATED + name: dtype for name, (dtype, _) in (ALPHAS | CORRECTION).items()},
    "personal_population": np.uint8,
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
        arrays = {name: getattr(fit, name) for name in POSTERIOR}
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
        names = personal if is_personal else list(POSTERIOR)
        names += [name for name in header["arrays"] if _type_in_data(name) is not None]
        arrays = {str(name): _read_array(archive, name, header) for name in names}
    items, users = (_names(header[what], what) for what in ("items", "users"))
    data, settings = _read_data(arrays, users, items), header["settings"]
    fields: dict[str, Any] = {"items": items, "users": users, "data": data, "settings": settings}
    if is_personal:
        check_settings(settings, is_personal, len(users), 1)
        return PersonalFit(**_read_personal(arrays, fields), **fields)
    check_posterior(arrays, len(items), len(users))
    check_settings(settings, is_personal, len(users), arrays["consensus"].shape[2])
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
    arrays = {OWN + name: getattr(fit, name) for name in PERSONAL}
    if fit.is_sparse:
        weights = fit.item_weights
        rows = (weights.indptr, weights.indices, weights.data, fit.left, fit.right)
        for (name, (dtype, _)), part in zip(SPARSE.items(), rows, strict=True):
            arrays[OWN + name] = part.astype(dtype)
        arrays["personal_item_weights"] = np.empty((0, 0))
    arrays |= _correction_arrays(fit.correction, OWN)
    if fit.undated is not None:
        arrays |= {f"{UNDATED}{name}": getattr(fit.undated, name) for name in ALPHAS}
        arrays |= _correction_arrays(fit.undated.correction, UNDATED)
    if fit.population is not None:  # its data are those of the fit
        stream = io.BytesIO()
        _write(replace(fit.population, data=None), stream)
        arrays["personal_population"] = np.frombuffer(stream.getvalue(), dtype=np.uint8)
    return arrays


def _correction_arrays(correction: Correction | None, prefix: str) -> dict[str, NDArray[Any]]:
    if correction is None:
        return {}
    return {f"{prefix}{name}": np.asarray(getattr(correction, name)) for name in CORRECTION}


def _read_personal(arrays: dict[str, NDArray[Any]], fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that only a personal fit has."""
    n_items, n_users = len(fields["items"]), len(fields["users"])
    if fields["data"] is None:
        raise WrongFileError("is damaged: its clicks are missing")
    is_sparse, undated = "personal_weight_starts" in arrays, None
    try:
        parts = {name: arrays[OWN + name] for name in PERSONAL | (SPARSE if is_sparse else {})}
        check_personal(parts, is_sparse, n_items, n_users)
        correction = _read_correction(arrays, OWN)
        if f"{UNDATED}alphas" in arrays:
            alphas = {name: arrays[UNDATED + name] for name in ALPHAS}
            check_alphas(alphas)
            undated = Undated(**alphas, correction=_read_correction(arrays, UNDATED))
    except KeyError:
        raise WrongFileError("is damaged: its personal scores do not fit together") from None
    own: dict[str, Any] = dict(parts)
    if is_sparse:
        from scipy.sparse import csr_array

        rows = tuple(own.pop(f"weight_{name}") for name in ("values", "items", "starts"))
        own["item_weights"] = csr_array(rows, shape=(n_items, n_items))
    if "personal_population" in arrays:
        inner = _read(io.BytesIO(arrays["personal_population"].tobytes()), is_inner=True)
        if (inner.n_items, inner.n_users, inner.n_clusters) != (n_items, n_users, 1):
            raise WrongFileError("is damaged: its consensus is of other users or items")
        own["population"] = replace(as_posterior(inner), data=fields["data"])
    recency = fields["settings"]["options"].get("recency")
    return own | {
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
