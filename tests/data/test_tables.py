"""Comparisons and impressions from files: CSV, Parquet, folders."""

import gzip
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from helpers import as_text
from pseudomallows.data import source
from pseudomallows.data.checks import NO_NAME

SAID = [("ann", "tea", "ale"), ("bob", "ale", "tea"), ("ann", "gin", "ale"), ("ann", "tea", "ale")]


def text_of(header, rows):
    return as_text([header.split(","), *rows])


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet", "folder"])
def store(request, tmp_path):
    """Write a table of text in one of the forms of files."""

    def write(header, rows):
        path = tmp_path / f"data.{request.param}"
        if request.param in ("parquet", "folder"):
            table = pa.table(
                {name: [row[at] for row in rows] for at, name in enumerate(header.split(","))}
            )
            if request.param == "parquet":
                pq.write_table(table, path)
                return path
            path.mkdir()
            pq.write_table(table.slice(0, 1), path / "0.parquet")
            pq.write_table(table.slice(1).select(table.column_names[::-1]), path / "1.parquet")
            return path
        text = as_text([header.split(","), *rows], "\t" if request.param == "tsv" else ",")
        path.write_bytes(gzip.compress(text) if request.param == "csv.gz" else text)
        return path

    return write


def test_comparisons_are_seen_from_the_header(store):
    found = pm.read(store("user,better,worse", SAID))
    assert found.digest() == pm.Preferences.from_pairs(SAID).digest()
    assert found.users.tolist() == ["ann", "bob"]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("assessor,bottom_item,top_item", [(user, worse, better) for user, better, worse in SAID]),
        ("winner,Loser,judge", [(better, worse, user) for user, better, worse in SAID]),
        ("user_id,left,right,winner", [(user, a, b, "left") for user, a, b in SAID]),
        ("user,model_a,model_b,winner", [(user, b, a, "model_b") for user, a, b in SAID]),
        ("user,item1,item2,preferred", [(user, b, a, a) for user, a, b in SAID]),
        ("user,chosen,rejected,n,hour", [(*row, "1", "9:00") for row in SAID]),
    ],
)
def test_comparisons_by_other_names(store, header, rows):
    assert pm.read(store(header, rows)).digest() == pm.Preferences.from_pairs(SAID).digest()


def test_a_column_of_judges_beside_votes_is_asked_about(store):
    rows = [("x", "y", "a", "en", "j"), ("y", "z", "b", "de", "k")]
    path = store("model_a,model_b,winner,language,judge", rows)
    with pytest.raises(
        ValueError, match=r"'judge'.*columns=\{'user': 'judge'\} \(--columns user=judge\).*as_votes"
    ):
        pm.read(path)
    told = pm.read(path, columns={"user": "judge"})
    assert told.users.tolist() == ["j", "k"]
    assert told.as_votes().is_vote
    with pytest.raises(ValueError, match="are for clicks"):
        pm.read(path, columns={"user": "judge"}, min_clicks=2)


def test_votes_and_ties(store):
    rows = [("x", "y", "model_a"), ("y", "x", "tie (bothbad)"), ("y", "x", "model_b")]
    found = pm.read(store("model_a,model_b,winner", rows))
    assert found.is_vote
    assert found.weights.tolist() == [2, 1]
    assert found.tied().tolist() == [[0, 1], [1, 0]]


def test_impressions_are_seen_from_the_header_and_the_values(store):
    rows = [("u", "a", "1"), ("u", "b", "0"), ("v", "b", "0"), ("v", "c", "0")]
    found = pm.read(store("user,item,clicked", rows))
    assert found.kind == "pairs"
    assert found.items.tolist() == ["a", "b", "c"]
    assert found.wins().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_slates_of_a_file(store):
    rows = [("u", "1", "a", "yes"), ("u", "1", "b", "no"), ("u", "2", "c", "no")]
    assert pm.read(store("user,session_id,item,click", rows)).wins().sum() == 1


def test_rows_of_clicks_only_are_clicks(store):
    path = store("user,item,label", [("u", "a", "1"), ("u", "b", "1")])
    assert pm.read(path).kind == "clicks"
    told = pm.read(path, "impressions")
    assert told.kind == "pairs"
    assert not told.is_informative.any()


def test_labels_that_are_not_yes_or_no_are_ignored(store):
    with pytest.warns(pm.data.IgnoredColumnWarning, match="'label' is ignored"):
        assert (
            pm.read(store("user,item,label", [("u", "a", "x"), ("u", "b", "1")])).kind == "clicks"
        )


def test_large_tables_with_a_column_of_yes_are_clicks(put, monkeypatch):
    monkeypatch.setattr(source, "BLOCK", 50)
    rows = [(f"u{n}", f"i{n % 7}", "1") for n in range(50)]
    assert pm.read(put(text_of("user,item,clicked", rows))).n_users == 50
    path = put(text_of("user,item,clicked", [*rows, ("u0", "i1", "0")]))
    assert pm.read(path).wins().sum() == 1


@pytest.mark.parametrize("kind", ["pairs", "impressions"])
def test_a_kind_that_is_told_needs_its_columns(store, kind):
    words = {"pairs": "line 1: no column for 'better'", "impressions": "no column for 'clicked'"}
    with pytest.raises(ValueError, match=words[kind]):
        pm.read(store("user,item", [("u", "a"), ("u", "b")]), kind)


