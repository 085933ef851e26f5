"""How many requests a second the service answers, on one core. Ten minutes.

The service runs as people run it, held to one core; a client of ours, held to another, keeps 16
connections busy with POST /recommend (k = 10), each asking again as soon as it is answered. The
CPU time of each for a request is shown, since other work on the machine changes it less; that of
the service holds the first answers of "again". The client is an asyncio protocol on raw sockets
that finds the end of an answer by its length.

"again": the clicks of the model's users, over and over, after all have been asked for once, so that
the answers are those kept from before. "new": users of the same population whom the fit has not
seen, no two with the same clicks, so that every answer is computed. "odd": the same for 4 to 6
items drawn at random, as nobody would click, which speak for no cluster. "rows": GET
/users/{id}/recommendations. "store": POST /users/{id}/clicks, one click each, on the disk before
the answer.

The first model is fitted by "pseudo" to 3,000 simulated users: 4 chains of 50 draws. Those of the
others have the same shapes, but draws that are made up around the truth: a fit would take long.
Users have 4 to 8 clicks; the tables for them are made before. With a folder as second argument, the
fitted model is kept there for the next time.
"""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import pseudomallows as pm
from pseudomallows.data.datasets import Simulation
from pseudomallows.data.from_clicks import clicks_of_pairs
from pseudomallows.rankings import orderings_of
from timing import print_table

SETTINGS = [(200, 17, 20.0), (200, 50, 20.0), (1000, 17, 40.0)]  # items, clusters, alpha
N_CHAINS, N_DRAWS, N_USERS, N_NEW = 4, 50, 3000, 60_000
N_CONNECTIONS, SECONDS = 16, 8.0
PORT = 8799


def simulate(n_items: int, n_clusters: int, alpha: float) -> tuple[pm.Clicks, Simulation]:
    """Clicks of the users of the fit, and the whole population."""
    shape = (N_USERS + N_NEW, n_items, [alpha] * n_clusters, 5)
    found = pm.simulate_clicks(*shape, min_clicks=4, max_clicks=8, rng=1)
    clicks = found.preferences
    names = np.array([f"item {code}" for code in range(n_items)], object)
    rows = np.repeat(np.arange(clicks.n_users), clicks.n_clicks)
    users = np.array([f"user {row}" for row in range(clicks.n_users)], object)
    return clicks_of_pairs(rows, clicks.codes, None, users, names), found


def fit(clicks: pm.Clicks, n_clusters: int, folder: Path) -> pm.Posterior:
    """By the paper's method; kept in the folder."""
    path = folder / f"{clicks.n_items} {n_clusters}.pm"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)
            options = {"n_clusters": n_clusters, "n_draws": N_DRAWS, "n_chains": N_CHAINS}
            pm.fit(clicks, "pseudo", **options, rng=1).save(path)
    return pm.load(path)


def make_up(clicks: pm.Clicks, truth: Simulation, alpha: float) -> pm.Posterior:
    """A posterior of the shapes of a fit, around the truth."""
    rng, (n_clusters, n_items) = np.random.default_rng(1), truth.consensus.shape

    noise = rng.normal(0, n_items / 20, (N_CHAINS, N_DRAWS, n_clusters, n_items))
    orderings = orderings_of((truth.consensus + noise).reshape(-1, n_items))
    draws = (orderings_of(orderings) + 1).astype(np.int32).reshape(noise.shape)
    alphas = rng.normal(alpha, 0.5, (N_CHAINS, 1, n_clusters)).repeat(N_DRAWS, axis=1)
    shape, labels = (N_CHAINS, N_DRAWS), truth.labels[: clicks.n_users]
    memberships = np.eye(n_clusters, dtype=np.float32)[labels]
    options = {"order": "uniform", "n_draws": N_DRAWS, "n_clusters": n_clusters}
    return pm.Posterior(
        consensus=draws,
        alpha=alphas,
        weights=np.full(shape, 1 / (N_CHAINS * N_DRAWS)),
        log_posterior=np.zeros(shape),
        best=truth.consensus.astype(np.int32),
        items=clicks.items,
        users=clicks.users,
        settings={
            "method": "pseudo",
            "alpha": None,
            "kind": "clicks",
            "is_full": False,
            "distance": "footrule",
            "options": options,
        },
        data=clicks,
        latent=np.empty((*shape, 0, n_items), np.int32),
        shares=np.full((*shape, n_clusters), 1 / n_clusters),
        chain_memberships=np.repeat(memberships[None], N_CHAINS, axis=0),
    )


