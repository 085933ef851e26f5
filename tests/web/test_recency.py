"""A fit that weighs old clicks less: the service answers with times, as Python does."""

import datetime
import time
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from webhelp import client_in, wait_for_job

DAY = 86_400


@pytest.fixture(scope="module")
def fit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shop = pm.datasets.online_retail(n_items=60, min_purchases=8)
        found = pm.fit(shop, "personal", blend=False, calibrate="last", rng=1)
    assert found.recency is not None
    return found


@pytest.fixture
def client(fit, tmp_path):
    fit.save(tmp_path / "m.pm")
    with client_in(tmp_path) as client:
        yield client


def rows_of(answer):
    assert answer.status_code == 200, answer.text
    return [(row["item"], row["probability"]) for row in answer.json()["recommendations"]]


def python_rows(fit, items, times):
    """Of someone new, with times."""
    columns = {"user": ["new"] * len(items), "item": items, "time": times}
    clicks = pm.Preferences.from_clicks(columns, items=fit.items.tolist())
    rows = pm.recommend(fit, clicks=clicks).to_rows()
    return [(row["item"], row["probability"]) for row in rows]


def amounts_of(answer):
    (first, *_) = answer.json()["recommendations"]
    return {reason["name"]: reason["amount"] for reason in first["reasons"]}


def test_users_of_the_fit_are_answered_as_in_python(fit, client):
    users = fit.users[np.argsort(-fit.clicks.n_clicks)[:5]].tolist()
    batch = client.post("/recommend/batch", json={"users": [{"id": str(each)} for each in users]})
    for user, row in zip(users, batch.json()["answers"], strict=True):
        expected = [
            (each["item"], each["probability"])
            for each in pm.recommend(fit, users=[user]).to_rows()
        ]
        found = rows_of(client.get(f"/users/{user}/recommendations"))
        assert found == expected
        assert [(each["item"], each["probability"]) for each in row["recommendations"]] == expected


@pytest.mark.parametrize("n_clicks", [0, 1, 2])
def test_few_clicks_are_answered_as_in_python_and_sum_to_the_window(fit, client, n_clicks):
    items = fit.items[[40, 3][:n_clicks]].tolist()
    found = rows_of(client.post("/recommend", json={"clicks": items, "k": 3}))
    answered = pm.recommend(fit, 3, clicks={"new": items})
    assert found == [(row["item"], row["probability"]) for row in answered.to_rows()]
    every = pm.recommend(fit, fit.n_items, clicks={"new": items}, window=3)
    assert every.probabilities[0, :3].tolist() == [probability for _, probability in found]
    assert np.nansum(every.probabilities) == pytest.approx(3, rel=0.05)


def test_a_basket_counts_in_its_order_or_by_its_times(fit, client):
    items = fit.items[[40, 3, 22, 17, 50, 9]].tolist()
    found = rows_of(client.post("/recommend", json={"clicks": items}))
    assert found == python_rows(fit, items, range(len(items)))
    backwards = rows_of(client.post("/recommend", json={"clicks": items[::-1]}))
    assert backwards == python_rows(fit, items[::-1], range(len(items)))
    assert found != backwards
    dates = [f"2024-05-{day:02} 10:00" for day in (3, 30, 1, 8, 12, 2)]
    expected = python_rows(fit, items, dates)
    asked = {"clicks": items, "times": dates}
    assert rows_of(client.post("/recommend", json=asked)) == expected
    batch = client.post("/recommend/batch", json={"users": [{"id": "x", **asked}]}).json()
    rows = batch["answers"][0]["recommendations"]
    assert [(row["item"], row["probability"]) for row in rows] == expected
    twice = rows_of(client.post("/recommend", json={"clicks": [*items, items[0]]}))
    assert twice == found  # a click counts once, at the first of its times


def test_reasons_are_those_of_the_same_clicks(fit, client):
    items = fit.items[[40, 3, 22, 17]].tolist()
    answers = [
        client.post("/recommend", json={"clicks": each, "reasons": True, "only": [fit.items[30]]})
        for each in (items, items[::-1])
    ]
    assert amounts_of(answers[0]) != amounts_of(answers[1])


