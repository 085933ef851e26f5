"""Tables that are written: by the ending of their name, in blocks, and safe for spreadsheets."""

import gzip
import json
import math

import numpy as np
import polars as pl
import pytest

import pseudomallows as pm
from pseudomallows.cli import main
from pseudomallows.data.write import as_text, check_table, open_table, write_table

COLUMNS = {"item": ["tea", "=1+1"], "rank": [1, math.nan]}
WRONG = (ValueError, TypeError, pl.exceptions.ShapeError)
NAMES = np.array(["ann", 7, None, "=1+1"], dtype=object)


def write_blocks(path, *blocks):
    with open_table(path) as write:
        for block in blocks:
            write(block)
            assert not path.exists() or path.read_text() == "old"


def test_the_ending_says_the_format(tmp_path):
    write_table(COLUMNS, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "item,rank\ntea,1.0\n=1+1,NaN\n"
    write_table(COLUMNS, tmp_path / "x.tsv.gz", safe_csv=True)
    text = gzip.decompress((tmp_path / "x.tsv.gz").read_bytes()).decode()
    assert text == "item\trank\ntea\t1.0\n'=1+1\tNaN\n"
    write_table({"n": [1, 2]}, tmp_path / "x.csv", safe_csv=True)
    assert (tmp_path / "x.csv").read_text() == "n\n1\n2\n"
    write_table(COLUMNS, tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())
    assert rows == [{"item": "tea", "rank": 1}, {"item": "=1+1", "rank": None}]


def test_only_text_that_begins_like_a_formula_gets_an_apostrophe(tmp_path):
    cells = ["tea", "=1+1", "@sum(a1)", "-tea", "-3.5", "+.5e-3", "\tx", "-3.5\n", 'a "b", c', None]
    write_table({"x": cells, "n": [-3.5] * 10}, tmp_path / "x.csv", safe_csv=True)
    found = pl.read_csv(tmp_path / "x.csv")
    wanted = ["tea", "'=1+1", "'@sum(a1)", "'-tea", "-3.5", "+.5e-3", "'\tx", "'-3.5\n", *cells[8:]]
    assert found["x"].to_list() == wanted
    assert found["n"].to_list() == [-3.5] * 10


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".json", ".parquet", ".xlsx"])
def test_blocks_are_one_table_that_appears_at_the_end(tmp_path, ending):
    paths = [tmp_path / f"{name}{ending}" for name in ("once", "blocks")]
    write_table({"n": [1, 2, 3]}, paths[0])
    write_blocks(paths[1], {"n": [1]}, {"n": [2, 3]})
    if ending == ".parquet":
        assert [pl.read_parquet(path).to_dict(as_series=False) for path in paths] == [
            {"n": [1, 2, 3]}
        ] * 2
    elif ending == ".xlsx":
        pytest.importorskip("fastexcel")
        assert all(pl.read_excel(path)["n"].to_list() == [1, 2, 3] for path in paths)
    else:
        unpack = gzip.decompress if ending.endswith("gz") else bytes
        assert unpack(paths[0].read_bytes()) == unpack(paths[1].read_bytes())


@pytest.mark.parametrize("ending", [".parquet", ".xlsx"])
def test_names_are_text_whatever_a_later_block_holds(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    floats = np.array([0.5, 1], np.float32)
    write_blocks(path, {"user": NAMES[1:3], "p": floats}, {"user": NAMES[:1], "p": [1]})
    pytest.importorskip("fastexcel")
    found = pl.read_parquet(path) if ending == ".parquet" else pl.read_excel(path)
    assert found["user"].to_list() == ["7", None, "ann"]
    assert found["p"].to_list() == [0.5, 1, 1]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", [".parquet", ".xlsx"])
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"p": [1]}, "wanted columns"),
        ({"user": ["b"], "p": ["x"]}, "column 'p' is Int64, and then String"),
        ({"user": ["b"], "p": [0.5]}, "column 'p' is Int64, and then Float64"),
        ({"user": ["b"], "p": [1, 2]}, "height"),
        ({"user": 1}, "not iterable"),
    ],
)
def test_a_block_that_does_not_fit_leaves_what_was_there(tmp_path, ending, block, words):
    path = tmp_path / f"x{ending}"
    path.write_text("old")
    with pytest.raises(WRONG, match=words):
        write_blocks(path, {"user": ["a"], "p": [1]}, block)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_no_block_and_no_folder(tmp_path):
    for ending in ("parquet", "xlsx"):
        with (
            pytest.raises(ValueError, match=r"no block was written|empty"),
            open_table(tmp_path / f"x.{ending}"),
        ):
            pass
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_table(COLUMNS, tmp_path / "none" / "x.parquet")


def test_a_spreadsheet_has_no_formulas_and_no_links(tmp_path):
    """Nor errors where a number is missing; numbers stay numbers."""
    pytest.importorskip("fastexcel")
    names, path = ["tea", "=1+1", "https://example.org", "{=1}"], tmp_path / "x.xlsx"
    write_table({"item": names, "p": np.array([0.25, np.nan, 1e-6, np.inf])}, path)
    found = pl.read_excel(path)
    assert found["item"].to_list() == names
    assert found["p"].to_list() == [0.25, None, 1e-6, None]
    with pytest.raises(ValueError, match=r"x\.xlsx: .* 1048575 rows .*; write \.csv or \.parquet"):
        write_table({"n": np.arange(1_048_576)}, path)
    assert found.equals(pl.read_excel(path))


def test_the_command_writes_spreadsheets(tmp_path):
    pytest.importorskip("fastexcel")
    prefs = pm.Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    posterior = pm.fit(prefs, "pseudo", alpha=2, rng=1)
    posterior.save(tmp_path / "m.pm")
    for command, wanted in (
        ("consensus", [row["item"] for row in posterior.summary()]),
        ("recommend", [row["item"] for row in pm.recommend(posterior).to_rows()]),
    ):
        out = tmp_path / f"{command}.xlsx"
        assert main([command, str(tmp_path / "m.pm"), "--out", str(out)]) == 0
        assert pl.read_excel(out)["item"].to_list() == wanted


def test_names_without_a_known_ending_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"its name must end in one of \.csv"):
        check_table(tmp_path / "x.doc")
    with pytest.raises(ValueError, match="--json writes JSON"), open_table("x.csv", as_json=True):
        pass
    assert check_table("-") == ".csv"


def test_json_has_no_infinite_numbers():
    assert json.loads(as_text({"a": [math.inf, 1.5], 2: ()})) == {"a": [None, 1.5], "2": []}
