"""Tables that are written: by the ending of their name, in blocks, and safe for spreadsheets."""

import gzip
import json
import math

import pytest

from pseudomallows.files.write import as_text, check_table, open_table, write_table

COLUMNS = {"item": ["tea", "=1+1"], "rank": [1, math.nan]}


def test_the_ending_says_the_format(tmp_path):
    write_table(COLUMNS, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "item,rank\ntea,1\n=1+1,nan\n"
    write_table(COLUMNS, tmp_path / "x.tsv.gz", safe_csv=True)
    text = gzip.decompress((tmp_path / "x.tsv.gz").read_bytes()).decode()
    assert text == "item\trank\ntea\t1\n'=1+1\tnan\n"
    write_table(COLUMNS, tmp_path / "x.json")
    rows = json.loads((tmp_path / "x.json").read_text())
    assert rows == [{"item": "tea", "rank": 1}, {"item": "=1+1", "rank": None}]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".json", ".parquet"])
def test_blocks_are_one_table_that_appears_at_the_end(tmp_path, ending):
    paths = [tmp_path / f"{name}{ending}" for name in ("once", "blocks")]
    write_table({"n": [1, 2, 3]}, paths[0])
    with open_table(paths[1]) as write:
        write({"n": [1]})
        write({"n": [2, 3]})
        assert not paths[1].exists()
    if ending == ".parquet":
        read_table = pytest.importorskip("pyarrow.parquet").read_table
        assert [read_table(path).to_pydict() for path in paths] == [{"n": [1, 2, 3]}] * 2
    else:
        unpack = gzip.decompress if ending.endswith("gz") else bytes
        assert unpack(paths[0].read_bytes()) == unpack(paths[1].read_bytes())


def test_names_without_a_known_ending_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"its name must end in one of \.csv"):
        check_table(tmp_path / "x.doc")
    with pytest.raises(ValueError, match="--json writes JSON"), open_table("x.csv", as_json=True):
        pass
    assert check_table("-") == ".csv"


def test_json_has_no_infinite_numbers():
    assert json.loads(as_text({"a": [math.inf, 1.5], 2: ()})) == {"a": [None, 1.5], "2": []}
