"""Uploads through the service: limited, listed, removed, whole or not at all."""

import contextlib
import logging
import re
import threading

import pytest

from pseudomallows.web.jobs import uploads
from pseudomallows.web.jobs.uploads import UploadLimits
from pseudomallows.web.service import Limits
from pseudomallows.web.stores import async_store
from pseudomallows.web.stores.open import open_store
from webhelp import Process, client_in, make_model, move, pairs_in, rows_of_clicks, wait_until


def test_uploads_are_limited_listed_and_removed(address, tmp_path, monkeypatch):
    """Read here for one store, in a process of its own for the other."""
    monkeypatch.setattr(uploads, "SMALL", 0 if address.startswith("postgresql") else 10**6)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.1)
    limits = Limits(uploads=UploadLimits(rows=4, users=3, items=2))
    with client_in(tmp_path, address, limits=limits) as client:

        def send(*rows):
            return client.post("/upload?refit=false", content="\n".join(["user,item", *rows]))

        for rows, words in (
            (["a,item 1"] * 5, "at most 4 rows, and this has 5: .*--upload-rows 5"),
            (
                [f"{u},item {n}" for n, u in enumerate("abcd")],
                "at most 3 users, and this has 4: .*--upload-users 4",
            ),
            ([f"a,new {i}" for i in range(3)], "at most 2 items .*not know, .* 3: .*-items 3"),
        ):
            answer = send(*rows)
            assert answer.status_code == 413, answer.text
            assert re.search(words, answer.json()["error"])
            assert "/tmp" not in answer.text
        client.post("/users/ann/clicks", json={"clicks": ["item 1"]})
        answer = send("ann,item 1", "ann,item 2", "eve,gold")
        assert answer.status_code == 202
        upload = answer.json()["upload"]
        listed = client.get("/uploads").json()["uploads"]
        assert [(r["upload"], r["users"], r["items"], r["clicks"]) for r in listed] == [
            (upload, 2, 3, 3)
        ]
        assert "pseudomallows_stored_clicks 4" in client.get("/metrics").text
        answer = client.delete(f"/uploads/{upload}")
        assert answer.json()["clicks"] == 3
        assert "until the next refit" in answer.json()["note"]
        for gone in (upload, upload + 1, "x", "9" * 30):
            assert client.delete(f"/uploads/{gone}").status_code == 404
        assert client.get("/users/eve/recommendations").status_code == 404
        assert client.get("/uploads").json() == {"uploads": []}
        assert "pseudomallows_stored_clicks 1" in client.get("/metrics").text
        assert client.delete("/users/ann").json()["clicks"] == 1
        assert client.delete("/users/ann").status_code == 404
        assert "own clicks stay" in client.delete("/users/user 1").json()["error"]
        wait_until(lambda: not client.app.service.store.blocking.left_over())


def test_the_client_is_told_what_of_a_file_was_not_heeded(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(uploads, "SMALL", 0)  # in a process of its own
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_in(tmp_path) as client:

        def send(text):
            answer = client.post("/upload?refit=false", content=text)
            assert answer.status_code == 202, answer.text
            assert "/tmp" not in answer.text
            return answer.json()

        answer = send("user,item,rating\nann,item 1,1\nann,item 2,5\n,item 3,4\n")
        assert (answer["users"], answer["items"], answer["clicks"]) == (1, 2, 2)
        column, dropped = answer["warnings"]
        assert "'rating'" in column
        assert dropped.startswith("the file: 1 of 3 rows have no user ")
        assert f"upload {answer['upload']}: {dropped}" in caplog.text
        assert send("user,item\nann,item 1\nann,item 2\n")["warnings"] == []


@pytest.mark.parametrize(("item", "small"), [("item 1", 10**6), ("gold", 0)])
def test_clicks_on_one_item_can_be_uploaded(tmp_path, monkeypatch, small, item):
    monkeypatch.setattr(uploads, "SMALL", small)
    with client_in(tmp_path) as client:
        text = f"user,item\nzed,{item}\nann,{item}\n"
        answer = client.post("/upload?refit=false", content=text).json()
        assert (answer["users"], answer["items"], answer["clicks"]) == (2, 1, 2)
        stored = pairs_in(client.app.service.store.blocking)
        assert sorted(stored) == [("ann", item), ("zed", item)]
        answer = client.post("/upload?refit=false", content="user,item\n,\n")
        assert answer.status_code == 422


def test_removing_needs_the_token(tmp_path):
    with client_in(tmp_path, token="a token of some length") as client:
        for path in ("/users/ann", "/uploads/1", "/users/ann/x"):
            assert client.delete(path).status_code == 401
            right = {"Authorization": "Bearer a token of some length"}
            assert client.delete(path, headers=right).status_code == 404
        assert client.get("/uploads").status_code == 200


def test_an_upload_cut_by_a_kill_is_never_seen_and_is_removed(address, tmp_path, monkeypatch):
    make_model(tmp_path / "m.pm")
    store = open_store(address)
    with Process(tmp_path / "m.pm", address) as service:
        content = rows_of_clicks(200_000)

        def send():
            with contextlib.suppress(OSError):
                service.ask("/upload?refit=false", content)

        thread = threading.Thread(target=send)
        thread.start()
        wait_until(lambda: any(rows > 0 for _, rows, _ in store.left_over().values()))
    thread.join()
    ((upload, (stage, rows, _)),) = store.left_over().items()
    assert (stage, rows < 200_000) == ("running", True)
    assert (pairs_in(store), store.n_clicks(), store.uploads()) == ([], 0, [])
    monkeypatch.setattr(uploads, "TAKE_SECONDS", 1.0)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.2)
    with client_in(tmp_path, address) as client:
        wait_until(lambda: not store.left_over())
        monkeypatch.setattr(uploads, "TAKE_SECONDS", 600.0)  # a busy machine is slow
        answer = client.post("/upload?refit=false", content="user,item\nann,tea\nann,rum\n")
        assert answer.json()["upload"] == upload + 1
    assert pairs_in(store) == [("ann", "rum"), ("ann", "tea")]
    store.close()


def test_an_upload_cut_by_a_file_that_goes_is_removed_when_it_is_back(tmp_path, monkeypatch):
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.1)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_in(tmp_path) as client:
        store = client.app.service.store.blocking
        begin = store.begin_upload

        def begin_and_go(*counts):
            number = begin(*counts)
            move(path, away)
            return number

        store.begin_upload = begin_and_go
        answer = client.post("/upload?refit=false", content="user,item\na,item 1\na,item 2\n")
        assert (answer.status_code, "nothing was stored" in answer.text) == (503, True)
        move(away, path)
        wait_until(lambda: not store.left_over())
        assert store.counts()[0] == 0