def test_stored_clicks_count_with_their_times(fit, client):
    """Of new users, and together with those of the fit."""
    items = fit.items[[40, 3, 22, 17]].tolist()
    times = [4e8, 1e8, 3e8, 2e8]
    posted = {"clicks": items, "times": times}
    assert client.post("/users/zoe/clicks", json=posted).status_code == 200
    found = rows_of(client.get("/users/zoe/recommendations"))
    assert found == python_rows(fit, items, times)
    assert client.post("/users/new/clicks", json={"clicks": items}).status_code == 200
    found = rows_of(client.get("/users/new/recommendations"))
    assert found == python_rows(fit, items, 1.7e9 + 1e-6 * np.arange(4))  # one after the other

    row = int(np.argsort(fit.clicks.n_clicks)[-50])
    old = fit.clicks.clicks_of(row)
    when = fit.clicks.times[fit.clicks.starts[row] : fit.clicks.starts[row + 1]]
    new = [name for name in fit.items.tolist() if name not in fit.items[old].tolist()][:2]
    dates = [when.max() - 3 * DAY, when.max() + 40 * DAY]
    texts = [datetime.datetime.fromtimestamp(each, datetime.UTC).isoformat() for each in dates]
    posted = {"clicks": new, "times": texts}
    user = fit.users[row]
    assert client.post(f"/users/{user}/clicks", json=posted).status_code == 200
    found = rows_of(client.get(f"/users/{user}/recommendations"))
    assert found == python_rows(fit, [*fit.items[old].tolist(), *new], [*when, *dates])


def upload_of(user, items, days=None):
    """A file of clicks; without days, it has no times."""
    rows = [f'{user},"{item}"' for item in items]
    rows = rows if days is None else [f"{row},{day}" for row, day in zip(rows, days, strict=True)]
    return "\n".join(["user,item" + ("" if days is None else ",time"), *rows]).encode()


DAYS = ["2024-05-31", "2024-05-01", "2024-05-11", "2024-05-21"]


def test_an_upload_keeps_its_times(fit, client):
    items = fit.items[[40, 3, 22, 17]].tolist()
    content = upload_of("zoe", items, DAYS)
    assert client.post("/upload?refit=false", content=content).status_code == 202
    found = rows_of(client.get("/users/zoe/recommendations"))
    assert found == python_rows(fit, items, DAYS)
    assert client.post("/upload?refit=false", content=upload_of("eve", items)).status_code == 202
    found = rows_of(client.get("/users/eve/recommendations"))
    assert found == python_rows(fit, items, [1.7e9] * 4)  # all at the moment of the upload


@pytest.mark.slow
def test_a_refit_learns_from_the_times_of_the_store(fit, client, tmp_path):
    items, before = fit.items[[40, 3, 22, 17]].tolist(), time.time()
    for content in (upload_of("zoe", items, DAYS), upload_of("eve", items)):
        assert client.post("/upload?refit=false", content=content).status_code == 202
    posted = {"clicks": items, "times": DAYS}
    assert client.post("/users/pat/clicks", json=posted).status_code == 200
    job = wait_for_job(client, client.post("/refit").json()["job"])
    assert job["state"] == "done", job
    refit, times = pm.load(tmp_path / "m.pm.d" / "000002.pm"), {}
    for name in ("zoe", "eve", "pat"):
        row = refit.users.tolist().index(name)
        part = slice(refit.clicks.starts[row], refit.clicks.starts[row + 1])
        named = refit.items[refit.clicks.codes[part]].tolist()
        times[name] = dict(zip(named, refit.clicks.times[part].tolist(), strict=True))
    expected = [datetime.datetime.fromisoformat(f"{day}T00:00+00:00").timestamp() for day in DAYS]
    for name in ("zoe", "pat"):
        assert [times[name][item] for item in items] == expected
    assert all(before - 1 <= each <= time.time() for each in times["eve"].values())


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([1.0], "one for each click"),
        ([1.0, "2024-05-31"], "2024-05-31"),
        (["then", "now"], "neither a number nor a date"),
        (["", "2024-05-31"], "empty"),
        ([None, 1], "times"),
    ],
)
def test_times_are_checked(client, fit, times, words):
    items = fit.items[:2].tolist()
    for path in ("/recommend", "/users/zoe/clicks"):
        answer = client.post(path, json={"clicks": items, "times": times})
        assert answer.status_code == 422, path
        assert words in answer.json()["error"]
    assert client.get("/users/zoe/recommendations").status_code == 404
