"""Tables of clicks: which columns count, and rows that are left out."""

import numpy as np
import pandas as pd
import pytest

import pseudomallows as pm
from helpers import cells_of
from pseudomallows.data import ignored, source


@pytest.mark.parametrize(
    "header",
    ["user,item", "userId,movieId,timestamp,genre", "Customer ID;StockCode", "USER\titem"],
)
def test_clicks(put, header):
    mark = next(c for c in (",", ";", "\t") if c in header)
    extra = mark * (header.count(mark) - 1)
    rows = [("u2", "b"), ("u1", "a"), ("u1", "b"), ("u2", "b")]
    text = header + "\n" + "".join(f"{u}{mark}{i}{extra}\n" for u, i in rows)
    found = pm.read(put(text))
    assert found.users.tolist() == ["u1", "u2"]
    assert cells_of(found) == {"u1": ["a", "b"], "u2": ["b"]}


def test_a_column_that_says_which_rows_are_clicks_is_told(put):
    path = put("user,item,clicked\nx,a,1\nx,b,0\n")
    with pytest.warns(
        pm.data.IgnoredColumnWarning,
        match="'clicked' is ignored, .* what was passed over, too, with kind='impressions'",
    ):
        assert cells_of(pm.read(path, "clicks")) == {"x": ["a", "b"]}
    with pytest.warns(pm.data.IgnoredColumnWarning, match="'liked' is ignored"):
        pm.read(put("user,item,liked\nx,a,1\nx,b,0\n"))


JUDGING = [
    ("position", "1\n2\n3", "if it holds ranks, give kind='long-rankings'"),
    ("place", "1\n2\n3", "if it holds ranks, give kind='long-rankings'"),
    ("rating", "5\n1\n2", "also the 2 of 3 whose rating is below 3, the middle of 1 to 5"),
    ("Score", "-10\n0.5\n10", "also the 1 of 3 whose rating is 0 or less"),
    ("stars", "2\n\nNA", "every row counts as a click: drop the rows"),
    ("count", "0\n7\n0", "also the 2 of 3 whose count is 0 or less"),
    ("Quantity", "1\n7\n-2", "also the 1 of 3 whose count is 0 or less"),
    ("play_count", "1\n7\n2", "every row counts as a click: drop the rows"),
    ("views", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("n", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("weight", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("click_count", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("numRatings", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("vote", "-1\n1\n1", "also the 1 of 3 whose rating is 0 or less"),
    ("user_rating", "5\n1\n2", "also the 2 of 3 whose rating is below 3"),
    ("rating:float", "5\n1\n2", "also the 2 of 3 whose rating is below 3"),
    ("engaged", "0\n3\n1", "also the 1 of 3 whose value is 0 or less"),
    ("balance", "-0.5\n\n0", "also the 2 of 2 whose value is 0 or less"),
]


@pytest.mark.parametrize(("name", "values", "words"), JUDGING)
@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "folder", "frame", "dict"])
def test_a_column_of_ratings_or_counts_is_told(put, monkeypatch, form, name, values, words):
    columns = {"user": ["u", "u", "v"], "item": ["a", "b", "c"], name: values.split("\n")}
    if form in ("frame", "dict"):
        columns[name] = [float(value) if value.strip("NA") else np.nan for value in columns[name]]
        given = pd.DataFrame(columns) if form == "frame" else columns
        if name in ("position", "place"):  # it is said that these are clicks
            assert len(pm.Preferences.from_clicks(given).codes) == 3
            return
        with pytest.warns(pm.data.ColumnWarning, match=words) as said:
            assert len(pm.Preferences.from_clicks(given).codes) == 3
    else:
        if form == "blocks":
            monkeypatch.setattr(source, "BLOCK", 50)
        path = put("\n".join(",".join(row) for row in zip(*columns.values(), strict=True)) + "\n")
        path.write_text(",".join(columns) + "\n" + path.read_text())
        if form in ("parquet", "folder"):
            folder = path.with_name("folder")
            folder.mkdir()
            pd.DataFrame(columns).to_parquet(folder / "x.parquet")
            path = folder if form == "folder" else folder / "x.parquet"
        with pytest.warns(pm.data.ColumnWarning, match=words) as said:
            assert len(pm.read(path).codes) == 3
    assert len(said) == 1
    assert f"column {name!r} is ignored" in str(said[0].message)
    assert not issubclass(said[0].category, pm.data.IgnoredColumnWarning)


@pytest.mark.parametrize(
    "name", ["time", "click_time", "hourOfDay", "unit_price", "session_nr", "rating_id", "x"]
)
@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "frame"])
def test_other_columns_are_ignored_in_silence(put, monkeypatch, form, name):
    values = {"x": [1, 2, 5], "session_nr": ["0", "a", "-1"]}.get(name, [0, 3, -1])
    table = pd.DataFrame({"user": ["u", "u", "v"], "item": ["a", "b", "c"], name: values})
    path = put(table.to_csv(index=False))
    if form == "blocks":
        monkeypatch.setattr(source, "BLOCK", 50)
    if form == "parquet":
        path = path.with_name("x.parquet")
        table.to_parquet(path)
    found = pm.Preferences.from_clicks(table) if form == "frame" else pm.read(path)
    assert len(found.codes) == 3


TOLD = [
    ("event", ["view", "remove_from_cart", "buy", "buy"], "2 of 4 with 'view', 'remove_from_cart'"),
    ("event_type", ["view", "buy", "buy", "buy"], "1 of 4 with 'view': keep the rows that are"),
    ("thumbs", ["up", "down", "up", "down"], "2 of 4 with 'down': keep the rows that are clicks"),
    ("liked", ["yes", "no", "yes", "yes"], "the 1 of 4 without a yes or 1: drop the rows"),
    ("order", ["1", "2", "1", "2"], "if it holds ranks, give kind='long-rankings'"),
]
SILENT = [
    ("event", ["buy", "buy", "buy", "buy"]),  # as if filtered
    ("event", ["click", "buy", "click", "buy"]),
    ("order", ["10248", "10248", "10249", "10250"]),
    ("rating", ["4", "5", "5", "4"]),
    ("stars", ["3.5", "5", "4", "4"]),
    ("score", ["8", "10", "6", "7"]),
    ("clicked", ["1", "1", "1", "1"]),
    ("event_id", ["0", "1", "2", "3"]),
]


def made(put, monkeypatch, form, name, values):
    """Two users with two clicks each, and a column."""
    table = pd.DataFrame({"user": list("uuvv"), "item": list("abac"), name: values})
    if form == "frame":
        return pm.Preferences.from_clicks(table)
    if form == "parquet":
        path = put(b"", "x.parquet")
        table.to_parquet(path)
        return pm.read(path)
    if form == "blocks":
        monkeypatch.setattr(source, "BLOCK", 50)
    return pm.read(put(table.to_csv(index=False)))


@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "frame"])
@pytest.mark.parametrize(("name", "values", "words"), TOLD)
def test_a_column_of_words_that_say_no_is_told(put, monkeypatch, form, name, values, words):
    if (name, form) == ("order", "frame"):  # it is said that these are clicks
        assert len(made(put, monkeypatch, form, name, values).codes) == 4
        return
    with pytest.warns(pm.data.ColumnWarning, match=words) as said:
        assert len(made(put, monkeypatch, form, name, values).codes) == 4
    assert len(said) == 1


