"""What the tests of the service share: a model, and stores of both kinds."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pseudomallows.web.guard import LOOPBACK
from webhelp import client_of, free_port, make_model

BINARIES = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The path of a model with two clusters."""
    path = tmp_path_factory.mktemp("model") / "m.pm"
    make_model(path, method="pseudo", n_clusters=2)
    return path


@pytest.fixture(scope="module")
def client(model):
    """A client of its app, for requests that call this machine by its own names."""
    with client_of(model, hosts=LOOPBACK) as client:
        yield client


@pytest.fixture(scope="session")
def server():
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


@pytest.fixture
def postgres(server):
    """The address of PostgreSQL, without any of our tables."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        for table in ("clicks", "uploads", "uploaded", "state"):
            connection.execute(f"DROP TABLE IF EXISTS pseudomallows_{table}")
    return server


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """An empty store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "s.sqlite")
    return request.getfixturevalue("postgres")
