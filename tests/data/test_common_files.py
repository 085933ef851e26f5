"""The files that people have: each is read at once, and options say what a header does not."""

import importlib
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data import source

READ = importlib.import_module("pseudomallows.data.read")
RATINGS = [
    ("196", "242", "3", "881250949"),
    ("196", "302", "5", "881250950"),
    ("22", "242", "1", "878887116"),
    ("22", "377", "4", "878887117"),
]
ORDERS = """\
InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
536365,85123A,WHITE HANGING HEART,6,12/1/2010 8:26,2.55,17850,United Kingdom
536365,71053,WHITE METAL LANTERN,6,12/1/2010 8:26,3.39,17850,United Kingdom
536370,71053,WHITE METAL LANTERN,2,12/13/2010 8:45,3.39,12583,France
"""


def lines(sep, header=None):
    rows = [] if header is None else [header]
    return "\n".join(rows + [sep.join(row) for row in RATINGS]) + "\n"


FILES = {
    "u.data": lines("\t"),
    "ratings.dat": lines("::"),
    "ratings.csv": lines(",", "userId,movieId,rating,timestamp"),
    "ml-100k.inter": lines("\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float"),
}


def quietly(path, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.data.ColumnWarning)
        return pm.read(path, *given, **options)


@pytest.mark.parametrize("block", [50, 1 << 20])
@pytest.mark.parametrize("name", FILES)
def test_files_of_ratings_are_read_at_once(tmp_path, monkeypatch, name, block):
    monkeypatch.setattr(source, "BLOCK", block)
    path = tmp_path / name
    path.write_text(FILES[name])
    with pytest.warns(pm.data.ColumnWarning, match="1 of 4 whose rating is below 3.*give"):
        found = pm.read(path)
    assert found.users.tolist() == ["196", "22"]
    assert found.items.tolist() == ["242", "302", "377"]
    assert found.times.tolist() == [881250949, 881250950, 878887116, 878887117]
    high = pm.read(path, min_rating=4)  # and nothing is warned of
    assert high.items.tolist() == ["302", "377"]
    assert high.times.tolist() == [881250950, 878887117]
    assert high.reading == "pm.read(path, min_rating=4)"


def test_the_order_lines_of_a_shop(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text(ORDERS)
    with pytest.warns(pm.data.ColumnWarning, match="'Quantity' is ignored"):
        found, said = READ.read_as(path)
    assert found.items.tolist() == ["71053", "85123A"]
    assert found.times.tolist() == [
        np.datetime64(text, "s").astype(float)
        for text in ("2010-12-13T08:45", "2010-12-01T08:26", "2010-12-01T08:26")
    ]
    assert said.endswith(
        "read as clicks (times from 2010-12-01 08:26 to 2010-12-13 08:45): "
        "Clicks(2 users, 2 items; 3 clicks)"
    )
    by_title = quietly(path, columns={"item": "Description", "rating": "Quantity"}, min_rating=3)
    assert by_title.items.tolist() == ["WHITE HANGING HEART", "WHITE METAL LANTERN"]
    assert by_title.users.tolist() == ["17850"]


@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "frame"])
def test_columns_of_any_name(tmp_path, monkeypatch, form):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "log.csv"
    path.write_text("who;user;what;stars;when\na;x;p;5;2\na;x;q;1;1\nb;y;q;4;3\nb;y;p;;9\n")
    columns = {"user": "who", "item": "what", "time": "when", "rating": "stars"}
    frame = pd.read_csv(path, sep=";")
    if form == "blocks":
        monkeypatch.setattr(source, "BLOCK", 50)
    if form == "parquet":
        path = tmp_path / "log.parquet"
        frame.to_parquet(path)
    if form == "frame":
        found = pm.Preferences.from_clicks(frame, columns=columns, min_rating=2)
        every = pm.Preferences.from_clicks(
            frame.drop(columns="stars"),
            columns={name: column for name, column in columns.items() if name != "rating"},
        )
    else:
        found = pm.read(path, columns=columns, min_rating=2)
        every = quietly(path, columns=columns)
    assert found.users.tolist() == ["a", "b"]
    assert found.items[found.codes].tolist() == ["p", "q"]
    assert found.times.tolist() == [2, 3]
    assert every.times.tolist() == [2, 1, 9, 3]


