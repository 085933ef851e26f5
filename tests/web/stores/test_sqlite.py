"""The store of SQLite: its file, its plans, a full disk."""

import contextlib
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from pseudomallows.web.errors import ServiceError
from pseudomallows.web.stores.open import open_store
from pseudomallows.web.stores.sqlite import NAMES, SqliteStore
from pseudomallows.web.stores.store import CLICKS_OF
from webhelp import Client, make_app, make_model, move, pairs_in, run_sql


def test_clicks_of_a_user_are_looked_up_not_searched_for(tmp_path):
    """Whatever the size of the uploads."""
    path = tmp_path / "s.sqlite"
    store, text = open_store(str(path)), CLICKS_OF.format(**NAMES).replace("%s", "?")
    with contextlib.closing(sqlite3.connect(path)) as own:
        plan = [row[3] for row in own.execute(f"EXPLAIN QUERY PLAN {text}", ("ann", "ann"))]
    assert any(re.match(r"SEARCH uploaded .*upload=\? AND user=\?", step) for step in plan), plan
    assert not any(re.match("SCAN (uploaded|clicks)", step) for step in plan), plan
    store.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE clicks (id TEXT, item TEXT)", "has the columns id, item, wanted number"),
        ("CREATE TABLE clicks (number INTEGER PRIMARY KEY, user TEXT, item TEXT)", "ON CONFLICT"),
        ("CREATE TABLE accounts (name TEXT)", "a table 'accounts'"),
    ],
)
def test_a_store_of_another_schema_is_refused_at_the_start(tmp_path, text, words):
    address = str(tmp_path / "s.sqlite")
    run_sql(address, text)
    before = Path(address).read_bytes()[100:]
    with pytest.raises(ValueError, match=f"cannot keep clicks in .*{words}"):
        open_store(address)
    assert Path(address).read_bytes()[100:] == before


def test_a_file_that_goes_at_the_commit_leaves_it_open_what_was_stored(tmp_path, monkeypatch):
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1]
    )
    store = SqliteStore(str(path))
    opened[0].set_trace_callback(lambda text: text == "COMMIT" and move(path, away))
    with pytest.raises(ServiceError, match="may or may not have been stored"):
        store.add([("ann", "tea")])
    opened[0].set_trace_callback(None)
    with pytest.raises(ServiceError, match="nothing can be read"):
        store.clicks_of(["ann"])
    move(away, path)
    assert store.clicks_of(["ann"]) == {"ann": ["tea"]}
    store.close()


def test_a_full_disk_is_507_and_nothing_is_lost(tmp_path):
    """The limit of pages stands for the disk; the same on a small file system is a slow test."""
    make_model(tmp_path / "m.pm")
    app = make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))
    app.service.store.blocking.close()
    app.service.store.blocking = SqliteStore(str(tmp_path / "s.sqlite"), max_pages=20)
    kept, last = _fill(Client(app))
    assert last.status_code == 507
    assert "the disk of the store is full: nothing was stored" in last.json()["error"]
    store = open_store(str(tmp_path / "s.sqlite"))
    assert dict(pairs_in(store)) == kept
    store.close()


def _fill(client):
    """Store clicks until that fails; what was acknowledged, and the last answer."""
    kept = {}
    with client:
        for number in range(5000):
            user = f"{'x' * 200}{number}"
            answer = client.post(f"/users/{user}/clicks", json={"clicks": ["item 1"]})
            if answer.status_code != 200:
                break
            kept[user] = "item 1"
        assert client.post("/recommend", json={"clicks": ["item 1"]}).status_code == 200
        for user in list(kept)[:3]:
            assert client.get(f"/users/{user}/recommendations").status_code == 200
    return kept, answer


@pytest.mark.slow
def test_a_full_file_system_is_507_and_nothing_is_lost(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        make_model(tmp_path / "m.pm")
        kept, last = _fill(Client(make_app(tmp_path / "m.pm", str(small / "s.sqlite"))))
        assert last.status_code == 507
        assert len(kept) > 10
        shutil.copytree(small, tmp_path / "copy")
    finally:
        subprocess.run(["umount", small], check=True)
    store = open_store(str(tmp_path / "copy" / "s.sqlite"))
    assert dict(pairs_in(store)) == kept
    store.close()
