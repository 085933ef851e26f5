"""The addresses: their answers, and that they are those of the library."""

import csv
import gzip
import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.web import handlers
from pseudomallows.web.models import summary
from webhelp import Client, make_app, make_model

MODELS = {
    "pseudo": {"method": "pseudo"},
    "mcmc": {"method": "mcmc"},
    "clusters": {"method": "pseudo", "n_clusters": 3},
    "exact clusters": {"method": "mcmc", "n_clusters": 2},
    "personal": {"method": "personal"},
    "numbers": {"method": "mcmc", "names": False},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module", params=MODELS)
def pair(request, folder):
    """A posterior, and a client of the service of it."""
    path = folder / f"{request.param}.pm"
    posterior = make_model(path, **MODELS[request.param])
    with Client(make_app(path, str(folder / f"{request.param}.sqlite"))) as client:
        yield posterior, client


@pytest.fixture(scope="module")
def client(folder):
    make_model(folder / "one.pm", n_clusters=2, method="pseudo")
    with Client(make_app(folder / "one.pm", str(folder / "one.sqlite"))) as client:
        yield client


def rows_of(answer):
    return [(row["item"], repr(row["probability"])) for row in answer["recommendations"]]


def expected_rows(posterior, k, **more):
    rows = pm.recommend(posterior, k, **more).to_rows()
    return [(str(row["item"]), repr(row["probability"])) for row in rows]


@pytest.mark.parametrize("k", [1, 3, 10, 1000])
def test_an_answer_is_that_of_recommend_to_the_last_digit(pair, k):
    posterior, client = pair
    names, rng = posterior.items.tolist(), np.random.default_rng(k)
    for n_clicks in (0, 1, 4, len(names) - 1, len(names)):
        clicks = [names[code] for code in rng.permutation(len(names))[:n_clicks]]
        for _ in range(2):  # made, then kept
            answer = client.post("/recommend", json={"clicks": [*map(str, clicks)], "k": k}).json()
            assert rows_of(answer) == expected_rows(posterior, k, clicks={"x": clicks})
        if isinstance(posterior, pm.PersonalFit):
            assert answer["memberships"] is None
            continue
        expected = pm.recommendations.memberships(posterior, {"x": clicks})[0].tolist()
        assert [*map(repr, answer["memberships"])] == [*map(repr, expected)]


def test_who_has_clicked_everything_gets_nothing_whatever_k_is(pair):
    """Nothing is unseen, so no table is needed; the first with this k to ask."""
    posterior, client = pair
    everything = [str(name) for name in posterior.items]
    for k in (7, 11, 999):
        answer = client.post("/recommend", json={"clicks": everything, "k": k})
        assert answer.json()["recommendations"] == []
        assert client.get("/healthz").status_code == 200


def test_a_user_of_the_fit_gets_the_answer_of_recommend(pair):
    posterior, client = pair
    for user in posterior.users.tolist()[:5]:
        answer = client.get(f"/users/{user}/recommendations?k=4").json()
        assert rows_of(answer) == expected_rows(posterior, 4, users=[user])
        if not isinstance(posterior, pm.PersonalFit):
            row = posterior.users.tolist().index(user)
            assert answer["memberships"] == posterior.memberships[row].tolist()


def test_new_clicks_change_what_a_user_gets(pair):
    posterior, client = pair
    names = posterior.items.tolist()
    answer = client.post("/users/new one/clicks", json={"clicks": [str(names[2]), str(names[5])]})
    assert answer.json() == {"user": "new one", "clicks": [str(names[2]), str(names[5])]}
    answer = client.post("/users/new one/clicks", json={"clicks": [str(names[5]), str(names[1])]})
    assert answer.json()["clicks"] == [str(names[2]), str(names[5]), str(names[1])]
    answer = client.get("/users/new one/recommendations?k=3").json()
    clicks = {"x": [names[1], names[2], names[5]]}
    assert rows_of(answer) == expected_rows(posterior, 3, clicks=clicks)
    known = posterior.users.tolist()[7]
    seen = [names[code] for code in posterior.clicks.clicks_of(7)]
    fresh = next(name for name in names if name not in seen)
    answer = client.post(f"/users/{known}/clicks", json={"clicks": [str(fresh)]}).json()
    assert answer["clicks"] == [*map(str, seen), str(fresh)]
    answer = client.get(f"/users/{known}/recommendations?k=3").json()
    assert rows_of(answer) == expected_rows(posterior, 3, clicks={"x": [*seen, fresh]})


def test_the_questions_about_the_model(pair):
    posterior, client = pair
    found = client.get("/model").json()
    assert found["n_items"] == posterior.n_items
    assert found["n_clicks"] == len(posterior.clicks.codes)
    assert (found["model"], found["seed"], found["has_token"]) == (1, 1, False)
    counts = posterior.clicks.item_counts()
    items = client.get("/items?limit=5").json()["items"]
    assert [row["users"] for row in items] == sorted(counts.tolist(), reverse=True)[:5]
    if isinstance(posterior, pm.PersonalFit):
        return
    assert found["alpha"] == posterior.alpha.mean(axis=(0, 1)).tolist()
    for cluster in range(posterior.n_clusters):
        answer = client.get(f"/consensus?cluster={cluster}").json()
        expected = posterior.summary(cluster)
        assert [row["item"] for row in answer["items"]] == [str(row["item"]) for row in expected]
        assert [row["highest"] for row in answer["items"]] == [r["highest"] for r in expected]
        assert answer["edges"] == list(range(1, posterior.n_items + 1))
        assert np.allclose(np.sum(answer["probabilities"], axis=1), 1, atol=1e-4)
    assert client.get(f"/consensus?cluster={posterior.n_clusters}").status_code == 404
    clusters = client.get("/clusters").json()["clusters"]
    assert sum(row["users"] for row in clusters) == len(posterior.users)
    best = [str(row["item"]) for row in posterior.summary(0)[:3]]
    assert clusters[0]["best"] == best


def test_a_personal_model_has_no_consensus_and_says_what_to_ask(tmp_path):
    fit = make_model(tmp_path / "m.pm", method="personal")
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        assert client.get("/model").json()["alpha"] == [fit.mean_alpha]
        answer = client.get("/consensus")
        assert answer.status_code == 404
        assert "each user has an order of their own: /items" in answer.json()["error"]
        assert client.get("/clusters").json() == {"clusters": []}
        assert client.get("/model").json()["n_clusters"] == 0


def test_downloads(pair):
    posterior, client = pair
    rows = list(csv.DictReader(io.StringIO(client.get("/recommendations.csv?k=2").text)))
    expected = pm.recommend(posterior, 2).to_rows()
    assert [(r["user"], r["item"]) for r in rows] == [
        (str(r["user"]), str(r["item"])) for r in expected
    ]
    page = client.get("/report.html")
    assert page.text.startswith("<!DOCTYPE html>")
    assert "attachment" in page.headers["content-disposition"]


def test_names_like_formulas_are_made_safe_in_downloads(tmp_path):
    odd = ["=1+1", "+tea", "-3.5", "@sum(a1)", "tea"]
    prefs = pm.Preferences.from_clicks({name: [odd[i], odd[i - 1]] for i, name in enumerate(odd)})
    pm.fit(prefs, "mcmc", 2, rng=1).save(tmp_path / "m.pm")
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        for query, expected in (
            ("", {"'=1+1", "'+tea", "-3.5", "'@sum(a1)", "tea"}),
            ("&raw=true", set(odd)),
        ):
            text = client.get(f"/recommendations.csv?k=5{query}").text
            rows = list(csv.DictReader(io.StringIO(text)))
            assert {row["user"] for row in rows} == expected
            assert {row["item"] for row in rows} == expected
        assert client.get("/recommendations.csv?raw=yes").status_code == 422


def test_items_are_found_whatever_the_case(client):
    found = client.get("/items?search=ITEM 1").json()["items"]
    assert {row["item"] for row in found} == {"item 1", "item 10", "item 11"}
    assert client.get("/items?search=zebra").json() == {"items": []}


def test_many_items_are_searched_beside_the_requests(client, monkeypatch):
    expected, threads = client.get("/items?search=ITEM 1").json(), []
    find = summary.items
    monkeypatch.setattr(handlers, "MANY_ITEMS", 3)
    monkeypatch.setattr(
        summary, "items", lambda *a: threads.append(threading.current_thread().name) or find(*a)
    )
    assert client.get("/items?search=ITEM 1").json() == expected
    assert [name.rpartition("_")[0] for name in threads] == ["slow"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/recommend", b"{", 400, "must be JSON"),
        ("POST", "/recommend", b"", 422, "missing required field `clicks`"),
        ("POST", "/recommend", b"\xff\xfe", 400, "must be JSON"),
        ("POST", "/recommend", b"[" * 100_000, 422, "RecommendRequest"),
        ("POST", "/recommend", b"{}", 422, "missing required field `clicks`"),
        ("POST", "/recommend", b'{"clicks": ["x"], "z": 1}', 422, "unknown field `z`"),
        ("POST", "/recommend", b'{"clicks": "x"}', 422, "`array`"),
        ("POST", "/recommend", b'{"clicks": [1]}', 422, "`str`"),
        ("POST", "/recommend", b'{"clicks": ["gold"]}', 422, "'gold'"),
        ("POST", "/recommend", b'{"clicks": [], "k": 0}', 422, ">= 1"),
        ("POST", "/recommend", b'{"clicks": [], "k": 1001}', 422, "<= 1000"),
        ("POST", "/recommend", b'{"clicks": [], "k": 1e99}', 422, "`int`"),
        ("POST", "/users/x/clicks", b'{"clicks": []}', 422, "length >= 1"),
        ("POST", "/users/x/clicks", b'{"clicks": ["gold"]}', 422, "'gold'"),
        ("POST", "/users//clicks", b'{"clicks": ["item 1"]}', 422, "name of a user"),
        ("POST", "/users/%00/clicks", b'{"clicks": ["item 1"]}', 400, "control characters"),
        ("POST", "/users/%ff/clicks", b'{"clicks": ["item 1"]}', 400, "UTF-8"),
        ("GET", "/users/%c3%28/recommendations", None, 400, "the path must be UTF-8"),
        ("GET", "/items?search=%fe", None, 400, "the query must be UTF-8"),
        ("POST", f"/users/{'x' * 301}/clicks", b'{"clicks": ["item 1"]}', 422, "1 to 300"),
        ("GET", "/users/nobody/recommendations", None, 404, "'nobody'"),
        ("GET", "/users/user 1/recommendations?k=x", None, 422, "'k=x': Expected `int`"),
        ("GET", "/users/user 1/recommendations?k=-1", None, 422, "Expected `int` >= 1 - at `$.k`"),
        ("GET", "/consensus?cluster=two", None, 422, "Expected `int`, got `str` - at `$.cluster`"),
        ("GET", "/items?limit=0", None, 422, "Expected `int` >= 1 - at `$.limit`"),
        ("GET", "/nothing", None, 404, "nothing at this address"),
        ("GET", "/static/../app.py", None, 404, ""),
        ("GET", "/static/%2e%2e/app.py", None, 404, ""),
        ("GET", "/recommend", None, 405, "method"),
        ("DELETE", "/model", None, 405, "method"),
        ("GET", "/jobs/none", None, 404, "no job"),
        ("POST", "/refit", b'{"clusters": "many"}', 422, "clusters"),
        ("POST", "/refit", b'{"method": "magic"}', 422, "method"),
        ("POST", "/upload?refit=maybe", b"user,item\na,b\n", 422, "Expected `bool`"),
        ("POST", "/upload", b"", 422, "the file is empty"),
        ("POST", "/upload", gzip.compress(b"user,item\na,b\n"), 422, "packed"),
        ("POST", "/upload", b"a,b,c\n1,2,3\n3,2,1\n", 422, "not rankings"),
        ("POST", "/upload", b"user,item\nx\n", 422, "the file, line 2"),
    ],
)
def test_bad_input_is_told_in_words(client, method, path, body, status, words):
    answer = client.request(method, path, content=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]
    assert "/tmp" not in answer.text
    assert "Traceback" not in answer.text


def test_too_many_clicks_are_refused(client):
    answer = client.post("/recommend", json={"clicks": ["item 1"] * 10_001})
    assert answer.status_code == 422
    assert client.post("/recommend", json={"clicks": ["item 1"] * 10_000}).status_code == 200


def test_names_with_strange_letters(tmp_path):
    odd = ["a/b", "ü ☕", "%41", '"quoted"', "<b>", "=1+1"]
    prefs = pm.Preferences.from_clicks({name: [odd[i], odd[i - 1]] for i, name in enumerate(odd)})
    posterior = pm.fit(prefs, "mcmc", 2, rng=1)
    posterior.save(tmp_path / "m.pm")
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        for name in odd:
            path = f"/users/{quote(name, safe='')}"
            answer = client.get(f"{path}/recommendations?k=2").json()
            assert rows_of(answer) == expected_rows(posterior, 2, users=[name])
            answer = client.post(f"{path}/clicks", json={"clicks": [name]}).json()
            assert answer["user"] == name
            assert name in answer["clicks"]


def test_a_long_report_does_not_hold_up_a_recommendation(client, monkeypatch):
    """What is made once, and slowly, is made beside the requests."""
    begun, go_on = threading.Event(), threading.Event()

    def slow_report(posterior, path):
        begun.set()
        assert go_on.wait(20)
        path.write_text("a report")

    monkeypatch.setattr("pseudomallows.web.handlers.write_report", slow_report)
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(client.get, "/report.html")
        assert begun.wait(20)
        for k in (1, 2, 3):
            assert client.post("/recommend", json={"clicks": [], "k": k}).status_code == 200
        assert client.get("/items").status_code == 200
        go_on.set()
        assert page.result().text == "a report"


def test_no_clock_is_asked_for_the_order_of_clicks(tmp_path, monkeypatch):
    make_model(tmp_path / "m.pm")
    clock = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        for place in (5, 3, 8, 1):
            answer = client.post("/users/zoe/clicks", json={"clicks": [f"item {place}"]})
        assert answer.json()["clicks"] == ["item 5", "item 3", "item 8", "item 1"]


def some_clicks(posterior, n=2):
    return [str(name) for name in posterior.items[:n].tolist()]


def test_what_may_be_shown_is_that_of_recommend(pair):
    posterior, client = pair
    clicks, names = some_clicks(posterior), posterior.items.tolist()
    exclude, only = names[3:5], names[2:9]
    body = {"clicks": clicks, "k": 3, "exclude": [*map(str, exclude)], "only": [*map(str, only)]}
    expected = expected_rows(posterior, 3, clicks={"x": names[:2]}, exclude=exclude, only=only)
    assert len(expected) == 3
    for _ in range(2):  # the second is kept
        assert rows_of(client.post("/recommend", json=body).json()) == expected
    plain = client.post("/recommend", json={"clicks": clicks, "k": 3}).json()
    assert rows_of(plain) == expected_rows(posterior, 3, clicks={"x": names[:2]})
    user = posterior.users[31]
    query = {"k": 3, "exclude": [*map(str, exclude)], "only": [*map(str, only)]}
    answer = client.get(f"/users/{user}/recommendations", params=query).json()
    assert rows_of(answer) == expected_rows(posterior, 3, users=[user], exclude=exclude, only=only)


def test_a_batch_is_answered_as_its_users_are_one_by_one(pair):
    posterior, client = pair
    clicks, known = some_clicks(posterior), [str(name) for name in posterior.users[:40].tolist()]
    users = [{"id": name, "k": 2} for name in known]
    users += [{"id": "x", "clicks": clicks, "k": 3, "exclude": [str(posterior.items[4])]}]
    users += [{"id": "nobody", "clicks": None}, {"id": "y", "clicks": ["gold"]}]
    answer = client.post("/recommend/batch", json={"users": users})
    assert answer.status_code == 200
    rows = answer.json()["answers"]
    assert [row["id"] for row in rows] == [user["id"] for user in users]
    for row in rows[:40]:
        one = client.get(f"/users/{row['id']}/recommendations?k=2").json()
        assert one == {name: row[name] for name in ("recommendations", "memberships")}
    one = client.post("/recommend", json={n: v for n, v in users[40].items() if n != "id"}).json()
    assert one["recommendations"] == rows[40]["recommendations"]
    assert rows[41] == {
        "id": "nobody",
        "error": "no user is named 'nobody': post some clicks first",
    }
    assert "'gold'" in rows[42]["error"]
    again = client.post("/recommend/batch", json={"users": users})
    assert again.content == answer.content


def test_stored_clicks_count_in_a_batch(client):
    client.post("/users/fresh/clicks", json={"clicks": ["item 3"]})
    answer = client.post("/recommend/batch", json={"users": [{"id": "fresh", "k": 2}]}).json()
    one = client.get("/users/fresh/recommendations?k=2").json()
    assert answer["answers"] == [{"id": "fresh", **one}]


def test_reasons_are_those_of_explain_and_add_up(pair):
    posterior, client = pair
    clicks = posterior.items[:8].tolist()
    body = {"clicks": [*map(str, clicks)], "k": 2, "reasons": True}
    answer = client.post("/recommend", json=body).json()
    plain = client.post("/recommend", json=body | {"reasons": False}).json()
    assert rows_of(plain) == rows_of(answer)
    assert "reasons" not in plain["recommendations"][0]
    codes = {str(name): name for name in posterior.items.tolist()}
    for row in answer["recommendations"]:
        found = pm.explain(posterior, item=codes[row["item"]], clicks={"x": clicks}, k=2)
        assert sum(each["amount"] for each in row["reasons"]) == pytest.approx(found.value)
        first = row["reasons"][0]
        assert (first["kind"], first["name"]) == (found.kinds[0], str(found.names[0]))
        assert first["share"] == pytest.approx(found.shares[0])
        assert len(row["reasons"]) <= 6
    user = posterior.users[31]
    query = {"k": 1, "reasons": "true"}
    answer = client.get(f"/users/{user}/recommendations", params=query).json()
    assert answer["recommendations"][0]["reasons"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/recommend", {"clicks": [], "exclude": ["gold"]}, "exclude must be items of the model"),
        ("/recommend", {"clicks": [], "only": ["gold"]}, "only must be items of the model"),
        ("/recommend", {"clicks": [], "only": []}, "nothing is left to recommend"),
        ("/recommend", {"clicks": [], "reasons": 1}, "bool"),
        ("/recommend/batch", {"users": []}, "length >= 1"),
        ("/recommend/batch", {"users": [{"id": "a"}] * 1001}, "length <= 1000"),
        ("/recommend/batch", {"users": [{"id": "a", "k": 1000}] * 101}, "at most 100,000"),
        ("/recommend/batch", {"users": [{"clicks": []}]}, "missing required field `id`"),
        ("/recommend/batch", [{"id": "a"}], "BatchRequest"),
    ],
)
def test_what_cannot_be_shown_is_refused(client, path, body, words):
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_questions_that_differ_never_share_an_answer(tmp_path):
    """Of 24 items, which hidden ones are three bytes: those of "why" among all others."""
    make_model(tmp_path / "m.pm", method="pseudo", n_items=24)
    hidden = np.flatnonzero(np.unpackbits(np.frombuffer(b"why", np.uint8)))
    first = {"clicks": ["item 0"], "k": 5, "exclude": [f"item {code}" for code in hidden]}
    with Client(make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))) as client:
        assert client.post("/recommend", json=first).status_code == 200
        second = {"clicks": ["item 0"], "k": 5, "reasons": True}
        answer = client.post("/recommend", json=second).json()
        assert all(row["reasons"] for row in answer["recommendations"])
        plain = client.post("/recommend", json={"clicks": ["item 0"], "k": 5}).json()
        assert rows_of(answer) == rows_of(plain)


def test_a_bad_name_in_a_batch_is_an_error_in_its_row(client):
    two = {"users": [{"id": "a\0b"}, {"id": "user 1"}]}
    rows = client.post("/recommend/batch", json=two).json()["answers"]
    assert "the name of a user must have 1 to 300 letters" in rows[0]["error"]
    assert rows[1]["recommendations"]
