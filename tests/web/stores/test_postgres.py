"""The store of PostgreSQL: connections that are lost or frozen."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pseudomallows.web.errors import ServiceError, StoreError
from pseudomallows.web.stores import async_store
from pseudomallows.web.stores import postgres as postgres_module
from pseudomallows.web.stores.open import open_store
from webhelp import client_in, wait_until

HANGS = 60.0  # seconds: a busy machine is slow, but waits for nothing for so long


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


def test_a_frozen_connection_is_cut_and_made_anew(postgres, monkeypatch):
    """While the process at its other end is still stopped."""
    import psycopg

    monkeypatch.setattr(postgres_module, "CLIENT_SECONDS", 2.0)
    store = open_store(postgres)
    with psycopg.connect(postgres) as connection:  # the writer made the tables, the reader reads
        others = "FROM pg_stat_activity WHERE pid != pg_backend_pid() AND datname = 'postgres'"
        store.add([("bob", "tea")])
        latest = connection.execute(f"SELECT pid {others} ORDER BY query_start DESC LIMIT 1")
        (pid,) = latest.fetchone()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServiceError) as error:
            store.add([("ann", "tea")])
        assert "did not answer within 2 seconds" in error.value.reason
        store.add([("ann", "tea")])
    finally:
        os.kill(pid, signal.SIGCONT)
    store.close()


def test_a_frozen_postgresql_is_503_in_time_and_comes_back(postgres, tmp_path, monkeypatch):
    """Its processes are stopped, not ended: no limit of its own holds."""
    import psycopg

    monkeypatch.setattr(postgres_module, "CLIENT_SECONDS", 2.0)
    monkeypatch.setattr(async_store, "PATIENCE", 4.0)
    monkeypatch.setattr(async_store, "CHECK_SECONDS", 0.1)
    add = {"clicks": ["item 1"]}
    with client_in(tmp_path, postgres) as client:
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
                    assert time.monotonic() - asked < HANGS
                    time.sleep(0.05)
                assert {post.result().status_code for post in posts} == {503}
                assert time.monotonic() - started < HANGS
            assert "answer" in client.get("/healthz").json()["error"]
            started = time.monotonic()
            answer = client.get("/users/user 1/recommendations")
            assert (answer.status_code, answer.headers["x-stored-clicks"]) == (200, "missing")
            assert client.get("/users/nobody/recommendations").status_code == 503
            assert client.get("/metrics").status_code == 200
            assert time.monotonic() - started < HANGS
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        wait_until(lambda: client.get("/healthz").status_code == 200)
        assert client.post("/users/ann/clicks", json=add).status_code == 200


def test_a_name_that_postgresql_cannot_take_is_no_outage(postgres, tmp_path):
    with client_in(tmp_path, postgres) as client:
        assert client.post("/users/ann/clicks", json={"clicks": ["item 1"]}).status_code == 200
        for _ in range(5):
            asked = {"users": [{"id": "a\0b"}, {"id": "ann"}]}
            answer = client.post("/recommend/batch", json=asked)
            bad, good = answer.json()["answers"]
            assert "the name of a user" in bad["error"]
            assert good["recommendations"]
            assert "x-stored-clicks" not in answer.headers
            assert client.get("/healthz").status_code == 200
    store = open_store(postgres)
    with pytest.raises(ServiceError) as error:
        store.clicks_of(["a\0b"])
    assert (error.value.status, isinstance(error.value, StoreError)) == (422, False)
    store.close()


def test_the_password_may_come_from_the_environment_or_a_file(postgres, tmp_path, monkeypatch):
    """And so is in no list of processes."""
    import psycopg

    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS secretive")
        connection.execute("CREATE ROLE secretive SUPERUSER LOGIN PASSWORD 'sesame'")
        rules = Path(connection.execute("SHOW hba_file").fetchone()[0])
        before = rules.read_text()
        rules.write_text("host all secretive all scram-sha-256\n" + before)
        connection.execute("SELECT pg_reload_conf()")
        address = postgres.replace("pm@", "secretive@")
        try:
            wait_until(lambda: not can_open(address))
            monkeypatch.setenv("PGPASSWORD", "sesame")
            assert can_open(address)
            monkeypatch.delenv("PGPASSWORD")
            file = tmp_path / "passwords"
            file.write_text("*:*:*:secretive:sesame\n")
            file.chmod(0o600)
            monkeypatch.setenv("PGPASSFILE", str(file))
            assert can_open(address)
            monkeypatch.delenv("PGPASSFILE")
            assert can_open(f"{address}?passfile={file}")
        finally:
            rules.write_text(before)
            connection.execute("SELECT pg_reload_conf()")


def can_open(address):
    try:
        open_store(address).close()
    except ValueError:
        return False
    return True
