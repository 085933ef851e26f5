"""Parquet files that are written in blocks."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ParquetRows = pytest.importorskip("pseudomallows.files.arrow").ParquetRows


def write_blocks(path, *blocks):
    with ParquetRows(path) as rows:
        for block in blocks:
            rows.write(block)


def test_blocks_become_one_file(tmp_path):
    path = tmp_path / "x.parquet"
    with ParquetRows(path) as rows:
        rows.write({"user": np.array(["a", "b"], object), "p": np.array([0.5, 1], np.float32)})
        rows.write({"user": [7, None], "p": [1, 2]})
        assert not path.exists()
    found = pq.read_table(path)
    assert found.to_pydict() == {"user": ["a", "b", "7", None], "p": [0.5, 1.0, 1.0, 2.0]}
    assert found.schema.field("p").type == pa.float32()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.parquet"]


def test_text_of_the_first_block_stays_text(tmp_path):
    with ParquetRows(tmp_path / "x.parquet") as rows:
        rows.write({"user": ["a"]})
        rows.write({"user": np.array([1, 2])})
    assert pq.read_table(tmp_path / "x.parquet")["user"].to_pylist() == ["a", "1", "2"]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"p": [1]}, "wanted columns"),
        ({"user": ["b"], "p": ["x"]}, r"column 'p' is int64"),
        ({"user": ["b"], "p": [0.5]}, r"column 'p' is int64"),
        ({"user": ["b"], "p": [1, 2]}, "columns of equal length"),
    ],
)
def test_a_block_that_does_not_fit_leaves_no_file(tmp_path, block, words):
    with pytest.raises(ValueError, match=words):
        write_blocks(tmp_path / "x.parquet", {"user": ["a"], "p": [1]}, block)
    assert not list(tmp_path.iterdir())


def test_no_block_and_no_folder(tmp_path):
    with (
        pytest.raises(ValueError, match="no block was written"),
        ParquetRows(tmp_path / "x.parquet"),
    ):
        pass
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ParquetRows(tmp_path / "none" / "x.parquet").__enter__()


def test_an_old_file_stays_after_an_error(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_blocks(path, {"user": ["a"]}, {"user": 1})
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
