"""The store behind the requests: batches, and how outages are told."""

import asyncio
import logging
import os

from pseudomallows.web.stores import async_store
from pseudomallows.web.stores.async_store import AsyncStore
from pseudomallows.web.stores.open import open_store
from webhelp import client_in, move, pairs_in, run_sql, wait_until


def test_many_large_requests_are_not_one_large_commit(tmp_path):
    store = open_store(str(tmp_path / "s.sqlite"))
    behind, sizes, add = AsyncStore(store), [], store.add
    store.add = lambda pairs, *more: sizes.append(len(pairs)) or add(pairs, *more)

    async def write_all():
        items = [f"item {number}" for number in range(3000)]
        await asyncio.gather(*(behind.add(f"user {n}", items) for n in range(30)))

    asyncio.run(write_all())
    behind.close()
    assert sum(sizes) == 90_000
    assert max(sizes) <= 23_000
    store.close()


def assert_broken(client, words):
    """Clicks are refused, /healthz says why, and what needs no store goes on."""
    answer = client.post("/users/ann/clicks", json={"clicks": ["item 1"]})
    assert answer.status_code == 503, answer.text
    wait_until(lambda: client.get("/healthz").status_code == 503)
    assert words in client.get("/healthz").json()["error"]
    assert "/tmp" not in client.get("/healthz").text
    assert client.get("/users/nobody/recommendations").status_code in (404, 503)
    assert client.get("/users/user 1/recommendations").status_code == 200
    assert client.post("/recommend", json={"clicks": ["item 1"]}).status_code == 200
    assert "pseudomallows_store_good 0" in client.get("/metrics").text


def test_clicks_are_not_acknowledged_in_a_file_that_is_gone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_in(tmp_path) as client:
        add = {"clicks": ["item 1"]}
        assert client.post("/users/ann/clicks", json=add).status_code == 200
        move(path, away)
        wait_until(lambda: client.get("/healthz").status_code == 503)  # before anybody writes
        assert_broken(client, "deleted or replaced")
        assert client.post("/refit").status_code == 503
        open_store(str(path)).close()  # another one in its place
        for _ in range(20):
            assert_broken(client, "deleted or replaced")
        assert caplog.text.count("deleted or replaced") == 1
        move(away, path)
        wait_until(lambda: client.get("/healthz").status_code == 200)
        assert client.post("/users/bob/clicks", json=add).status_code == 200
        os.unlink(f"{path}-wal")
        assert client.post("/users/eve/clicks", json=add).status_code == 503
    assert "clicks can be kept again" in caplog.text


def test_what_is_refused_while_the_file_is_gone_is_not_done(tmp_path, monkeypatch):
    """Nor is it when the file is back, and stored clicks are not read from a file that is gone."""
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_in(tmp_path) as client:
        add, file = {"clicks": ["item 1"]}, "user,item\nzed,item 1\nzed,item 2\n"
        client.post("/users/ann/clicks", json=add)
        client.post("/users/user 1/clicks", json=add)
        upload = client.post("/upload?refit=false", content=file).json()["upload"]
        store = client.app.service.store.blocking
        before = pairs_in(store), store.counts(), store.uploads()
        move(path, away)
        for answer in (
            client.post("/users/bob/clicks", json=add),
            client.post("/upload?refit=false", content=file),
            client.delete("/users/ann"),
            client.delete(f"/uploads/{upload}"),
        ):
            assert answer.status_code == 503
            assert "nothing was stored" in answer.json()["error"]
        for question in ("/users/ann/recommendations", "/uploads"):
            assert client.get(question).status_code == 503
        answer = client.get("/users/user 1/recommendations")
        assert (answer.status_code, answer.headers["x-stored-clicks"]) == (200, "missing")
        move(away, path)
        wait_until(lambda: client.get("/healthz").status_code == 200)
        assert (pairs_in(store), store.counts(), store.uploads()) == before
        assert store.left_over() == {}
        assert client.get("/users/ann/recommendations").status_code == 200


def test_clicks_that_cannot_be_read_back_may_be_stored(tmp_path):
    """Between the commit and the reading."""
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_in(tmp_path) as client:
        store = client.app.service.store.blocking
        add = store.add

        def add_and_go(*clicks):
            add(*clicks)
            move(path, away)

        store.add = add_and_go
        answer = client.post("/users/ann/clicks", json={"clicks": ["item 1"]})
        assert (answer.status_code, "may or may not" in answer.text) == (503, True)
        move(away, path)
        assert store.clicks_of(["ann"]) == {"ann": ["item 1"]}


def test_each_outage_is_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_in(tmp_path) as client:
        for n_outages in (1, 2):
            move(path, away)
            for _ in range(5):
                assert_broken(client, "deleted or replaced")
            assert caplog.text.count("deleted or replaced") == n_outages
            move(away, path)
            wait_until(lambda: client.get("/healthz").status_code == 200)
            assert caplog.text.count("can be kept again") == n_outages


def test_a_store_that_lost_a_table_is_told_and_logged_once(address, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    with caplog.at_level(logging.ERROR, "pseudomallows"), client_in(tmp_path, address) as client:
        is_file = not address.startswith("postgresql")
        table = "clicks" if is_file else "pseudomallows_clicks"
        run_sql(address, f"ALTER TABLE {table} RENAME TO other")
        for _ in range(10):
            assert_broken(client, table)
        answer = client.get("/users/user 1/recommendations")
        assert answer.headers["x-stored-clicks"] == "missing"
        assert client.get("/users/nobody/recommendations").status_code == 503
        run_sql(address, f"ALTER TABLE other RENAME TO {table}")
        wait_until(lambda: client.get("/healthz").status_code == 200)
        answer = client.get("/users/user 1/recommendations")
        assert "x-stored-clicks" not in answer.headers
        assert client.post("/users/ann/clicks", json={"clicks": ["item 1"]}).status_code == 200
    assert 1 <= len([r for r in caplog.records if "cannot be kept" in r.message]) <= 3
    run_sql(address, f"DROP TABLE {table}")


def noted(work, calls):
    """The same work; each time it is done is noted."""

    def do(*given):
        answer = work(*given)
        calls.append(None)
        return answer

    return do


def test_a_damaged_file_stays_broken_until_the_service_is_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    path = tmp_path / "s.sqlite"
    store = open_store(str(path))
    store.add([(f"user {n}", f"thing {n} {'x' * 200}") for n in range(3000)])
    store.close()
    looks = []
    monkeypatch.setattr(AsyncStore, "look", noted(AsyncStore.look, looks))
    with client_in(tmp_path) as client:
        size = path.stat().st_size
        with path.open("r+b") as stream:
            stream.seek(9 * 4096)
            stream.write(b"\xff" * (size - 9 * 4096))
        answers = [
            client.post(f"/users/{n} new/clicks", json={"clicks": ["item 1"]}) for n in range(20)
        ]
        assert 503 in {answer.status_code for answer in answers}
        n_before = len(looks)
        wait_until(lambda: len(looks) >= n_before + 3)  # it does not get well by itself
        assert "malformed" in client.get("/healthz").json()["error"]
        assert client.get("/metrics").status_code == 200
        assert client.post("/recommend", json={"clicks": []}).status_code == 200
