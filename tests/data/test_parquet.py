"""Parquet: files, folders and parts."""

import pytest

import pseudomallows as pm
from pseudomallows.data.source import open_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
parquet = pytest.importorskip("pseudomallows.data.parquet")


@pytest.fixture
def log(tmp_path):
    """A folder of two parts, one user in both."""
    folder = tmp_path / "log"
    folder.mkdir()
    first = {"user": ["ann", "bob", "ann"], "item": ["tea", "mate", "mate"]}
    second = {"time": [1, 2], "item": ["juice", "tea"], "user": ["bob", "cid"]}
    pq.write_table(pa.table(first), folder / "part-0.parquet")
    pq.write_table(pa.table(second), folder / "part-1.parquet")
    (folder / "_SUCCESS").write_text("")
    return folder


def clicks_by_name(clicks):
    return {
        user: clicks.items[clicks.clicks_of(row)].tolist()
        for row, user in enumerate(clicks.users.tolist())
    }


def read_by_name(path, **options):
    return clicks_by_name(pm.read(path, **options))


def test_a_folder_is_one_table(log):
    expected = {"ann": ["mate", "tea"], "bob": ["juice", "mate"], "cid": ["tea"]}
    assert read_by_name(log) == expected
    assert read_by_name(str(log), items=["tea", "mate", "juice"])["ann"] == ["tea", "mate"]


def test_a_folder_of_rankings(tmp_path):
    for number, rank in enumerate((1, 2)):
        table = pa.table({"user": [f"u{number}"], "a": [rank], "b": [3 - rank]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    assert pm.read(tmp_path).rankings.tolist() == [[1, 2], [2, 1]]
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: wanted the columns user, a, b"):
        pm.read(tmp_path)


def test_a_part_that_is_broken_is_named(log):
    (log / "part-2.parquet").write_bytes(b"PAR1 broken")
    with pytest.raises(ValueError, match=r"part-2\.parquet: this Parquet file cannot be read"):
        read_by_name(log)
    pq.write_table(pa.table({"user": ["x"], "name": ["y"]}), log / "part-2.parquet")
    with pytest.raises(ValueError, match=r"part-2\.parquet, line 1: no column for 'item'"):
        read_by_name(log)


def test_an_empty_part(log):
    (log / "part-2.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"part-2\.parquet: this Parquet file cannot be read"):
        read_by_name(log)


def test_names_that_repeat_come_as_a_dictionary(tmp_path):
    table = pa.table({"user": [f"u{n}" for n in range(999)], "item": ["tea", "mate", None] * 333})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=400)
    with pytest.warns(pm.data.DroppedRowsWarning, match="333 of 999 rows .* the first at row 3"):
        found = read_by_name(tmp_path / "x.parquet")
    assert found == {f"u{n}": [("tea", "mate")[n % 3]] for n in range(999) if n % 3 < 2}


def test_rows_without_a_name_in_a_part(log):
    pq.write_table(pa.table({"user": ["x", None], "item": ["y", "z"]}), log / "part-2.parquet")
    with pytest.warns(
        pm.data.DroppedRowsWarning,
        match=r"log: 1 of 7 rows .* first at .*part-2\.parquet, row 2",
    ):
        assert read_by_name(log)["x"] == ["y"]


def test_a_folder_without_parts(tmp_path):
    with pytest.raises(ValueError, match="wanted Parquet files in this folder"):
        pm.read(tmp_path)


def test_a_part_by_itself(log):
    part = parquet.read_part(log / "part-0.parquet")
    assert clicks_by_name(part) == {"ann": ["mate", "tea"], "bob": ["mate"]}
    assert clicks_by_name(parquet.read_part(log)) == read_by_name(log)
    pq.write_table(pa.table({"user": ["x"], "item": ["y"]}), log / "one.parquet")
    assert clicks_by_name(parquet.read_part(log / "one.parquet")) == {"x": ["y"]}
    empty = pa.table({"user": pa.array([], pa.string()), "item": pa.array([], pa.string())})
    pq.write_table(empty, log / "none.parquet")
    none = parquet.read_part(log / "none.parquet")
    assert [len(array) for array in (none.users, none.items, none.codes)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pa.array(["b ", None, "a"]), ["b", None, "a"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pa.array([7, None, 7]).dictionary_encode(), ["7", None, "7"]),
        (pa.array([None, None, None], pa.string()).dictionary_encode(), [None, None, None]),
        (pa.array(["b", "a", "b"], pa.large_string()), ["b", "a", "b"]),
        (pa.array([3, None, -(10**15)]), ["3", None, "-1000000000000000"]),
        (pa.array([1.0, 2.5, float("nan")]), ["1", "2.5", None]),
        (pa.array([True, False, None]), ["1", "0", None]),
        (pa.array([b"\x01", b"\xff", None]), ["01", "ff", None]),
        (pa.array([0, 1, None], pa.date32()), ["1970-01-01", "1970-01-02", None]),
        (pa.array(["", "NA", "日本"]), [None, None, "日本"]),
        (pa.array(["skipped", "x", None, "y"])[1:], ["x", None, "y"]),
    ],
)
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_names_of_every_type(tmp_path, monkeypatch, column, names, batch):
    monkeypatch.setattr(parquet, "BATCH", batch)
    table = pa.table({"user": pa.array(["u", "v", "w"]), "item": column})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    read = parquet.parquet_table(open_source(tmp_path / "x.parquet"))
    coded = read.coded_table({"item": 1}).columns["item"]
    assert [None if code < 0 else coded.names[code] for code in coded.codes] == names


def test_cells_that_are_lists_are_refused(tmp_path):
    table = pa.table({"user": ["a", "b"], "item": [["x"], ["y"]]})
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet: a name must be text or a number"):
        pm.read(tmp_path / "x.parquet")


def test_a_folder_is_read_in_batches(log, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH", 2)
    table = parquet.parquet_table(open_source(log))
    assert [len(user) for (user,) in table.blocks([0])] == [2, 1, 2]
    assert read_by_name(log)["ann"] == ["mate", "tea"]


def test_whole_numbers_of_any_size_have_one_name_in_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BATCH", 1)
    users = pa.array([7, 2**40, None, 7])
    pq.write_table(pa.table({"user": users, "item": [1, 2, 1, 2]}), tmp_path / "x.parquet")
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 4 rows .* the first at row 3"):
        found = read_by_name(tmp_path / "x.parquet")
    assert found == {"1099511627776": ["2"], "7": ["1", "2"]}
