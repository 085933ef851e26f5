"""The stores: SQLite and PostgreSQL keep what they have acknowledged."""

import asyncio
import contextlib
import json
import logging
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pseudomallows.web import uploads
from pseudomallows.web.app import make_app
from pseudomallows.web.errors import ServiceError
from pseudomallows.web.intake import Most
from pseudomallows.web.service import Limits
from pseudomallows.web.stores import keeper as keeper_module
from pseudomallows.web.stores import postgres as postgres_module
from pseudomallows.web.stores.keeper import Keeper
from pseudomallows.web.stores.store import SqliteStore, open_store
from pseudomallows.web.stores.tables import CLICKS_OF
from webhelp import Client, Process, free_port, make_model

BINARIES = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The address of a PostgreSQL of our own, in a temporary folder."""
    pytest.importorskip("psycopg")
    if not (BINARIES / "initdb").exists():
        pytest.skip("PostgreSQL 15 is not installed")
    folder = Path("/tmp") / f"pm-postgres-{os.getpid()}"
    folder.mkdir(mode=0o700)
    other = []
    if os.getuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "nobody")
        other = ["setpriv", "--reuid", "nobody", "--clear-groups"]
    data, port = folder / "data", free_port()
    try:
        words = [BINARIES / "initdb", "-D", data, "-U", "pm", "-A", "trust", "-N"]
        subprocess.run([*other, *words], check=True, capture_output=True)
        settings = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
        command = [*other, BINARIES / "postgres", "-D", data, *settings]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_for_port(port)
            yield f"postgresql://pm@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGINT)  # at once, even if a test has left connections
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for_port(port):
    import psycopg

    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(f"postgresql://pm@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "s.sqlite")
    import psycopg

    found = request.getfixturevalue("postgres")
    with psycopg.connect(found, autocommit=True) as connection:
        for table in ("clicks", "uploads", "uploaded", "state"):
            connection.execute(f"DROP TABLE IF EXISTS pseudomallows_{table}")
    return found


def test_clicks_are_kept_once_in_order_and_found_again(address):
    store = open_store(address)
    store.add([("ann", "tea"), ("ann", "rum"), ("bob", "ü ☕ 'x'; --"), ("ann", "tea")])
    store.add([("ann", "ale")])
    assert store.clicks_of(["ann", "zoe"]) == {"ann": ["tea", "rum", "ale"], "zoe": []}
    store.close()
    store = open_store(address)
    expected = [("ann", "tea"), ("ann", "rum"), ("bob", "ü ☕ 'x'; --"), ("ann", "ale")]
    assert list(store.all_clicks()) == expected
    assert store.n_clicks() == 4
    store.close()


def test_many_clicks_come_back_in_pieces(address):
    store = open_store(address)
    pairs = [(f"user {i % 997}", f"item {i}") for i in range(12_345)]
    store.add(pairs)
    assert list(store.all_clicks()) == pairs
    store.close()


def test_all_or_none(address):
    store = open_store(address)

    def broken():
        yield ("ann", "tea")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(broken())
    with pytest.raises((ServiceError, UnicodeEncodeError)):
        store.add([("ann", "rum"), ("ann", "\ud800")])
    assert store.n_clicks() == 0
    store.add([("ann", "tea")])
    assert store.n_clicks() == 1
    store.close()


def test_many_writers_to_one_user_through_two_connections(address):
    """As two processes would: each click is there once, and every answer holds what was given."""
    stores = [open_store(address) for _ in range(2)]
    writers = [Keeper(store) for store in stores]

    async def write(number):
        items = [f"item {number}", f"item {number + 1}", "all"]
        stored = await writers[number % 2].add("ann", items)
        assert set(items) <= set(stored)

    async def write_all():
        await asyncio.gather(*(write(number) for number in range(200)))

    asyncio.run(write_all())
    for writer in writers:
        writer.close()
    assert sorted(stores[0].clicks_of(["ann"])["ann"]) == sorted(
        ["all", *(f"item {i}" for i in range(201))]
    )
    for store in stores:
        store.close()


def test_a_store_that_is_none_is_refused(tmp_path):
    (tmp_path / "text").write_text("not a database " * 100)
    with pytest.raises(ValueError, match="cannot keep clicks"):
        open_store(str(tmp_path / "text"))
    with pytest.raises(ValueError, match="cannot keep clicks"):
        open_store(str(tmp_path / "no" / "folder.sqlite"))
    pytest.importorskip("psycopg")
    with pytest.raises(ValueError, match="cannot keep clicks in PostgreSQL"):
        open_store(f"postgresql://pm@127.0.0.1:{free_port()}/none")


def test_a_lost_connection_is_made_anew(postgres):
    import psycopg

    store = open_store(postgres)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
            "AND datname = 'postgres'"
        )
    with pytest.raises(ServiceError) as error:
        store.add([("ann", "tea")])
    assert error.value.status == 503
    store.add([("ann", "tea")])
    assert "tea" in store.clicks_of(["ann"])["ann"]
    store.close()


def test_a_full_disk_is_507_and_nothing_is_lost(tmp_path):
    """The limit of pages stands for the disk; the same on a small file system is a slow test."""
    make_model(tmp_path / "m.pm")
    app = make_app(tmp_path / "m.pm", str(tmp_path / "s.sqlite"))
    app.service.keeper.store.close()
    app.service.keeper.store = SqliteStore(str(tmp_path / "s.sqlite"), max_pages=20)
    kept, last = _fill(Client(app))
    assert last.status_code == 507
    assert "the disk of the store is full: nothing was stored" in last.json()["error"]
    store = open_store(str(tmp_path / "s.sqlite"))
    assert dict(store.all_clicks()) == kept
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
    assert dict(store.all_clicks()) == kept
    store.close()


def hammer(port, worker, acknowledged, stop):
    """Post clicks over one connection; note those that were acknowledged."""
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            stream = connection.makefile("rb")
            for number in range(10**6):
                if stop.is_set():
                    return
                user, item = f"user {worker} {number // 5}", f"item {number % 5}"
                body = json.dumps({"clicks": [item]}).encode()
                path = f"/users/{user}/clicks".replace(" ", "%20").encode()
                connection.sendall(
                    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                    % (path, len(body), body)
                )
                if stream.readline() != b"HTTP/1.1 200 OK\r\n":
                    return
                length = 0
                while (line := stream.readline().lower()) != b"\r\n":
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                stream.read(length)
                acknowledged.append((user, item))
    except OSError:
        return


@pytest.mark.parametrize("n_services", [1, 2])
def test_no_acknowledged_click_is_lost_by_a_kill(address, tmp_path, n_services):
    """Killed in the middle of a load from several connections, one process or two."""
    make_model(tmp_path / "m.pm")
    services = [Process(tmp_path / "m.pm", address) for _ in range(n_services)]
    acknowledged, stop = [], threading.Event()
    try:
        threads = [
            threading.Thread(
                target=hammer, args=(services[n % n_services].port, n, acknowledged, stop)
            )
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 30
        while len(acknowledged) < 300 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        for service in services:
            service.kill()
        stop.set()
    for thread in threads:
        thread.join()
    assert len(acknowledged) >= 300
    store = open_store(address)
    assert set(acknowledged) <= set(store.all_clicks())
    store.close()
    with Process(tmp_path / "m.pm", address) as service:
        user, item = acknowledged[-1]
        path = f"/users/{user.replace(' ', '%20')}"
        assert item in service.ask(f"{path}/clicks", {"clicks": [item]})[1]["clicks"]


# Uploads


def finish(store, pairs):
    """Store an upload in two parts; its number."""
    upload = store.begin_upload(len({user for user, _ in pairs}), len({i for _, i in pairs}))
    for part in (pairs[:1], pairs[1:]):
        store.add_part(upload, part)
    store.finish_upload(upload)
    return upload


def test_an_upload_is_seen_whole_or_not_at_all(address):
    store, other = open_store(address), open_store(address)
    store.add([("ann", "tea")])
    upload = store.begin_upload(2, 2)
    store.add_part(upload, [("ann", "rum"), ("ann", "tea")])
    store.add_part(upload, [("bob", "rum")])
    for one in (store, other):
        assert one.clicks_of(["ann", "bob"]) == {"ann": ["tea"], "bob": []}
        assert list(one.all_clicks()) == [("ann", "tea")]
        assert (one.n_clicks(), one.uploads()) == (1, [])
    store.finish_upload(upload)
    store.add([("ann", "ale")])
    for one in (store, other):
        assert one.clicks_of(["ann", "bob"]) == {"ann": ["tea", "rum", "ale"], "bob": ["rum"]}
        assert set(one.all_clicks()) == {*pairs_of("ann tea, ann rum, ann ale, bob rum")}
        ((number, _, users, items, clicks),) = one.uploads()
        assert (number, users, items, clicks) == (upload, 2, 2, 3)
    for one in (store, other):
        one.close()


def pairs_of(text):
    return [tuple(words.split()) for words in text.split(", ")]


def test_a_removed_upload_takes_only_its_own_clicks(address):
    store = open_store(address)
    store.add(pairs_of("ann tea"))
    first = finish(store, pairs_of("ann tea, ann rum, bob rum, bob ale"))
    second = finish(store, pairs_of("bob rum, eve gin"))
    store.add(pairs_of("bob ale"))
    assert store.remove_upload(first) == 4
    expected = {"ann": ["tea"], "bob": ["rum", "ale"], "eve": ["gin"]}
    assert store.clicks_of(["ann", "bob", "eve"]) == expected
    assert [row.number for row in store.uploads()] == [second]
    assert store.remove_upload(first) is None
    assert store.left_over() == {first: ("deleted", 4)}
    while store.clean(first):
        pass
    assert store.left_over() == {}
    assert store.clean(second) is False  # one that counts is left alone
    assert store.clicks_of(["ann", "bob", "eve"]) == expected
    assert finish(store, pairs_of("zoe gin")) == second + 1
    store.close()


def test_all_stored_clicks_of_a_user_can_be_removed(address):
    store = open_store(address)
    store.add(pairs_of("ann tea, bob tea"))
    finish(store, pairs_of("ann rum, bob rum"))
    finish(store, pairs_of("bob ale, bob gin"))
    assert store.remove_user("bob") == 4
    assert store.remove_user("bob") == 0
    assert store.clicks_of(["ann", "bob"]) == {"ann": ["tea", "rum"], "bob": []}
    assert [(row.users, row.clicks) for row in store.uploads()] == [(0, 0), (1, 1)]
    store.close()


def test_clicks_of_a_user_are_looked_up_not_searched_for(tmp_path):
    """Whatever the size of the uploads."""
    store = open_store(str(tmp_path / "s.sqlite"))
    text = f"EXPLAIN QUERY PLAN {CLICKS_OF}"
    plan = store._read(lambda run: [row[3] for row in run(text, ("ann", "ann")).fetchall()])
    assert any(re.match(r"SEARCH uploaded .*upload=\? AND user=\?", step) for step in plan), plan
    assert not any(re.match("SCAN (uploaded|clicks)", step) for step in plan), plan
    store.close()


def test_an_upload_that_was_given_up_cannot_go_on(address):
    store = open_store(address)
    upload = store.begin_upload(1, 2)
    store.add_part(upload, [("ann", "tea")])
    assert store.remove_upload(upload, "running") == 1
    with pytest.raises(ServiceError, match="given up"):
        store.add_part(upload, [("ann", "rum")])
    with pytest.raises(ServiceError, match="given up"):
        store.finish_upload(upload)
    assert (store.n_clicks(), list(store.all_clicks())) == (0, [])
    store.close()


def test_the_running_count_is_that_of_the_rows(address):
    """After any mixture of changes through two connections, as of two processes."""
    rng = random.Random(7)
    stores, numbers = [open_store(address) for _ in range(2)], []
    for _ in range(120):
        store, what = rng.choice(stores), rng.random()
        pairs = {(f"u{rng.randrange(9)}", f"i{rng.randrange(9)}") for _ in range(rng.randint(2, 9))}
        before = store.counts()[1]
        if what < 0.5:
            store.add(sorted(pairs))
        elif what < 0.75:
            numbers.append(finish(store, sorted(pairs)))
        elif what < 0.9:
            store.remove_user(f"u{rng.randrange(9)}")
        elif numbers:
            upload = numbers.pop(rng.randrange(len(numbers)))
            store.remove_upload(upload)
            while store.clean(upload):
                pass
        assert store.n_clicks() == len(list(stores[0].all_clicks()))
        assert store.counts()[1] >= before
    for store in stores:
        store.close()


OLD = (
    "CREATE TABLE clicks (number INTEGER PRIMARY KEY AUTOINCREMENT, "
    "user TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (user, item))",
    "CREATE TABLE pseudomallows_clicks (number BIGSERIAL PRIMARY KEY, "
    "name TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (name, item))",
)


def run_sql(address, *texts):
    """Change a store behind our back; both kinds, the first text for SQLite."""
    if address.startswith("postgresql"):
        import psycopg

        with psycopg.connect(address, autocommit=True) as connection:
            for text in texts:
                connection.execute(text)
        return
    connection = sqlite3.connect(address)
    for text in texts:
        connection.execute(text)
    connection.commit()
    connection.close()


def test_a_store_of_version_0_1_is_taken_over(address):
    is_file = not address.startswith("postgresql")
    table, user = ("clicks", "user") if is_file else ("pseudomallows_clicks", "name")
    run_sql(
        address,
        OLD[0 if is_file else 1],
        f"INSERT INTO {table} ({user}, item) VALUES ('ann', 'tea'), ('ann', 'rum')",
    )
    for _ in range(2):
        store = open_store(address)
        assert store.clicks_of(["ann"]) == {"ann": ["tea", "rum"]}
        assert store.counts() == (2, 2)
        store.close()
    store = open_store(address)
    finish(store, pairs_of("bob tea, bob ale"))
    store.add(pairs_of("ann tea, ann gin"))
    assert store.counts() == (5, 5)
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


def test_a_store_of_a_newer_program_is_refused(address):
    open_store(address).close()
    prefix = "pseudomallows_" if address.startswith("postgresql") else ""
    run_sql(address, f"UPDATE {prefix}state SET schema = 99")
    with pytest.raises(ValueError, match=r"schema is number 99.*update pseudomallows"):
        open_store(address)
    run_sql(address, f"ALTER TABLE {prefix}state RENAME COLUMN schema TO version")
    with pytest.raises(ValueError, match=r"has the columns one, version, .*wanted one, schema"):
        open_store(address)


def test_many_large_requests_are_not_one_large_commit(tmp_path):
    store = open_store(str(tmp_path / "s.sqlite"))
    keeper, sizes, add = Keeper(store), [], store.add
    store.add = lambda pairs: sizes.append(len(pairs)) or add(pairs)

    async def write_all():
        items = [f"item {number}" for number in range(3000)]
        await asyncio.gather(*(keeper.add(f"user {n}", items) for n in range(30)))

    asyncio.run(write_all())
    keeper.close()
    assert sum(sizes) == 90_000
    assert max(sizes) <= keeper_module.MAX_PAIRS + 3000
    store.close()


# Uploads through the service


@contextlib.contextmanager
def client_of(folder, address=None, **more):
    if not (folder / "m.pm").exists():
        make_model(folder / "m.pm")
    with Client(make_app(folder / "m.pm", address or str(folder / "s.sqlite"), **more)) as client:
        yield client


def wait_until(is_true, seconds=20):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("small", [10**6, 0], ids=["here", "in a process"])
def test_uploads_are_limited_listed_and_removed(address, tmp_path, monkeypatch, small):
    monkeypatch.setattr(uploads, "SMALL", small)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.1)
    limits = Limits(uploads=Most(rows=4, users=3, items=2))
    with client_of(tmp_path, address, limits=limits) as client:

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
        wait_until(lambda: not client.app.service.keeper.store.left_over())


@pytest.mark.parametrize("small", [10**6, 0], ids=["here", "in a process"])
def test_the_client_is_told_what_of_a_file_was_not_heeded(tmp_path, monkeypatch, caplog, small):
    monkeypatch.setattr(uploads, "SMALL", small)
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_of(tmp_path) as client:

        def send(text):
            answer = client.post("/upload?refit=false", content=text)
            assert answer.status_code == 202, answer.text
            assert "/tmp" not in answer.text
            return answer.json()

        answer = send("user,item,rating\nann,item 1,1\nann,item 2,5\n,item 3,4\n")
        assert (answer["users"], answer["items"], answer["clicks"]) == (1, 2, 2)
        column, dropped = answer["warnings"]
        assert "'rating'" in column
        assert dropped.startswith("the file: 1 of 3 rows have no user or no item")
        assert f"upload {answer['upload']}: {dropped}" in caplog.text
        assert send("user,item\nann,item 1\nann,item 2\n")["warnings"] == []


@pytest.mark.parametrize("small", [10**6, 0], ids=["here", "in a process"])
@pytest.mark.parametrize("item", ["item 1", "gold"])
def test_clicks_on_one_item_can_be_uploaded(tmp_path, monkeypatch, small, item):
    monkeypatch.setattr(uploads, "SMALL", small)
    with client_of(tmp_path) as client:
        text = f"user,item\nzed,{item}\nann,{item}\n"
        answer = client.post("/upload?refit=false", content=text).json()
        assert (answer["users"], answer["items"], answer["clicks"]) == (2, 1, 2)
        stored = client.app.service.keeper.store.all_clicks()
        assert sorted(stored) == [("ann", item), ("zed", item)]
        answer = client.post("/upload?refit=false", content="user,item\n,\n")
        assert answer.status_code == 422


def test_removing_needs_the_token(tmp_path):
    with client_of(tmp_path, token="a token of some length") as client:
        for path in ("/users/ann", "/uploads/1", "/users/ann/x"):
            assert client.delete(path).status_code == 401
            right = {"Authorization": "Bearer a token of some length"}
            assert client.delete(path, headers=right).status_code == 404
        assert client.get("/uploads").status_code == 200


def test_a_process_that_ends_early_leaves_nothing_of_its_upload(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "SMALL", 0)
    cut = (
        'import sys, os; print(\'{"found": [1, 1, 1], "warnings": []}\', flush=True); '
        "input(); input(); os.abort()"
    )
    for text in ("raise SystemExit(1)", cut):
        monkeypatch.setattr(uploads.Uploads, "command", (sys.executable, "-c", text))
        with client_of(tmp_path) as client:
            answer = client.post("/upload?refit=false", content="user,item\na,item 1\n")
            assert (answer.status_code, "cut short" in answer.text) == (503, True)
            assert client.get("/uploads").json() == {"uploads": []}


def test_what_no_memory_holds_is_refused(tmp_path, monkeypatch):
    """A process that reads a file has its limit; the service goes on."""
    monkeypatch.setattr(uploads, "SMALL", 0)
    text = "from pseudomallows.web import intake; intake.MEMORY = 10**7; intake.main()"
    monkeypatch.setattr(uploads.Uploads, "command", (sys.executable, "-c", text))
    rows = "\n".join(f"u{n},item 1" for n in range(200_000))
    with client_of(tmp_path) as client:
        answer = client.post("/upload?refit=false", content=f"user,item\n{rows}")
        assert answer.status_code == 413
        assert "0.01 GB of memory" in answer.json()["error"]
        assert client.get("/healthz").status_code == 200


def rows_of_clicks(n_rows):
    """A file of distinct clicks, all of items that are new to the model."""
    rows = (f"customer{n // 10:07},thing{n % 10:05}\n" for n in range(n_rows))
    return ("user,item\n" + "".join(rows)).encode()


@pytest.mark.parametrize(
    "n_rows", [60_000, pytest.param(4_100_000, marks=pytest.mark.slow)], ids=["short", "100 MB"]
)
def test_the_service_goes_on_while_a_large_upload_is_taken_in(tmp_path, n_rows):
    content = rows_of_clicks(n_rows)[:100_000_000].rpartition(b"\n")[0] + b"\n"
    make_model(tmp_path / "m.pm")
    times, posted, stop = [], [], threading.Event()
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:

        def look():
            while not stop.is_set():
                started = time.monotonic()
                assert service.ask("/healthz") == (200, {"status": "ok"})
                times.append(time.monotonic() - started)
                time.sleep(0.02)

        def post():
            while not stop.is_set():
                user = f"poster{len(posted)}"
                assert service.ask(f"/users/{user}/clicks", {"clicks": ["item 1"]})[0] == 200
                posted.append(time.monotonic())

        threads = [threading.Thread(target=work) for work in (look, post)]
        for thread in threads:
            thread.start()
        try:
            status, answer = service.ask("/upload?refit=false", content, timeout=900)
            ended = time.monotonic()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert (status, answer["clicks"]) == (202, content.count(b"\n") - 1)
    assert max(times) < 1.0
    assert sum(when < ended for when in posted) > 5
    store = open_store(str(tmp_path / "s.sqlite"))
    assert store.n_clicks() == answer["clicks"] + len(posted)
    store.close()


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
        wait_until(lambda: any(rows > 0 for _, rows in store.left_over().values()))
    thread.join()
    ((upload, (stage, rows)),) = store.left_over().items()
    assert (stage, rows < 200_000) == ("running", True)
    assert (list(store.all_clicks()), store.n_clicks(), store.uploads()) == ([], 0, [])
    monkeypatch.setattr(uploads, "STALE_SECONDS", 1.0)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.2)
    with client_of(tmp_path, address) as client:
        wait_until(lambda: not store.left_over())
        answer = client.post("/upload?refit=false", content="user,item\nann,tea\nann,rum\n")
        assert answer.json()["upload"] == upload + 1
    assert list(store.all_clicks()) == [("ann", "rum"), ("ann", "tea")]
    store.close()


# A store that fails


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


def move(source, target):
    for ending in ("", "-wal", "-shm"):
        os.replace(f"{source}{ending}", f"{target}{ending}")


def test_clicks_are_not_acknowledged_in_a_file_that_is_gone(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_of(tmp_path) as client:
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
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_of(tmp_path) as client:
        add, file = {"clicks": ["item 1"]}, "user,item\nzed,item 1\nzed,item 2\n"
        client.post("/users/ann/clicks", json=add)
        client.post("/users/user 1/clicks", json=add)
        upload = client.post("/upload?refit=false", content=file).json()["upload"]
        store = client.app.service.keeper.store
        before = list(store.all_clicks()), store.counts(), store.uploads()
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
        assert (list(store.all_clicks()), store.counts(), store.uploads()) == before
        assert store.left_over() == {}
        assert client.get("/users/ann/recommendations").status_code == 200


def test_a_file_that_goes_at_the_commit_leaves_it_open_what_was_stored(tmp_path):
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    store = SqliteStore(str(path))
    store._writer.set_trace_callback(lambda text: text == "COMMIT" and move(path, away))
    with pytest.raises(ServiceError, match="may or may not have been stored"):
        store.add([("ann", "tea")])
    store._writer.set_trace_callback(None)
    with pytest.raises(ServiceError, match="nothing can be read"):
        store.clicks_of(["ann"])
    move(away, path)
    assert store.clicks_of(["ann"]) == {"ann": ["tea"]}
    store.close()


def test_clicks_that_cannot_be_read_back_may_be_stored(tmp_path):
    """Between the commit and the reading."""
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_of(tmp_path) as client:
        store = client.app.service.keeper.store
        add = store.add

        def add_and_go(pairs):
            add(pairs)
            move(path, away)

        store.add = add_and_go
        answer = client.post("/users/ann/clicks", json={"clicks": ["item 1"]})
        assert (answer.status_code, "may or may not" in answer.text) == (503, True)
        move(away, path)
        assert store.clicks_of(["ann"]) == {"ann": ["item 1"]}


def test_an_upload_cut_by_a_file_that_goes_is_removed_when_it_is_back(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.1)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with client_of(tmp_path) as client:
        store = client.app.service.keeper.store
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


def test_each_outage_is_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    path, away = tmp_path / "s.sqlite", tmp_path / "away"
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_of(tmp_path) as client:
        for n_outages in (1, 2):
            move(path, away)
            for _ in range(5):
                assert_broken(client, "deleted or replaced")
            assert caplog.text.count("deleted or replaced") == n_outages
            move(away, path)
            wait_until(lambda: client.get("/healthz").status_code == 200)
            assert caplog.text.count("can be kept again") == n_outages


def test_a_store_that_lost_a_table_is_told_and_logged_once(address, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    with caplog.at_level(logging.ERROR, "pseudomallows"), client_of(tmp_path, address) as client:
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


def test_a_damaged_file_stays_broken_until_the_service_is_started_again(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.05)
    path = tmp_path / "s.sqlite"
    store = open_store(str(path))
    store.add([(f"user {n}", f"thing {n} {'x' * 200}") for n in range(3000)])
    store.close()
    with client_of(tmp_path) as client:
        size = path.stat().st_size
        with path.open("r+b") as stream:
            stream.seek(9 * 4096)
            stream.write(b"\xff" * (size - 9 * 4096))
        answers = [
            client.post(f"/users/{n} new/clicks", json={"clicks": ["item 1"]}) for n in range(20)
        ]
        assert 503 in {answer.status_code for answer in answers}
        time.sleep(0.3)  # it does not get well by itself
        assert "malformed" in client.get("/healthz").json()["error"]
        assert client.get("/metrics").status_code == 200
        assert client.post("/recommend", json={"clicks": []}).status_code == 200


def test_a_frozen_connection_is_cut_and_made_anew(postgres, monkeypatch):
    """While the process at its other end is still stopped."""
    monkeypatch.setattr(postgres_module, "CLIENT_SECONDS", 0.5)
    store = open_store(postgres)
    pid = store._writer._connection.info.backend_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServiceError) as error:
            store.add([("ann", "tea")])
        assert "did not answer within 0.5 seconds" in error.value.reason
        store.add([("ann", "tea")])
    finally:
        os.kill(pid, signal.SIGCONT)
    store.close()


def test_a_frozen_postgresql_is_503_in_time_and_comes_back(postgres, tmp_path, monkeypatch):
    """Its processes are stopped, not ended: no limit of its own holds."""
    import psycopg

    monkeypatch.setattr(postgres_module, "CLIENT_SECONDS", 1.0)
    monkeypatch.setattr(keeper_module, "PATIENCE", 2.0)
    monkeypatch.setattr(keeper_module, "CHECK_SECONDS", 0.1)
    add = {"clicks": ["item 1"]}
    with client_of(tmp_path, postgres) as client:
        assert client.post("/users/ann/clicks", json=add).status_code == 200
        assert client.get("/users/ann/recommendations").status_code == 200
        with psycopg.connect(postgres, autocommit=True) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid != pg_backend_pid()"
            ).fetchall()
            parent = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()[0]
        pids = [int(parent.split()[0]), *(pid for (pid,) in rows)]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            with ThreadPoolExecutor(8) as pool:
                started = time.monotonic()
                posts = [
                    pool.submit(client.post, f"/users/new {n}/clicks", json=add) for n in range(8)
                ]
                while not all(post.done() for post in posts):
                    asked = time.monotonic()
                    client.get("/healthz")
                    assert time.monotonic() - asked < 1
                    time.sleep(0.05)
                assert {post.result().status_code for post in posts} == {503}
                assert time.monotonic() - started < 5
            assert "answer" in client.get("/healthz").json()["error"]
            started = time.monotonic()
            answer = client.get("/users/user 1/recommendations")
            assert (answer.status_code, answer.headers["x-stored-clicks"]) == (200, "missing")
            assert client.get("/users/nobody/recommendations").status_code == 503
            assert client.get("/metrics").status_code == 200
            assert time.monotonic() - started < 5
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        wait_until(lambda: client.get("/healthz").status_code == 200)
        assert client.post("/users/ann/clicks", json=add).status_code == 200
