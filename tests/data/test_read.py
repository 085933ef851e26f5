"""The door: every kind of file, and errors that say where."""

import string
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pseudomallows as pm
from helpers import cells_of
from pseudomallows.data.columns import KINDS
from pseudomallows.data.read import read_as

POTATOES = "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\n"


def test_items_of_a_model(put):
    path = put("user,item\nx,2\n")
    found = pm.read(path, items=[1, 2, 3])
    assert found.items.tolist() == [1, 2, 3]
    assert found.clicks_of(0).tolist() == [1]
    with pytest.raises(ValueError, match="unknown item: '2'"):
        pm.read(path, items=["a", "b"])


def test_reading_prints_nothing_and_the_kind_can_be_asked_for(put, capsys):
    path = put(POTATOES)
    pm.read(path)
    assert capsys.readouterr() == ("", "")
    assert "read as rankings: Rankings(2 users, 3 items; 2 full" in read_as(path)[1]
    with pytest.raises(ValueError, match="kind must be one of 'rankings', 'long-rankings'"):
        pm.read(path, "votes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("user,item\n", "no line after it"),
        ("user,item\na,b\nc\n", "line 3: there are 1 cells, but the header has 2"),
        ("user,item\na,b,c\n", "line 2: there are 3 cells"),
        ('user,item\na,b\n"c,d\n', "line 3: a quote is opened, but not closed"),
        ("user,item,item\na,b,c\n", "line 1: the header has 'item' twice"),
        ("user,product,movie\na,b,c\n", "line 1: 2 columns for 'item'"),
        ("user,a,b\nx,1,2\ny,2,z\n", "line 3, column 'b': wanted a number, got 'z'"),
        ("user,a,b\nx,1,2\ny,2,0_1\n", "line 3, column 'b': wanted a number, got '0_1'"),
        ("user,item\na,b\0\n", "line 2: there is a zero byte"),
        ("user,a,b,c\nx,1,2,3\ny,2,3,3\n", "line 3: its equal ranks are not clear"),
        (
            "user,a,b,c\nx,1,2,3\ny,7,2,1\n",
            "line 3, column 'a': a rank is beyond the 3 items, got 7; 1 of 6",
        ),
        ("user,a,b,c\nx,1,2,3\ny,1.5,2,1\n", "line 3, column 'a': ranks are whole numbers"),
        ("user,a,b,c\nx,1,2,3\nx,3,2,1\n", "line 3: user 'x' is there already, at line 2"),
        ("user,a,b,c\nx,1,2,3\n,3,2,1\n", "line 3: the user has no name"),
        ("user,a,b,c\nx,1,2,1e999\n", "too large"),
        ("user,item,rank\nx,a,1\nx,a,2\n", "line 3: 'x' ranks 'a' 2, but 1 at line 2"),
        ("user,item,rank\nx,a,2\nx,b,2\nx,c,1\ny,a,3\ny,b,3\n", "line 5: its equal ranks"),
        ("user,item,rank\nx,a,1\nx,b,1.5\n", "line 3, column 'rank': ranks are whole numbers"),
        ("user,item,rank\nx,a,1\nx,b,first\n", "line 3, column 'rank': wanted a rank, got 'first'"),
        (
            "user,item,rank\nx,a,1\nx,b,9\n",
            "line 3, column 'rank': a rank is beyond the 2 items, got '9'",
        ),
        ("user,item,rank\nx,a,1\n,b,2\n", "line 3: there is no user; 1 of 2 rows have"),
        ("user,item\na,b\n", "at least 2 items"),
        ("rank1,rank2\na,b\na,a\n", "line 3: 'a' is there twice"),
        ("rank1,rank2,rank3\na,b,c\na,,c\n", "line 3: place 2 is empty"),
    ],
)
def test_errors_say_where(put, text, words):
    path = put(text)
    with pytest.raises(ValueError, match=r"data\.csv") as caught:
        pm.read(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["broken.csv.gz", "broken.parquet", "broken.npz", "x.pq"])
@pytest.mark.parametrize("content", [b"\x1f\x8b\x08broken", b"PAR1xxxx", b"PK\x03\x04", b"junk"])
def test_broken_files(put, name, content):
    with pytest.raises(ValueError, match=name):
        pm.read(put(content, name))


def test_arrays(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, rankings=[[1, 2, 3], [3, 2, 1]], items=["a", "b", "c"], weights=[2, 1])
    found = pm.read(path)
    assert found.items.tolist() == ["a", "b", "c"]
    assert found.weights.tolist() == [2, 1]
    np.savez(path, clicks=np.eye(3), users=[7, 8, 9])
    assert pm.read(path).users.tolist() == ["7", "8", "9"]
    sparse.save_npz(path, sparse.csr_matrix(np.eye(4)))
    assert pm.read(path).n_items == 4
    np.savez(path, other=[1])
    with pytest.raises(ValueError, match=r"wanted an array 'rankings' or 'clicks'.*\['other'\]"):
        pm.read(path)
    np.savez(path, rankings=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read"):
        pm.read(path)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = {"user": [3, 3, 10, None], "item": ["b ", "a", "b", "a"], "x": [1, 2, 3, 4]}
    pq.write_table(pa.table(table), path)
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 4 rows .* the first at row 4"):
        found = pm.read(path)
    assert cells_of(found) == {"3": ["a", "b"], "10": ["b"]}
    pq.write_table(pa.table({"user": [1.0, 2.0], "item": ["a", "b"]}), path)
    assert pm.read(path).users.tolist() == ["1", "2"]
    pq.write_table(pa.table({"a": [1, 2, None], "b": [2.0, 1.0, 1.0], "c": [3, 3, None]}), path)
    assert pm.read(path).rankings.tolist() == [[1, 2, 3], [2, 1, 3], [0, 1, 0]]
    pq.write_table(pa.table({"user": [], "item": []}), path)
    with pytest.raises(ValueError, match="no rows"):
        pm.read(path)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(string.printable, max_size=80).map(str.encode),
        st.lists(
            st.sampled_from(
                [
                    *'user,item rank1230;"\n\t|{}:#',
                    "\n",
                    "user,item\n",
                    "# ALTERNATIVE NAME 1: a\n",
                    "1: 1,{2,3}\n",
                ]
            ),
            max_size=30,
        ).map(lambda x: "".join(x).encode()),
    ),
    st.sampled_from(["x.csv", "x.tsv", "x.soc", "x.toi", "x.npz", "x.parquet", "x", "x.csv.gz"]),
    st.sampled_from([None, *KINDS]),
)
def test_no_bytes_are_more_than_bad_input(tmp_path_factory, content, name, kind):
    path = tmp_path_factory.mktemp("x") / name
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = pm.read(path, kind)
        except ValueError as error:
            found = error
    if isinstance(found, ValueError):
        assert name in str(found)
        return
    assert found.n_users >= 1
    assert found.n_items >= 2
