"""Results as data frames: of the library that the data came in, or of the one that is asked for."""

from importlib.util import find_spec

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.frames import make_frame

narwhals = pytest.importorskip("narwhals")
LOG = {"user": ["ann", "ann", "bob", "eve", "eve"], "item": ["tea", "rum", "tea", "ale", "tea"]}
RANKS = {"tea": [1, 1, 2], "rum": [2, 3, 1], "ale": [3, 2, 3]}
LIBRARIES = ["pandas", "polars", "pyarrow"]
EVERY_LIBRARY = [*LIBRARIES, "modin", "duckdb", "datasets"]


def native(columns, library):
    pytest.importorskip("modin.pandas" if library == "modin" else library)
    return make_frame(columns, library)


def library_of(frame):
    return type(frame).__module__.split(".")[0]


def as_dict(frame):
    if library_of(frame) == "duckdb":
        frame = frame.to_arrow_table()
    if library_of(frame) == "datasets":
        return frame.to_dict()
    if library_of(frame) == "modin":
        frame = frame.modin.to_pandas()
    return narwhals.from_native(frame).to_dict(as_series=False)


@pytest.mark.parametrize("library", EVERY_LIBRARY)
def test_results_are_frames_of_the_library_that_the_clicks_came_in(library, tmp_path):
    prefs = pm.Preferences.from_clicks(native(LOG, library))
    posterior = pm.fit(prefs, "pseudo", alpha=2, n_clusters=2, rng=1)
    posterior.save(tmp_path / "m.pm")
    for fit in (posterior, pm.load(tmp_path / "m.pm"), posterior.update(prefs.take([0]), rng=1)):
        results = [
            fit.to_frame(),
            fit.membership_frame(),
            pm.recommend(fit, 2).to_frame(),
            pm.recommend(fit, 2, clicks={"new": ["tea"]}).to_frame(),
            pm.similar_items(fit, "tea", 1).to_frame(),
            pm.explain(fit, "bob", "rum").to_frame(),
            pm.next_pairs(fit, n=1, rng=1).to_frame(),
        ]
        assert {library_of(frame) for frame in results} == {library}
        assert as_dict(results[0])["item"] == [row["item"] for row in fit.summary()]
        assert as_dict(results[2]) == as_dict(pm.recommend(fit, 2).to_frame("polars"))


@pytest.mark.parametrize("library", EVERY_LIBRARY)
def test_every_kind_of_data_remembers_its_library(library):
    tall = {"user": ["ann"] * 2, "item": ["tea", "ale"], "clicked": [1, 0]}
    pairs = {"user": ["ann"] * 2, "better": ["tea", "ale"], "worse": ["rum", "rum"]}
    ranked = pm.Preferences.from_rankings(native(RANKS, library))
    clicked = pm.Preferences.from_clicks(native(LOG, library))
    every = [
        ranked,
        clicked,
        pm.Preferences.from_orderings(native({"1st": ["tea"], "2nd": ["ale"]}, library)),
        pm.Preferences.from_impressions(native(tall, library)),
        pm.Preferences.from_pairs(native(pairs, library)),
        pm.Preferences.concat([ranked.rename(users=["x", "y", "z"]), clicked]),
    ]
    assert {prefs.backend for prefs in every} == {library}
    assert {prefs.take([0]).backend for prefs in every} == {library}
    posterior = pm.fit(ranked, "pseudo", alpha=3, rng=1)
    assert library_of(posterior.to_frame()) == library


def test_new_users_get_their_answer_in_their_own_library():
    posterior = pm.fit(pm.Preferences.from_clicks(LOG), "pseudo", alpha=2, rng=1)
    clicks = native({"user": ["new"], "item": ["tea"]}, "polars")
    assert library_of(pm.recommend(posterior, 1, clicks=clicks).to_frame()) == "polars"
    assert library_of(pm.recommend(posterior, 1, clicks=clicks.lazy()).to_frame()) == "polars"


def test_without_a_frame_pandas_comes_first_and_then_polars(monkeypatch):
    best = pm.recommend(pm.fit(pm.Preferences.from_clicks(LOG), "pseudo", alpha=2, rng=1), 1)
    assert best.backend is None
    assert library_of(best.to_frame()) == "pandas"
    assert library_of(best.to_frame("pyarrow")) == "pyarrow"
    monkeypatch.setattr("pseudomallows.data.frames.find_spec", lambda name: name == "polars")
    assert library_of(best.to_frame()) == "polars"
    assert library_of(make_frame({"n": [1]}, None, "pandas")) == "polars"  # not installed here
    with pytest.raises(ValueError, match=r"backend must be one of 'pandas', .*got 'excel'"):
        best.to_frame("excel")


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_of_several_types_become_text(library):
    names = np.array(["tea", 7, None], dtype=object)
    columns = {"name": names, "n": np.array([1, 2, 3], dtype=object), "x": np.array([0.5, 1, 2])}
    found = as_dict(make_frame(columns, library))
    assert found["name"][:2] == ["tea", "7"]
    assert found["name"][2] in (None, pytest.approx(float("nan"), nan_ok=True))
    assert found["n"] == [1, 2, 3]
    assert found["x"] == [0.5, 1, 2]
    assert as_dict(make_frame({"name": np.array([], dtype=object)}, library)) == {"name": []}
    pairs = np.empty(2, dtype=object)
    pairs[:] = [("a", 1), ("b", 2)]
    assert as_dict(make_frame({"name": pairs}, library))["name"] == ["('a', 1)", "('b', 2)"]


@pytest.mark.skipif(find_spec("modin") is not None, reason="modin is installed here")
def test_a_library_that_is_not_installed_is_named():
    with pytest.raises(ModuleNotFoundError, match="frames of modin need modin: pip install modin"):
        make_frame({"n": [1]}, "modin")