@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "frame"])
@pytest.mark.parametrize(("name", "values"), SILENT)
def test_what_was_filtered_is_no_alarm(put, monkeypatch, form, name, values):
    assert len(made(put, monkeypatch, form, name, values).codes) == 4


def test_an_order_can_be_read_as_ranks(put):
    path = put("user,item,order\nu,a,2\nu,b,1\nv,a,1\nv,b,2\n")
    assert pm.read(path, "long-rankings").rankings.tolist() == [[2, 1], [1, 2]]
    assert pm.read(path, "clicks").n_users == 2


def test_typed_names_of_columns(put):
    found = pm.read(put("user_id:token,item_id:token,timestamp:float\nu,a,0\nv,b,0\n"))
    assert cells_of(found) == {"u": ["a"], "v": ["b"]}


def test_so_many_values_are_not_counted(put, monkeypatch):
    monkeypatch.setattr(source, "BLOCK", 50)
    monkeypatch.setattr(ignored, "MOST_VALUES", 5)
    path = put("user,item,score\n" + "".join(f"u,{n},{n}\n" for n in range(9)))
    with pytest.warns(pm.data.ColumnWarning, match="every row counts as a click: drop the rows"):
        pm.read(path)


def test_rows_without_a_name_are_left_out_and_counted(put):
    path = put("user,item\na,x\n,y\nb,\nb,NA\nb,y\n")
    with pytest.warns(pm.data.DroppedRowsWarning, match="3 of 5 rows .* the first at line 3"):
        assert cells_of(pm.read(path)) == {"a": ["x"], "b": ["y"]}
