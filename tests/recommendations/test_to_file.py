"""Recommendations in blocks: the answers of `recommend`, in files that are whole or not there."""

import csv
import functools
import gzip
import json
import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pseudomallows as pm
from pseudomallows.recommendations import to_file as stream

pq = pytest.importorskip("pyarrow.parquet")

NEW = {"zoe": ["b", "d"], "ann": [], "eve": list("abcdefgh"), "bob": ["h"]}
KINDS = {
    "pseudo": {"alpha": 5, "n_draws": 20},
    "mcmc": {"method": "mcmc", "alpha": 5, "n_draws": 10, "warmup": 5, "thin": 1, "n_chains": 1},
    "clusters": {"n_clusters": 2, "n_draws": 10, "warmup": 4},
    "personal": {"method": "personal", "calibrate": False},
}


@functools.cache
def make_clicks():
    prefs = pm.simulate_clicks(61, 8, [6, 6], 3, rng=1).preferences
    return prefs.rename(users=[f"u{row:02}" for row in range(61)], items=list("abcdefgh"))


@functools.cache
def model(kind="pseudo"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(make_clicks(), rng=1, **KINDS[kind])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(stream, "ROWS", 7)


def read_back(path):
    """Rows (user, place, item, probability) of a file."""
    name = path.name
    if name.endswith(".parquet"):
        rows = pq.read_table(path).to_pylist()
    elif name.endswith(".json"):
        rows = json.loads(path.read_text())
    elif name.endswith(".xlsx"):
        rows = pl.read_excel(path, raise_if_empty=False).to_dicts()
    else:
        text = gzip.decompress(path.read_bytes()).decode() if name.endswith("gz") else None
        lines = (path.read_text() if text is None else text).splitlines()
        rows = list(csv.DictReader(lines, delimiter="\t" if ".tsv" in name else ","))
    assert all(list(row) == ["user", "place", "item", "probability"] for row in rows)
    return [
        (str(r["user"]), int(r["place"]), str(r["item"]), float(r["probability"])) for r in rows
    ]


def rows_of(found):
    columns = found.to_columns()
    probabilities = np.round(columns["probability"], 6).tolist()
    names = ([str(name) for name in columns[key].tolist()] for key in ("user", "item"))
    users, items = names
    return list(zip(users, columns["place"].tolist(), items, probabilities, strict=True))


ENDINGS = ["csv", "tsv", "csv.gz", "tsv.gz", "json", "parquet", "xlsx"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_users_of_the_fit(tmp_path, ending):
    path, seen = tmp_path / f"answers.{ending}", []
    count = pm.recommendations.recommend_to(
        model(), path, 3, progress=lambda done, total: seen.append((done, total))
    )
    assert count == 61
    assert read_back(path) == rows_of(pm.recommend(model(), 3))
    assert seen == [(done, 9) for done in range(1, 10)]
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model(tmp_path, kind):
    path = tmp_path / "answers.csv"
    pm.recommendations.recommend_to(model(kind), path, 2, window=4)
    assert read_back(path) == rows_of(pm.recommend(model(kind), 2, window=4))
    assert pm.recommendations.recommend_to(model(kind), path, 2, clicks=NEW) == 4
    assert read_back(path) == rows_of(pm.recommend(model(kind), 2, clicks=NEW))


@pytest.mark.parametrize("ending", ENDINGS)
def test_blocks_and_threads_leave_no_trace(tmp_path, monkeypatch, ending):
    contents = []
    for rows, executor in ((1, pm.Threads(1)), (7, pm.Threads(2)), (1000, None)):
        monkeypatch.setattr(stream, "ROWS", rows)
        path = tmp_path / f"answers.{ending}"
        pm.recommendations.recommend_to(model("clusters"), path, 3, executor=executor)
        contents.append(read_back(path) if ending == "parquet" else path.read_bytes())
        if ending.endswith("gz"):
            contents[-1] = gzip.decompress(contents[-1])
    assert contents[0] == contents[1] == contents[2]


def test_more_than_there_are(tmp_path):
    path = tmp_path / "answers.tsv"
    pm.recommendations.recommend_to(model(), path, 100)
    assert read_back(path) == rows_of(pm.recommend(model(), 100))
    counts = dict.fromkeys(make_clicks().users.tolist(), 0)
    for user, *_ in read_back(path):
        counts[user] += 1
    assert list(counts.values()) == (8 - make_clicks().n_clicks).tolist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_nobody(tmp_path, ending):
    path, nobody = tmp_path / f"answers.{ending}", make_clicks().take(np.empty(0, int))
    assert pm.recommendations.recommend_to(model(), path, clicks=nobody) == 0
    assert read_back(path) == []
    if ending == "parquet":
        assert pq.read_table(path).column_names == ["user", "place", "item", "probability"]
    if ending == "csv":
        assert path.read_text() == "user,place,item,probability\n"


def test_a_model_that_keeps_no_users_needs_clicks(tmp_path):
    path, lean = tmp_path / "answers.csv", stream.without_users(model())
    with pytest.raises(ValueError, match="keeps no users, as it was fitted to parts"):
        pm.recommendations.recommend_to(lean, path)
    with pytest.raises(ValueError, match="keeps no users, as it was fitted to parts"):
        pm.recommend(lean)
    assert not path.exists()
    assert pm.recommendations.recommend_to(lean, path, clicks=NEW) == 4
    assert lean.chain_memberships.size == 0  # they would travel to every worker


def test_standard_output(capfdbinary):
    pm.recommendations.recommend_to(model(), "-", 1, clicks={"zoe": ["a"]}, as_json=True)
    (row,) = json.loads(capfdbinary.readouterr().out)
    assert (row["user"], row["place"]) == ("zoe", 1)


# Whole or not at all


class StopHereError(Exception):
    pass


def stop(done, total):
    if done == 3:
        raise StopHereError


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path, ending):
    path = tmp_path / f"answers.{ending}"
    with pytest.raises(StopHereError):
        pm.recommendations.recommend_to(model(), path, progress=stop)
    assert not any(tmp_path.iterdir())
    path.write_text("old")

    def look(done, total):
        assert path.read_text() == "old"

    pm.recommendations.recommend_to(model(), path, 3, progress=look)
    assert read_back(path) == rows_of(pm.recommend(model(), 3))
    path.write_text("old")
    with pytest.raises(StopHereError):
        pm.recommendations.recommend_to(model(), path, progress=stop)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


# Parts


@pytest.fixture
def parts(tmp_path):
    return pm.data.split(make_clicks(), tmp_path / "clicks", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_answered_as_new_users(tmp_path, parts, kind):
    target, seen = tmp_path / "some" / "answers", []
    count = pm.recommendations.recommend_to(
        model(kind), target, 2, clicks=parts, progress=lambda *step: seen.append(step)
    )
    assert count == 61
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert sorted(os.listdir(target)) == [os.path.basename(path) for path in parts.paths]
    rows = [row for path in sorted(target.iterdir()) for row in read_back(path)]
    assert rows == rows_of(pm.recommend(model(kind), 2, clicks=make_clicks()))


def test_parts_of_numbers(tmp_path):
    """Their names are text in the file, and stay what they are in the model."""
    prefs = pm.simulate_clicks(30, 6, 5, 2, rng=1).preferences
    posterior = pm.fit(prefs, "personal", calibrate=False, rng=1)
    parts = pm.data.split(prefs, tmp_path / "clicks", 2)
    pm.recommendations.recommend_to(posterior, tmp_path / "answers", 2, clicks=parts)
    rows = [row for path in sorted((tmp_path / "answers").iterdir()) for row in read_back(path)]
    wanted = rows_of(pm.recommend(posterior, 2, clicks=prefs))
    assert sorted(rows) == sorted(wanted)


def test_interrupted_parts(tmp_path, parts):
    target = tmp_path / "answers"

    def stop_early(done, total):
        raise StopHereError

    with pytest.raises(StopHereError):
        pm.recommendations.recommend_to(model(), target, 2, clicks=parts, progress=stop_early)
    assert os.listdir(target) == ["part-00000.parquet"]
    users = {row[0] for row in read_back(target / "part-00000.parquet")}
    clicks = pq.read_table(parts.paths[0])["user"].to_pylist()
    assert users == set(clicks)


def test_a_damaged_part_is_told_once_the_others_are_answered(tmp_path, parts):
    Path(parts.paths[0]).write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"part-00000\.parquet"):
        pm.recommendations.recommend_to(model(), tmp_path / "answers", 2, clicks=parts)
    names = [Path(path).name for path in parts.paths]
    assert sorted(os.listdir(tmp_path / "answers")) == names[1:]


def test_a_user_of_two_parts_is_refused(tmp_path, parts):
    twice = tmp_path / "again.parquet"
    twice.write_bytes(Path(parts.paths[0]).read_bytes())
    with pytest.raises(ValueError, match=r"again.parquet: .* each user must be in one file"):
        pm.recommendations.recommend_to(
            model(), tmp_path / "out", 2, clicks=pm.data.Parts([*parts.paths, twice])
        )


def test_parts_do_not_overwrite_themselves(tmp_path, parts):
    before = [Path(path).read_bytes() for path in parts.paths]
    with pytest.raises(ValueError, match="holds the clicks themselves: give another folder"):
        pm.recommendations.recommend_to(model(), tmp_path / "clicks", clicks=parts)
    assert [Path(path).read_bytes() for path in parts.paths] == before


# Refusals


def test_what_is_refused(tmp_path, parts):
    rankings = pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 3), "pseudo", alpha=2, rng=1)
    csv_file = tmp_path / "x.csv"
    with pytest.raises(TypeError, match="posterior must come from fit, got int"):
        pm.recommendations.recommend_to(3, csv_file)
    with pytest.raises(ValueError, match="recommendations need a fit of clicks"):
        pm.recommendations.recommend_to(rankings, csv_file)
    with pytest.raises(ValueError, match="k must be 1 or more"):
        pm.recommendations.recommend_to(model(), csv_file, 0)
    with pytest.raises(ValueError, match=r"its name must end in one of \.csv"):
        pm.recommendations.recommend_to(model(), tmp_path / "x.txt")
    with pytest.raises(ValueError, match="--json writes JSON"):
        pm.recommendations.recommend_to(model(), csv_file, as_json=True)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        pm.recommendations.recommend_to(model(), tmp_path / "none" / "x.csv")
    with pytest.raises(ValueError, match="unknown item: 'tea'"):
        pm.recommendations.recommend_to(model(), csv_file, clicks={"ann": ["tea"], "bob": ["a"]})
    csv_file.write_text("old")
    with pytest.raises(FileExistsError, match=r"x\.csv: it is a file, and must be a"):
        pm.recommendations.recommend_to(model(), csv_file, clicks=parts)
    assert csv_file.read_text() == "old"
