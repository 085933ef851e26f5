"""Files of NumPy arrays and sparse matrices, sound and forged."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import pseudomallows as pm
from pseudomallows.data import archive

TABLE = np.array([[1, 0, 2, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
CSR = {"format": b"csr", "shape": [2, 3], "data": [1, 1, 1, 1]}
CSR |= {"indices": [0, 2, 0, 1], "indptr": [0, 2, 4]}
DAMAGED = "this is a sparse matrix that is damaged: "  # and why, in the words of SciPy
COO = {"format": b"coo", "shape": [2, 3], "data": [1, 1], "row": [0, 1], "col": [2, 0]}


def read(path):
    return pm.read(path, "clicks")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_of_every_form(tmp_path, form, kind):
    path = tmp_path / "x.npz"
    sparse.save_npz(path, kind(TABLE).asformat(form))
    found = read(path)
    assert found.starts.tolist() == [0, 2, 3, 5]
    assert found.codes.tolist() == [0, 2, 3, 0, 1]
    sparse.save_npz(path, kind((3, 4)).asformat(form))
    assert read(path).n_clicks.tolist() == [0, 0, 0]


def test_room_beyond_the_last_row_is_not_read(tmp_path):
    np.savez(tmp_path / "x.npz", **CSR | {"indices": [0, 2, 0, 1, 99], "data": [1] * 5})
    assert read(tmp_path / "x.npz").codes.tolist() == [0, 2, 0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": [0, 1000, 4]}, DAMAGED),
        ({"indptr": [0, -5, 4]}, DAMAGED),
        ({"indptr": [0, 10**7, 4]}, DAMAGED),
        ({"indptr": [0, 2, 10**7]}, DAMAGED),
        ({"indptr": [1, 2, 4]}, DAMAGED),
        ({"indptr": [0, 4]}, DAMAGED),
        ({"indptr": np.array([0, 2**64 - 5, 4], np.uint64)}, DAMAGED),
        ({"format": [b"csr", b"csc"]}, "must be csr, csc or coo, got .b.csr., b.csc."),
        ({"indptr": []}, "'indptr' of a sparse matrix must be whole numbers, got float64"),
        ({"indptr": [0.0, 2.0, 4.0]}, "'indptr' of a sparse matrix must be whole numbers"),
        ({"indices": [0, 2, 0, 3]}, DAMAGED),
        ({"indices": [0, 2, 0, -1]}, DAMAGED),
        ({"indices": [[0, 2, 0, 1]]}, "'indices' of a sparse matrix is missing, or has not one"),
        ({"data": [1, 1]}, DAMAGED),
        ({"data": ["a"] * 4}, "'data' of a sparse matrix must be numbers, got <U1"),
        ({"data": [1, 1, np.nan, 1]}, "must be 0 .* or more"),
        ({"shape": [2]}, "must be two numbers, got .2."),
        ({"shape": [-2, 3]}, "must be two numbers"),
        ({"shape": [2, 10**15]}, "2 x 1000000000000000: .* of memory"),
        ({"shape": [10**15, 3]}, "1000000000000000 x 3: .* of memory"),
        ({"shape": [3, 3]}, DAMAGED),
        ({"format": b"bsr"}, r"must be csr, csc or coo, got 'bsr': use \.tocsr"),
        ({"format": [b"csr"] * 2}, "x.npz"),
    ],
)
def test_forged_matrices_are_refused(tmp_path, changes, message):
    path = tmp_path / "x.npz"
    np.savez(path, **CSR | changes)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert "x.npz" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row": [0, 5]}, DAMAGED),
        ({"col": [0, -1]}, DAMAGED),
        ({"col": [0]}, DAMAGED),
        ({"shape": [10**15, 3]}, "of memory, and"),
    ],
)
def test_forged_lists_of_cells_are_refused(tmp_path, changes, message):
    np.savez(tmp_path / "x.npz", **COO | changes)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.npz")


def test_a_matrix_without_its_arrays(tmp_path):
    for name in ("data", "indices", "indptr"):
        np.savez(tmp_path / "x.npz", **{key: value for key, value in CSR.items() if key != name})
        with pytest.raises(ValueError, match=f"'{name}' of a sparse matrix is missing"):
            read(tmp_path / "x.npz")


def test_an_array_that_claims_more_than_it_has(tmp_path):
    """Not even room is made for it."""
    claimed = io.BytesIO()
    said = {"descr": "<i8", "fortran_order": False, "shape": (10**8, 10)}
    np.lib.format.write_array_header_1_0(claimed, said)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("clicks.npy", claimed.getvalue() + bytes(80))
    tracemalloc.start()
    with pytest.raises(ValueError, match="it claims 8 GB, and 80 bytes are there"):
        read(tmp_path / "x.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_any_numbers_are_a_sound_matrix_or_refused(tmp_path, data):
    """Whatever is let through, SciPy finds sound too."""
    small = st.lists(st.integers(-3, 6), max_size=6)
    forged = {
        "format": np.array(data.draw(st.sampled_from([b"csr", b"csc"]))),
        "shape": np.array(data.draw(st.lists(st.integers(-1, 5), min_size=2, max_size=2))),
        "data": np.array(data.draw(st.lists(st.just(1), max_size=6)), np.int64),
        "indices": np.array(data.draw(small), np.int64),
        "indptr": np.array(data.draw(small), np.int64),
    }
    try:
        found = archive.sparse_matrix(forged)
    except ValueError:
        return
    kind = sparse.csr_array if forged["format"] == b"csr" else sparse.csc_array
    parts = (forged["data"], forged["indices"], forged["indptr"])
    other = kind(parts, shape=tuple(forged["shape"].tolist()))
    other.check_format(full_check=True)
    assert (found.toarray() == other.toarray()).all()


def test_a_sparse_matrix_of_hardly_any_numbers_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    ones = sparse.coo_array(([1, 1], ([0, 1], [0, 10**8 - 1])), shape=(2, 10**8))
    sparse.save_npz(path, ones)
    with pytest.raises(ValueError, match="2 x 100000000 with 2 numbers is nearly empty"):
        pm.read(path)
