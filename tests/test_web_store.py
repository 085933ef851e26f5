"""The stores: SQLite and PostgreSQL keep what they have acknowledged."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from pseudomallows.web.errors import ServiceError
from pseudomallows.web.keeper import Keeper
from pseudomallows.web.store import SqliteStore, open_store
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
    from pseudomallows.web.app import make_app

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
        from pseudomallows.web.app import make_app

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
