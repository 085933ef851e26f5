"""What the tests of the service share: a model, an app, a service as a process."""

import contextlib
import json
import os
import random
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from pathlib import Path
from types import SimpleNamespace

import httpx
import uvicorn

import pseudomallows as pm
from pseudomallows.web import guard
from pseudomallows.web.app import app_of
from pseudomallows.web.connections import Connections
from pseudomallows.web.run_service import make_config
from pseudomallows.web.service import Service

TOKEN = "a token of some length"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
LONG_WAIT = 300.0  # seconds: on a busy machine anything may be slow, so only what hangs reaches it


def make_model(path, method="mcmc", n_clusters=1, n_users=60, n_items=12, names=True, **more):
    """A small model of simulated clicks, saved."""
    prefs = pm.simulate_clicks(n_users, n_items, [6.0] * n_clusters, 3, rng=1).preferences
    if names:
        prefs = prefs.rename(
            users=[f"user {i}" for i in range(n_users)], items=[f"item {i}" for i in range(n_items)]
        )
    if method != "personal":
        more = {"n_draws": 20, "n_clusters": n_clusters, "n_chains": 1} | more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(prefs, method, rng=1, **more)
    posterior.save(path)
    return posterior


def make_app(model, store, hosts=None, names=frozenset(), **more):
    """The app of a model and a store."""
    return app_of(Service(model, store, **more), hosts, names)


def free_port():
    """A port that nobody listens on, and that no client gets: those have the higher ones."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Client(httpx.Client):
    """A client of an app that runs in a thread, behind the server of the service."""

    def __init__(self, app, connections=None):
        self.app, self.port = app, free_port()
        super().__init__(
            base_url=f"http://127.0.0.1:{self.port}", timeout=LONG_WAIT, trust_env=False
        )
        self.server = uvicorn.Server(make_config(app, "127.0.0.1", self.port, connections))
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        return super().__enter__()

    def __exit__(self, *problem):
        super().__exit__(*problem)
        self.server.should_exit = True
        self.thread.join(timeout=LONG_WAIT)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def client_of(model, *limits, **more):
    """A client of the app of a model, with a new store; limits are those of connections."""
    store = model.parent / f"{time.monotonic_ns()}.sqlite"
    with Client(make_app(model, str(store), **more), Connections(*limits)) as client:
        yield client


@contextlib.contextmanager
def client_in(folder, address=None, **more):
    """A client of the app of FOLDER/m.pm, which is made if need be, and FOLDER/s.sqlite."""
    if not (folder / "m.pm").exists():
        make_model(folder / "m.pm")
    with Client(make_app(folder / "m.pm", address or str(folder / "s.sqlite"), **more)) as client:
        yield client


def clock_of_limits(monkeypatch):
    """The time by which clients are limited, to be moved by hand."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter)
    monkeypatch.setattr(guard, "time", clock)
    return now


def wait_until(is_true, seconds=LONG_WAIT):
    """Ask until it is true."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def talk(port, *parts, pause=0.0, source="127.0.0.1", n_answers=1):
    """All that a server says to some bytes, in pieces, until it closes, or falls silent after as
    many whole answers."""
    address = ("127.0.0.1", port)
    with socket.create_connection(address, LONG_WAIT, source_address=(source, 0)) as connection:
        said = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while part := connection.recv(65536):
                said += part
                is_said = count_answers(said) >= n_answers and not is_last(said)
                connection.settimeout(0.3 if is_said else LONG_WAIT)
        return said


def count_answers(said):
    """How many answers have come whole."""
    number = 0
    while (end := said.find(b"\r\n\r\n")) >= 0:
        length = re.search(rb"\ncontent-length: (\d+)", said[:end].lower())
        said = said[end + 4 :]
        if length is None or len(said) < int(length[1]):
            break
        number, said = number + 1, said[int(length[1]) :]
    return number


def is_last(said):
    """Does the server close the connection after this?"""
    return b"\nconnection: close" in said.lower()


class Process:
    """The service as people run it."""

    def __init__(self, model, store, *more, env=None):
        self.port, self.env = free_port(), os.environ | (env or {})
        self.url = f"http://127.0.0.1:{self.port}"
        words = ["serve", model, "--port", self.port, "--store", store, *more]
        self.command = [sys.executable, "-m", "pseudomallows", *map(str, words)]
        self.log = Path(f"{model}.{self.port}.log")
        self.start()

    def start(self):
        """Once more, after an end."""
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(
                self.command, stderr=stream, env=self.env, start_new_session=True
            )
        deadline = time.monotonic() + LONG_WAIT
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text())
            with contextlib.suppress(OSError):
                self.ask("/healthz")
                return
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError("the service did not start")
            time.sleep(0.05)

    def ask(self, path, body=None, method=None, headers=None, timeout=LONG_WAIT):
        """Status and JSON of an answer."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        data = data.encode() if isinstance(data, str) else data
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def kill(self):
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


# Jobs


def script(text):
    """The command of a process that does something else."""
    return (sys.executable, "-c", text)


LONG = script('import time; print(\'{"done": 3, "total": 9}\', flush=True); time.sleep(60)')


def wait_for_job(client, job):
    """The answer of a job that has ended."""

    def has_ended():
        nonlocal answer
        answer = client.get(f"/jobs/{job}").json()
        return answer["state"] in ("done", "failed", "cancelled")

    answer = None
    wait_until(has_ended)
    return answer


def rows_of_clicks(n_rows):
    """A file of distinct clicks, all of items that are new to the model."""
    rows = (f"customer{n // 10:07},thing{n % 10:05}\n" for n in range(n_rows))
    return ("user,item\n" + "".join(rows)).encode()


# Stores


def move(source, target):
    """Move the files of a store."""
    for ending in ("", "-wal", "-shm"):
        os.replace(f"{source}{ending}", f"{target}{ending}")


def pairs_in(store):
    """User and item of every stored click."""
    return [(user, item) for user, item, _ in store.all_clicks()]


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


def recommend_bytes(body=b'{"clicks":["item 1"],"k":2}', head=b"", host=b"localhost", length=None):
    """The bytes of a request for recommendations."""
    length = len(body) if length is None else length
    return (b"POST /recommend HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s") % (
        host,
        length,
        head,
        body,
    )