def test_large_tables_of_comparisons(put, monkeypatch):
    monkeypatch.setattr(source, "BLOCK", 50)
    found = pm.read(put(text_of("user,better,worse", SAID)))
    assert found.digest() == pm.Preferences.from_pairs(SAID).digest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "user,better,worse\nu,a,b\n\nu,a,a\n",
            "line 4: 'a' is compared with itself: drop the row",
        ),
        ("user,better,worse\nu,a\n", "line 2: there are 2 cells, but the header has 3 columns"),
        ("user,better,worse\nu,a,b,c\n", "line 2: there are 4 cells"),
        ("user,better,worse\n", "there is a header, but no line after it"),
        ("better,worse,n\na,b,1.5\n", "line 2: the count must be a whole number"),
        ("better,worse,n\na,b,-2\n", "line 2: the count must be a whole number"),
        ("a,b,winner\nx,y,z\n", "line 2: the winner must be 'a', 'b', .* got 'z'"),
        ("user,better,better,worse\nu,a,b,c\n", "the header has 'better' twice"),
        ("winner,chosen,loser\na,b,c\n", "line 1: 2 columns for 'better'"),
        ("user,item,clicked\nu,a,1\nu,a,0\n", "at least 2 items, got 1"),
    ],
)
def test_errors_name_the_line(put, text, words):
    path = put(text)
    with pytest.raises(ValueError, match=rf"data\.csv.*{words}"):
        pm.read(path)


def test_rows_with_something_missing_are_left_out_and_counted(put):
    text = "user,better,worse\nu,a,b\n,a,b\nu,NA,b\nv,b,a\n"
    with pytest.warns(
        pm.data.DroppedRowsWarning,
        match=r"data\.csv: 2 of 4 rows have no better or user .* first at line 3",
    ):
        found = pm.read(put(text))
    assert found.users.tolist() == ["u", "v"]


def test_rows_of_parquet_are_counted_from_1(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"better": [1, 2, 2], "worse": [2, 1, 2]}).to_parquet(path)
    with pytest.raises(ValueError, match="row 3: '2' is compared with itself"):
        pm.read(path)


def test_parts_of_a_folder_need_the_same_columns(tmp_path):
    pd.DataFrame({"better": ["a"], "worse": ["b"]}).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"better": ["a"], "worse": ["b"], "user": ["u"]}).to_parquet(
        tmp_path / "1.parquet"
    )
    with pytest.raises(
        ValueError, match=r"1\.parquet: wanted the columns better, worse, as in the first"
    ):
        pm.read(tmp_path)


def test_columns_that_are_not_used_may_hold_anything(tmp_path):
    frame = pd.DataFrame(
        {"model_a": ["x"], "model_b": ["y"], "winner": ["tie"], "conversation_a": [[{"a": 1}]]}
    )
    frame.to_parquet(tmp_path / "x.parquet")
    assert pm.read(tmp_path / "x.parquet").tied().sum() == 2


def test_given_items_fix_the_order(put):
    path = put("user,better,worse\nu,3,1\nu,1,2\n")
    assert pm.read(path, items=[3, 2, 1]).items.tolist() == [3, 2, 1]
    assert pm.read(path, items=[3, 2, 1]).wins().tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match=r"data\.csv: unknown item: '3'"):
        pm.read(path, items=[1, 2])
    shown = put("user,item,clicked\nu,3,1\nu,1,0\n")
    assert pm.read(shown, items=[3, 2, 1]).wins().tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=6)
NAMES = NAMES.map(str.strip).filter(lambda name: name and name not in NO_NAME)
ROWS = st.tuples(NAMES, NAMES, NAMES, st.integers(1, 9)).filter(lambda row: row[1] != row[2])


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=20), st.sampled_from(",;\t|"), st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, rows, delimiter, has_users):
    names = ["user", "better", "worse", "count"]
    kept = slice(0 if has_users else 1, None)
    rows = [row[kept] for row in rows]
    expected = pm.Preferences.from_pairs(
        {name: [row[at] for row in rows] for at, name in enumerate(names[kept])}
    )
    folder = tmp_path_factory.mktemp("x")
    (folder / "x.csv").write_bytes(as_text([names[kept], *rows], delimiter))
    pd.DataFrame(rows, columns=names[kept]).to_parquet(folder / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        found = pm.read(folder / name)
        assert found.digest() == expected.digest()
        assert found.users.tolist() == expected.users.tolist()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(NAMES, NAMES, NAMES, st.booleans()), min_size=1, max_size=20))
def test_impressions_that_are_written_are_read_again(tmp_path_factory, rows):
    names = ["user", "slate", "item", "clicked"]
    frame = pd.DataFrame(rows, columns=names)
    if frame["item"].nunique() < 2:
        return
    folder = tmp_path_factory.mktemp("x")
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_parquet(folder / "x.parquet")
    expected = pm.Preferences.from_impressions(frame)
    for name in ("x.csv", "x.parquet"):
        assert pm.read(folder / name, "impressions").digest() == expected.digest()


RAW = [
    *'ab ",\n\r\t',
    *",,,,\n\n\n",
    '""',
    ' "',
    '",',
    '"\n',
    ",,",
    "é",
    "NA",
    "1",
    "0",
    "-1",
    "tie",
]
HEADERS = ["user,better,worse\n", "a,b,winner,n\n", "user,item,clicked\n", "winner,loser,count\n"]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(RAW), max_size=40).map("".join), st.sampled_from(HEADERS))
def test_any_text_is_read_or_refused_with_the_name_of_the_file(tmp_path_factory, text, header):
    path = tmp_path_factory.mktemp("x") / "data.csv"
    path.write_bytes((header + text).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = pm.read(path)
            problem = None
        except ValueError as error:
            problem = str(error)
    if problem is not None:
        assert str(path) in problem
    else:
        assert found.n_users >= 1
        assert found.n_items >= 2