# The client


class Connection(asyncio.Protocol):
    """Asks, waits for the whole answer, asks again."""

    def __init__(self, requests: Iterator[bytes], times: list[float], failures: list[bytes]):
        self.requests, self.times, self.failures = requests, times, failures
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            return
        self.left, self.head = -1, b""
        self.started = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self.left < 0:
            self.head += data
            head, found, body = self.head.partition(b"\r\n\r\n")
            if not found:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self.failures.append(head[:50])
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length is not None
            self.left = int(length[1]) - len(body)
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.times.append(time.perf_counter() - self.started)
            self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self.failures.append(str(error).encode())
        self.ended.set_result(None)


def post(path: str, body: object) -> bytes:
    """The bytes of a request."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def requests_of(kind: str, lists: dict[str, list[list[str]]], n_items: int) -> Iterator[bytes]:
    """Requests: without end, but for "new"."""
    rng = np.random.default_rng()
    if kind == "again":
        made = [post("/recommend", {"clicks": clicks, "k": 10}) for clicks in lists["fit"]]
        while True:
            yield made[rng.integers(len(made))]
    if kind == "new":
        yield from [post("/recommend", {"clicks": clicks, "k": 10}) for clicks in lists["new"]]
        raise ValueError("more new users are needed: raise N_NEW")
    number = 0
    while True:
        number += 1
        if kind == "rows":
            path = f"/users/user%20{rng.integers(len(lists['fit']))}/recommendations"
            yield f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            continue
        chosen = rng.choice(n_items, rng.integers(4, 7), replace=False)
        clicks = [f"item {code}" for code in chosen]
        if kind == "odd":
            yield post("/recommend", {"clicks": clicks, "k": 10})
        else:
            yield post(f"/users/u{number}-{rng.integers(10**9)}/clicks", {"clicks": clicks[:1]})


async def load(kind: str, lists: dict[str, list[list[str]]], n_items: int) -> dict[str, float]:
    """Ask for some seconds."""
    if kind == "again":
        await ask_all(post("/recommend", {"clicks": clicks, "k": 10}) for clicks in lists["fit"])
    source = requests_of(kind, lists, n_items)
    first = next(source)  # all are made before the clock starts, if they can be
    source, end = itertools.chain([first], source), time.perf_counter() + SECONDS
    until = iter(lambda: next(source) if time.perf_counter() < end else None, None)
    started, before = time.perf_counter(), time.process_time()
    times, failures = await ask_all(until)
    seconds = time.perf_counter() - started
    return {
        "asked": len(times) + (len(lists["fit"]) if kind == "again" else 0),
        "rate": len(times) / seconds,
        "p50": float(np.quantile(times, 0.5)),
        "p99": float(np.quantile(times, 0.99)),
        "failures": len(failures),
        "client": (time.process_time() - before) / len(times),
    }


async def ask_all(requests: Iterator[bytes]) -> tuple[list[float], list[bytes]]:
    """Seconds of each request, and what failed."""
    times: list[float] = []
    failures: list[bytes] = []
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: Connection(requests, times, failures), "127.0.0.1", PORT
        )
        for _ in range(N_CONNECTIONS)
    ]
    await asyncio.gather(*(protocol.ended for _, protocol in made))
    return times, failures


# The service


def hold(core: int) -> Callable[[], None] | None:
    """What holds a process to a core, if there are several."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        return None
    return lambda: os.sched_setaffinity(0, {cores[core]})


