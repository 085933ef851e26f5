import io
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.files import ARRAYS, write_whole


@pytest.fixture(scope="module")
def posterior():
    prefs = pm.simulate_rankings(30, 5, 2, rng=1).preferences.rename(items=list("abcdé"))
    return pm.fit(prefs, "balanced", n_draws=200, rng=1)


@pytest.fixture
def path(posterior, tmp_path):
    posterior.save(tmp_path / "a posterior.pm")
    return tmp_path / "a posterior.pm"


def test_a_saved_posterior_comes_back_whole(posterior, path):
    again = pm.load(path)
    for name in ARRAYS:
        assert (getattr(again, name) == getattr(posterior, name)).all() or name == "log_posterior"
        assert getattr(again, name).dtype == getattr(posterior, name).dtype
    assert np.isnan(again.log_posterior).all()
    assert again.items.tolist() == list("abcdé")
    assert again.settings == posterior.settings
    assert again.point_consensus("map").tolist() == posterior.point_consensus("map").tolist()
    assert os.listdir(path.parent) == ["a posterior.pm"]


def test_numpy_opens_the_file_without_pickle(posterior, path):
    with np.load(path, allow_pickle=False) as archive:
        assert (archive["consensus"] == posterior.consensus).all()


def test_numbers_as_names_come_back_as_numbers(tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [1, 3, 2]])
    pm.fit(prefs, alpha=1, rng=1).save(tmp_path / "x")
    assert pm.load(tmp_path / "x").items.tolist() == [0, 1, 2]


def test_names_that_cannot_be_written_are_refused_before_anything_is_written(posterior, tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2]], items=[("a", 1), ("b", 2)])
    with pytest.raises(TypeError, match=r"must be text or numbers to be saved, got \('a', 1\)"):
        pm.fit(prefs, alpha=1, rng=1).save(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError), write_whole(target) as stream:  # noqa: PT012
        stream.write(b"half")
        raise RuntimeError
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_has_the_usual_permissions(path):
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("length", [0, 1, 100, 0.5, 0.99])
def test_a_file_cut_short_is_refused(path, length):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(length * len(whole)) if isinstance(length, float) else length])
    with pytest.raises(ValueError, match="is not a saved posterior, or is damaged"):
        pm.load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_a_damaged_byte_never_gives_another_posterior(posterior, path, data):
    whole = path.read_bytes() if not hasattr(posterior, "_bytes") else posterior._bytes
    object.__setattr__(posterior, "_bytes", whole)
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    try:
        found = pm.load(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert (found.consensus == posterior.consensus).all()
        assert (found.alpha == posterior.alpha).all()
        assert (found.weights == posterior.weights).all()


def rewrite(path, change):
    """Write the file again with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    change(header, members)
    if "header.json" in members:
        members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def other_array(header, members):
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 2)))
    members["alpha.npy"] = stream.getvalue()


def pickled_array(header, members):
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    members["alpha.npy"] = stream.getvalue()


def wrong_ranks(header, members):
    array = np.load(io.BytesIO(members["consensus.npy"]))
    array[0, 0, 0, 0] = 99
    stream = io.BytesIO()
    np.save(stream, array)
    members["consensus.npy"] = stream.getvalue()


def wrong_axes(header, members):
    other_array(header, members)
    header["arrays"]["alpha"] = {"dtype": "<f8", "shape": [2, 2]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, m: m.pop("header.json"), "not a saved posterior: it has no header.json"),
        (lambda h, m: h.update(format="other"), "its header has another format"),
        (
            lambda h, m: h.update(version=99),
            "has format version 99, and this program reads up to 2",
        ),
        (lambda h, m: h.update(version="1"), "has format version '1'"),
        (lambda h, m: h.pop("items"), "'items' is missing"),
        (lambda h, m: h.update(items=["a"]), "do not fit together"),
        (lambda h, m: m.pop("alpha.npy"), "has no array 'alpha'"),
        (other_array, "'alpha' that does not agree with its header"),
        (wrong_axes, "'alpha' with 2 axes"),
        (pickled_array, "has a damaged array 'alpha'"),
        (wrong_ranks, "its consensus is not made of rankings"),
    ],
)
def test_a_foreign_file_is_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(ValueError, match=message):
        pm.load(path)


def test_a_place_that_cannot_be_written_is_named(posterior, tmp_path):
    with pytest.raises(OSError, match="it is a folder"):
        posterior.save(tmp_path)
    with pytest.raises(OSError, match="there is no folder"):
        posterior.save(tmp_path / "nowhere" / "x.pm")


def test_a_text_file_and_a_missing_file_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("user,item\n1,2\n")
    with pytest.raises(ValueError, match=r"x\.csv is not a saved posterior"):
        pm.load(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        pm.load(tmp_path / "nothing")
