"""Arrays and JSON in one file: what comes back, and what is refused."""

import io
import zipfile

import numpy as np
import pytest

from pseudomallows.data.archive import WrongFileError, open_archive, write_archive

ARRAYS = {"ranks": np.arange(6, dtype=np.int32).reshape(2, 3), "names": np.array(["a", "é"])}


def written(packed=True):
    stream = io.BytesIO()
    write_archive(stream, "header.json", {"kind": "x"}, ARRAYS, packed=packed)
    return stream.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_written_comes_back(packed):
    with open_archive(io.BytesIO(written(packed))) as archive:
        assert archive.header("header.json") == {"kind": "x"}
        assert archive.arrays == list(ARRAYS)
        for name, array in ARRAYS.items():
            found = archive.array(name)
            assert found.dtype == array.dtype
            assert found.tolist() == array.tolist()
        with pytest.raises(WrongFileError, match="has no array 'none'"):
            archive.array("none")


def test_every_cut_is_found():
    whole = written()
    for end in range(0, len(whole), 7):
        with pytest.raises(WrongFileError, match="is damaged or cut short"):  # noqa: SIM117
            with open_archive(io.BytesIO(whole[:end])):
                pass


def test_objects_and_false_claims_are_refused():
    pickled, short = io.BytesIO(), io.BytesIO()
    np.save(pickled, np.array([{}], dtype=object))
    np.save(short, np.zeros(1000))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("pickled.npy", pickled.getvalue())
        archive.writestr("short.npy", short.getvalue()[:-8])
        archive.writestr("header.json", "[1]")
    with open_archive(stream) as archive:
        with pytest.raises(WrongFileError, match="'pickled': it holds objects"):
            archive.array("pickled")
        with pytest.raises(WrongFileError, match="'short': it claims 8"):
            archive.array("short")
        with pytest.raises(WrongFileError, match="it is not an object"):
            archive.header("header.json")