def cpu_seconds(pid: int) -> float:
    """CPU time of a process: it does not grow when others use the core."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figure(name: str) -> float:
    """A figure of /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(rf"^pseudomallows_{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else np.nan


def wait_until_ready(service: subprocess.Popen[bytes]) -> None:
    """Until the port is open."""
    last = "nothing"
    while service.poll() is None:
        try:
            figure("table_bytes")
            return
        except OSError as error:  # the port is not open yet, or another has it
            last = str(error)
        time.sleep(0.3)
    raise RuntimeError(
        f"the service ended with code {service.returncode} before it was ready; the last that was "
        f"heard of it: {last}"
    )


def write_lists(clicks: pm.Clicks, path: Path) -> None:
    """Clicks of the users of the fit, and of others: no two alike."""
    rows = [tuple(clicks.items[clicks.clicks_of(row)].tolist()) for row in range(clicks.n_users)]
    fitted = list(dict.fromkeys(rows[:N_USERS]))
    new = list(dict.fromkeys(row for row in rows[N_USERS:] if row not in set(fitted)))
    path.write_text(json.dumps({"fit": fitted, "new": new}))


def prepare(folder: Path, kept: Path, setting: tuple[int, int, float]) -> None:
    """Write a model and the lists of clicks to ask with."""
    n_items, n_clusters, alpha = setting
    everybody, truth = simulate(n_items, n_clusters, alpha)
    write_lists(everybody, folder / "lists.json")
    clicks = everybody.take(np.arange(N_USERS))
    is_first = setting == SETTINGS[0]
    posterior = fit(clicks, n_clusters, kept) if is_first else make_up(clicks, truth, alpha)
    posterior.save(folder / "m.pm")


def measure(folder: Path, n_items: int, n_clusters: int) -> list[list[str]]:
    """Rows of the table, for one model."""
    words = ["serve", folder / "m.pm", "--port", PORT, "--store"]
    words += [folder / f"{n_items} {n_clusters}.sqlite", "--quiet"]
    command = [sys.executable, "-m", "pseudomallows", *map(str, words)]
    started = time.perf_counter()
    service = subprocess.Popen(command)
    try:
        wait_until_ready(service)
        ready = time.perf_counter() - started
        hold_service(service.pid)
        model, size = f"{n_items} items, {n_clusters} clusters", figure("table_bytes") / 1e6
        kinds = ("again", "new", "odd", "rows", "store")
        rows = [[model, kind, *ask_for(service.pid, kind, folder, n_items)] for kind in kinds]
        return [[*row, f"{size:.0f}", f"{ready:.0f}"] for row in rows]
    finally:
        service.terminate()
        service.wait()


def hold_service(pid: int) -> None:
    """Hold all threads of the service to the first core, if there are several."""
    if hold(0) is not None:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), {sorted(os.sched_getaffinity(0))[0]})


def ask_for(pid: int, kind: str, folder: Path, n_items: int) -> list[str]:
    """What a client sees, in a process of its own, and the CPU time of both for a request."""
    client = [sys.executable, __file__, "client", kind, str(folder), str(n_items)]
    before = cpu_seconds(pid)
    run = subprocess.run(client, capture_output=True, text=True, check=True, preexec_fn=hold(1))
    seen = json.loads(run.stdout)
    spent = (cpu_seconds(pid) - before) / seen["asked"]
    return [
        f"{seen['rate']:,.0f}",
        f"{seen['p50'] * 1e3:.1f}",
        f"{seen['p99'] * 1e3:.1f}",
        str(seen["failures"]),
        f"{spent * 1e6:,.0f}",
        f"{seen['client'] * 1e6:.0f}",
    ]


def main() -> None:
    """Measure all settings."""
    if sys.argv[1:2] == ["client"]:
        kind, folder, n_items = sys.argv[2:]
        lists = json.loads((Path(folder) / "lists.json").read_text())
        print(json.dumps(asyncio.run(load(kind, lists, int(n_items)))))
        return
    kept = Path(sys.argv[2]) if sys.argv[2:] else None
    header = [
        "model",
        "kind",
        "per second",
        "p50 ms",
        "p99 ms",
        "errors",
        "service µs",
        "client µs",
        "tables MB",
        "ready s",
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for setting in SETTINGS[: int(sys.argv[1]) if sys.argv[1:] else None]:
            prepare(Path(folder), kept or Path(folder), setting)
            rows += measure(Path(folder), *setting[:2])
            print_table(header, rows)


if __name__ == "__main__":
    main()