def test_files_without_a_header(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("ann tea\nbob tea\nann ale\n")
    assert pm.read(path, sep=" ", header=False).items.tolist() == ["ale", "tea"]
    found = pm.read(path, sep=" ", header=False, columns=["item", "user"])
    assert found.users.tolist() == ["ale", "tea"]
    assert pm.read(path, sep=" ", header=False, columns={"user": 1, "item": 0}).n_users == 2
    path.write_text("ann,tea,2024-05-31\nbob,ale,2024-06-01\n")
    found, said = READ.read_as(path, layout=READ.Layout(header=False))
    assert np.diff(found.times).tolist() == [86_400]
    assert "(no header, columns user, item, timestamp; times from 2024-05-31 to" in said
    path.write_text("1,2,3,4\n2,1,4,3\n")  # may be rankings of the items 1, 2, 3, 4
    with pytest.raises(ValueError, match="may name items or places"):
        pm.read(path)


def test_users_and_items_with_few_clicks_are_left_out_again_and_again(tmp_path):
    rng = np.random.default_rng(1)
    drawn = np.stack([rng.integers(0, 40, 300), rng.geometric(0.1, 300)], axis=1)
    rows = set(map(tuple, drawn.tolist()))
    path = tmp_path / "log.csv"
    path.write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in rows))
    kept = set(rows)
    while True:
        fewer = {
            (u, i)
            for u, i in kept
            if sum(v == u for v, _ in kept) >= 5 and sum(j == i for _, j in kept) >= 5
        }
        if fewer == kept:
            break
        kept = fewer
    found = pm.read(path, min_clicks=5)
    pairs = zip(found.users[found.owners], found.items[found.codes], strict=True)
    assert set(pairs) == {(f"u{u}", f"i{i}") for u, i in kept}
    assert 0 < len(kept) < len(rows)
    assert min(found.n_clicks.min(), found.item_counts().min()) >= 5
    columns = {"user": [u for u, _ in rows], "item": [i for _, i in rows]}
    assert len(pm.Preferences.from_clicks(columns, min_clicks=5).codes) == len(kept)
    with pytest.raises(ValueError, match="min_clicks=99 leaves nothing"):
        pm.read(path, min_clicks=99)


def test_rows_with_names_for_what_they_hold():
    rows = [("ann", "tea", 3), ("ann", "ale", 2), ("bob", "ale", 1)]
    found = pm.Preferences.from_clicks(rows, columns=["user", "item", "time"])
    assert found.times.tolist() == [2, 3, 1]
    numbers = np.array([[1, 7], [2, 7], [2, 8]])
    assert pm.Preferences.from_clicks(numbers, columns=("user", "item")).users.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": {"user": "nobody"}}, "line 1: columns: there is no column 'nobody' for the"),
        (
            {"columns": {"buyer": "user"}},
            "columns must be of user, item, time, rating, got 'buyer'",
        ),
        ({"columns": "user"}, "columns must be a dict like"),
        ({"columns": ["user", "item"]}, "names those of a table without a header: header=False"),
        ({"columns": ["user", "item"], "header": False}, "2 names, and there are 3 columns"),
        ({"columns": {"user": "item", "item": "item"}}, "columns names one column twice"),
        ({"columns": {"rating": "item"}, "min_rating": 3}, "say which is which with columns="),
        ({"min_rating": 3}, "min_rating needs a column of ratings, and there are user, item, day"),
        ({"min_rating": "high"}, "min_rating must be a number, got 'high'"),
        ({"min_clicks": 0}, "min_clicks must be 1 or more, got 0"),
        ({"sep": ""}, "sep must be the text between two cells"),
        ({"columns": {"time": "day"}}, "line 2, column 'timestamp': 'Mon' is neither a number nor"),
        (
            {"columns": {"rating": "day"}, "min_rating": 1},
            "line 2, column 'rating': wanted a rating",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, options, words):
    path = tmp_path / "log.csv"
    path.write_text("user,item,day\nann,tea,Mon\nbob,ale,Fri\n")
    with pytest.raises((ValueError, TypeError), match=words):
        pm.read(path, **options)


def test_options_of_tables_are_not_for_others(tmp_path):
    np.savez(tmp_path / "log.npz", clicks=np.eye(3))
    with pytest.raises(ValueError, match="sep is for tables of text"):
        pm.read(tmp_path / "log.npz", sep=",")
    with pytest.raises(ValueError, match="columns and min_rating are for long tables"):
        pm.read(tmp_path / "log.npz", min_rating=3)
    (tmp_path / "ranks.csv").write_text("user,a,b\nx,1,2\ny,2,1\n")
    with pytest.raises(ValueError, match="are for clicks, not rankings"):
        pm.read(tmp_path / "ranks.csv", min_clicks=3)
    with pytest.raises(ValueError, match="min_rating is for a long table"):
        pm.Preferences.from_clicks(np.eye(3), min_rating=3)
