"""Fits on real clusters of Dask: the same bits, whatever is cut, lost, or added on the way."""

import contextlib
import functools
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.recommendations import to_file as stream
from pseudomallows.sampling import checkpoint

distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
engine = pytest.importorskip("pseudomallows.engines.dask")

ROWS = stream.ROWS  # of the workers
QUICK = 25.0  # seconds: a busy machine is slow, but the waits that are made short here are 30 each
ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
FITS = {
    "sampled": {"alpha": 4, "n_draws": 6},
    "estimated": {"method": "pseudo", "n_draws": 6},  # alpha is
    "mcmc": {"method": "mcmc", "n_draws": 16, "warmup": 4, "thin": 1, "n_chains": 1},
    "clusters": {"n_clusters": 2, "n_draws": 4, "warmup": 2},
    "exact clusters": {"method": "mcmc", "n_clusters": 2, "n_draws": 6, "warmup": 2, "n_chains": 1},
    "matched": {"method": "matched", "n_draws": 4, "warmup": 4, "n_chains": 1},
    "kendall": {"method": "mcmc", "distance": "kendall", "n_draws": 4, "warmup": 4, "n_chains": 1},
    "kendall clusters": {
        "method": "mcmc",
        "distance": "kendall",
        "n_clusters": 2,
        "n_draws": 6,
        "warmup": 2,
        "n_chains": 1,
    },
}


@pytest.fixture(autouse=True)
def _no_client_left_to_collect():
    """A client of an earlier test that is collected while another one starts its loop waits for a
    lock that its own thread holds, for ever."""
    gc.collect()


@functools.cache
def make_clicks(n_users=120, n_items=8):
    """Users whose names rise, and two who say nothing."""
    prefs = pm.simulate_clicks(n_users, n_items, 5, 2.5, rng=1).preferences
    rows = {
        f"u{row:03}": prefs.codes[prefs.starts[row] : prefs.starts[row + 1]].tolist()
        for row in range(n_users)
    }
    rows |= {"u050": [], "u1": []}
    rows = {name: [f"i{code}" for code in rows[name]] for name in sorted(rows)}
    return pm.Preferences.from_clicks(rows, items=[f"i{code}" for code in range(n_items)])


def fit(prefs, kind, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        given = {"method": "pseudo"} | FITS[kind] | options
        return pm.fit(prefs, rng=3, **given)


@functools.cache
def wanted(kind):
    """The fit in this process, on one thread."""
    return fit(make_clicks(), kind, executor=pm.Threads(1))


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as made:
        yield made


@pytest.fixture
def dask(cluster, client):
    """Two workers, whatever a test before did."""
    set_workers(cluster, client, 2)
    return pm.DaskExecutor(client)


def set_workers(cluster, client, number):
    cluster.scale(number)
    until = time.monotonic() + 300
    while len(client.nthreads()) != number:
        assert time.monotonic() < until, "the workers do not come"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The clicks in 2 and in 5 files."""
    folder, items = tmp_path_factory.mktemp("parts"), make_clicks().items.tolist()
    found = {}
    for number in (2, 5):
        paths = pm.data.split(make_clicks(), folder / str(number), number).paths
        assert len(paths) == number
        found[number] = pm.data.Parts(paths, items=items)
    return found


class Once:
    """Progress that does something once, in the middle."""

    def __init__(self, action, at=0.5):
        self.action, self.at, self.is_done, self.time = action, at, False, None

    def __call__(self, done, total):
        if not self.is_done and done >= self.at * total:
            self.is_done, self.time = True, time.monotonic()
            self.action()


# The same bits


@pytest.mark.parametrize("kind", FITS)
def test_threads_leave_no_trace(kind):
    assert_same(fit(make_clicks(), kind, executor=pm.Threads(2)), wanted(kind))


@pytest.mark.parametrize("kind", FITS)
def test_a_cluster_leaves_no_trace(dask, kind):
    found = fit(make_clicks(), kind, executor=dask)
    assert_same(found, wanted(kind))
    assert np.array_equal(found.chain_memberships, wanted(kind).chain_memberships)
    assert found.users.tolist() == wanted(kind).users.tolist()


@pytest.mark.parametrize("kind", FITS)
def test_the_cut_into_parts_leaves_no_trace(dask, parts, kind):
    number = 5 if kind == "estimated" else 2
    found = fit(parts[number], kind, executor=dask)
    assert_same(found, wanted(kind))
    assert found.items.tolist() == wanted(kind).items.tolist()
    assert len(found.users) == found.clicks.n_users == 0


OWN = ("item_weights", "bias", "popularity", "ties", "alphas", "alpha_shares")


@functools.cache
def make_tastes(n_users=300, n_items=20):
    """Users who click by tastes that they share, so that there is something to blend."""
    rng = np.random.default_rng(1)
    odds = 1.5 * rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items)) - 2
    clicked = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    clicked[:, 0] |= ~clicked.any(axis=1)
    rows = {f"u{row:03}": np.flatnonzero(mine).tolist() for row, mine in enumerate(clicked)}
    rows = {user: [f"i{item:02}" for item in mine] for user, mine in rows.items()}
    return pm.Preferences.from_clicks(rows, items=[f"i{item:02}" for item in range(n_items)])


def assert_same_scores(found, other):
    for name in OWN:
        assert np.array_equal(getattr(found, name), getattr(other, name)), name
    assert found.settings["options"] == other.settings["options"]
    assert (found.correction is None) == (other.correction is None)
    for name in ("coefficients", "knots", "values") if found.correction else ():
        one, two = getattr(found.correction, name), getattr(other.correction, name)
        assert np.array_equal(one, two), name


@functools.cache
def wanted_scores(calibrate):
    how = {"rng": 3, "calibrate": calibrate, "executor": pm.Threads(1)}
    return pm.fit(make_tastes(), "personal", **how)


def test_workers_leave_no_trace_in_personal_scores(dask):
    found = pm.fit(make_tastes(), "personal", rng=3, calibrate=False, executor=dask)
    assert len(found.settings["options"]["parts"]) > 1
    assert_same_scores(found, wanted_scores(False))
    assert found.users.tolist() == make_tastes().users.tolist()


@pytest.mark.slow
def test_workers_leave_no_trace_in_corrections(dask):
    found = pm.fit(make_tastes(), "personal", rng=3, executor=dask)
    assert_same_scores(found, wanted_scores(True))


@pytest.mark.slow
@pytest.mark.parametrize("n_parts", [2, 5])
@pytest.mark.parametrize("calibrate", [True, False])
def test_the_cut_into_parts_leaves_no_trace_in_personal_scores(dask, tmp_path, n_parts, calibrate):
    paths = pm.data.split(make_tastes(), tmp_path, n_parts).paths
    parts = pm.data.Parts(paths, items=make_tastes().items.tolist())
    found = pm.fit(parts, "personal", rng=3, calibrate=calibrate, executor=dask)
    assert_same_scores(found, wanted_scores(calibrate))
    assert len(found.users) == found.clicks.n_users == 0
    one = {"new": make_tastes().items[:3].tolist()}
    here = pm.recommend(wanted_scores(calibrate), 3, clicks=one)
    assert (pm.recommend(found, 3, clicks=one).probabilities == here.probabilities).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"held_out": {"u001": ["i0"]}}, "with held_out="),
        ({"blend": False}, "give ridge="),
        ({}, "fewer than 10 items"),
    ],
)
def test_personal_scores_from_parts_refuse_what_needs_all_clicks_here(dask, parts, options, words):
    with pytest.raises(ValueError, match=words):
        pm.fit(parts[2], "personal", rng=1, executor=dask, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_leaves_no_trace(cluster, client, parts, kind, n_workers):
    set_workers(cluster, client, n_workers)
    dask = pm.DaskExecutor(client)
    assert dask.n_workers == n_workers
    forms = {"mcmc": [parts[5]], "clusters": [make_clicks()]}  # one is enough where it is slow
    for prefs in forms.get(kind, [make_clicks(), parts[5]]):
        assert_same(fit(prefs, kind, executor=dask), wanted(kind))


def test_another_seed_gives_other_bits(dask):
    """The comparisons can fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        other = pm.fit(make_clicks(), rng=4, executor=dask, **FITS["sampled"])
    assert not np.array_equal(other.consensus, wanted("sampled").consensus)


def test_weights_are_users(dask):
    prefs = make_clicks()
    weighted = pm.Clicks(
        np.arange(prefs.n_users) % 3, prefs.users, prefs.items, prefs.starts, prefs.codes
    )
    for kind in ("sampled", "clusters"):
        assert_same(fit(weighted, kind, executor=dask), fit(weighted, kind))


def write_part(path, clicks):
    """One part of rows (user, item)."""
    users, items = (pa.array([row[column] for row in clicks], pa.string()) for column in (0, 1))
    pq.write_table(pa.table({"user": users, "item": items}), path)
    return str(path)


def test_parts_that_say_nothing(dask, parts, tmp_path):
    """Empty ones, and users who have clicked everything."""
    items = make_clicks().items.tolist()
    empty = write_part(tmp_path / "a.parquet", [])
    eager = write_part(tmp_path / "z.parquet", [("zoe", item) for item in items])
    odd = pm.data.Parts([empty, *parts[2].paths, eager], items=items)
    assert_same(fit(odd, "clusters", executor=dask), wanted("clusters"))
    assert_same(fit(pm.data.Parts(odd.paths), "sampled", executor=dask), wanted("sampled"))
    assert (
        pm.recommendations.recommend_to(
            wanted("sampled"), tmp_path / "new", clicks=odd, executor=dask
        )
        == 120
    )
    for nothing, words in (
        (pm.data.Parts([empty, eager]), "no informative rows"),
        (pm.data.Parts([empty], items=items), "no informative rows"),
        (pm.data.Parts([empty]), "at least 2 items, got 0"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(nothing, "sampled", executor=dask)


def test_items_in_any_order(dask, parts):
    prefs = make_clicks()
    items, last = prefs.items.tolist()[::-1], prefs.n_items - 1
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    codes = last - prefs.codes
    codes = codes[np.lexsort((codes, owners))].astype(np.int32)
    other = pm.Clicks(prefs.weights, prefs.users, np.array(items, object), prefs.starts, codes)
    found = fit(pm.data.Parts(parts[2].paths, items=items), "sampled", executor=dask)
    assert_same(found, fit(other, "sampled"))
    assert found.items.tolist() == items


@pytest.mark.slow
def test_the_number_of_clusters_is_chosen(dask, parts):
    options = {"alpha": 5, "n_clusters": "auto", "n_draws": 3, "rng": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        here = pm.fit(make_clicks(), **options)
        for prefs in (make_clicks(), parts[2]):
            there = pm.fit(prefs, executor=dask, **options)
            assert_same(there, here)
            assert there.settings["curve"] == here.settings["curve"]


def test_a_posterior_without_users(dask, parts, tmp_path):
    """It can be kept, and answers new users as the other one does."""
    found = fit(parts[2], "clusters", executor=dask)
    found.save(tmp_path / "posterior")
    found, new = pm.load(tmp_path / "posterior"), {"zoe": ["i1", "i5"]}
    assert_same(found, wanted("clusters"))
    one, two = (pm.recommend(p, 3, clicks=new).to_rows() for p in (found, wanted("clusters")))
    assert one == two


# Workers come and go


def kill_one(client):
    pids = client.run(os.getpid)
    os.kill(min(pids.values()), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sampled", "clusters"])
def test_a_worker_is_killed(dask, client, kind):
    before, kill = set(client.nthreads()), Once(lambda: kill_one(client))
    assert_same(fit(make_clicks(), kind, executor=dask, progress=kill), wanted(kind))
    assert kill.is_done
    client.wait_for_workers(2, timeout=300)
    assert set(client.nthreads()) != before  # its nanny has started another


@pytest.mark.slow
def test_a_worker_is_killed_at_any_time(dask, client):
    """Not between two sweeps only: while it counts, or reads, or sends."""
    for delay in (0.004, 0.02):
        client.wait_for_workers(2, timeout=300)
        pid = min(client.run(os.getpid).values())
        timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
        found = fit(make_clicks(), "clusters", executor=dask, progress=Once(timer.start))
        timer.join()
        assert_same(found, wanted("clusters"))


@pytest.mark.slow
def test_a_worker_is_killed_that_writes(dask, client, parts, tmp_path):
    """What it left behind has no name that counts."""
    kill = Once(lambda: kill_one(client), at=0)
    pm.recommendations.recommend_to(wanted("clusters"), tmp_path / "here", clicks=parts[5])
    folder = tmp_path / "there"
    pm.recommendations.recommend_to(
        wanted("clusters"), folder, clicks=parts[5], executor=dask, progress=kill
    )
    for path in (tmp_path / "here").iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert len([path for path in folder.iterdir() if path.name[0] != "."]) == 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["estimated", "mcmc"])
def test_a_worker_is_killed_that_has_read_parts(dask, client, parts, kind):
    kill = Once(lambda: kill_one(client))
    assert_same(fit(parts[5], kind, executor=dask, progress=kill), wanted(kind))
    assert kill.is_done


@pytest.mark.slow
def test_a_worker_is_added(dask, cluster, client, parts):
    for prefs in (make_clicks(), parts[5]):
        set_workers(cluster, client, 2)
        add = Once(lambda: set_workers(cluster, client, 3))
        assert_same(fit(prefs, "clusters", executor=dask, progress=add), wanted("clusters"))
        assert len(client.nthreads()) == 3


# A cluster of processes without nannies


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(command, *options, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{command}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
    )


def start_scheduler(address, **environment):
    host, _, port = address.rpartition(":")
    options = ("--host", host, "--port", port, "--no-dashboard", "--no-show")
    web = ("--dashboard-address", "127.0.0.1:0")
    return start("dask_scheduler", *options, *web, **environment)


@contextlib.contextmanager
def started(n_workers, **environment):
    """The address, the scheduler and the workers, as processes."""
    address = f"tcp://127.0.0.1:{free_port()}"
    processes = [start_scheduler(address, **environment)]
    try:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "20")
        processes += [start("dask_worker", address, *options) for _ in range(n_workers)]
        yield address, processes[0], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def end(process):
    process.kill()
    process.wait()


@pytest.mark.slow
def test_workers_are_gone_for_good(parts, monkeypatch):
    with started(3) as (address, _, workers), pm.DaskExecutor(address) as dask:
        dask.client.wait_for_workers(3, timeout=300)
        for worker, prefs in zip(workers, (make_clicks(), parts[5]), strict=False):
            kill = Once(functools.partial(end, worker))
            assert_same(fit(prefs, "clusters", executor=dask, progress=kill), wanted("clusters"))
            assert kill.is_done
        assert dask.n_workers == 1
        monkeypatch.setattr(engine, "PATIENCE", 1.5)
        kill = Once(functools.partial(end, workers[2]))
        with pytest.raises(pm.engines.WorkersError, match="no worker left; start the workers"):
            fit(make_clicks(), "sampled", executor=dask, progress=kill)
        assert time.monotonic() - kill.time < QUICK


@pytest.mark.slow
def test_the_scheduler_is_gone(parts, monkeypatch, tmp_path, dask):
    """The fit ends with an error, and goes on without workers, or on others."""
    monkeypatch.setattr(checkpoint, "PAUSE", 0)
    kind, files = "mcmc", [tmp_path / "memory", tmp_path / "parts"]
    for file, prefs in zip(files, (make_clicks(), parts[2]), strict=True):
        with started(1) as (address, scheduler, _), pm.DaskExecutor(address) as gone:
            kill = Once(functools.partial(end, scheduler), at=0.9)
            with pytest.raises(
                pm.engines.WorkersError, match=r"scheduler .* gone; .* goes on where"
            ):
                fit(prefs, kind, executor=gone, progress=kill, checkpoint=file)
            assert time.monotonic() - kill.time < QUICK
            with pytest.raises(pm.engines.WorkersError, match="gone"):
                fit(prefs, kind, executor=gone)
            assert file.exists()
    sweeps = []
    note = lambda done, total: sweeps.append(done)  # noqa: E731
    found = fit(make_clicks(), kind, checkpoint=files[0], progress=note)
    assert_same(found, wanted(kind))
    assert np.array_equal(found.chain_memberships, wanted(kind).chain_memberships)
    assert sweeps[0] > 5  # it did not begin anew
    found = fit(parts[2], kind, executor=dask, checkpoint=files[1], progress=note)
    assert_same(found, wanted(kind))
    assert not any(file.exists() for file in files)


@pytest.mark.slow
def test_the_scheduler_is_frozen(monkeypatch, tmp_path):
    """It neither answers nor goes: the fit ends with an error, and goes on without it."""
    kind, file, seen = "mcmc", tmp_path / "file", []
    with started(1) as (address, scheduler, _):

        def stop():
            monkeypatch.setattr(engine, "SILENCE", 3.0)  # a busy scheduler may take longer before
            scheduler.send_signal(signal.SIGSTOP)

        freeze = Once(stop, at=0.9)
        words = r"scheduler .* not answered for 3 seconds; .* goes on where it was saved last"
        with (
            pytest.raises(pm.engines.WorkersError, match=words),
            pm.DaskExecutor(address) as dask,
        ):
            fit(make_clicks(), kind, executor=dask, progress=freeze, checkpoint=file)
        assert freeze.is_done
        assert time.monotonic() - freeze.time < QUICK
    note = lambda done, total: seen.append(done)  # noqa: E731
    assert_same(fit(make_clicks(), kind, checkpoint=file, progress=note), wanted(kind))
    assert seen[0] > 5  # it did not begin anew


@pytest.mark.slow
def test_a_scheduler_that_is_frozen_from_the_start(monkeypatch):
    monkeypatch.setattr(engine, "SILENCE", 2.0)
    with started(1) as (address, scheduler, _), distributed.Client(address) as given:
        given.wait_for_workers(1, timeout=300)
        scheduler.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(pm.engines.WorkersError, match="has not answered for 2 seconds"):
            pm.DaskExecutor(given)
        assert time.monotonic() - begin < QUICK
        scheduler.send_signal(signal.SIGCONT)


class StopHereError(Exception):
    pass


def test_a_fit_moves_to_a_cluster_and_back(dask, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "PAUSE", 0)
    file = tmp_path / "file"

    def stop():
        raise StopHereError

    for executor, at in ((None, 0.3), (dask, 0.6), (pm.Threads(1), 0.9)):
        how = {"executor": executor, "progress": Once(stop, at), "checkpoint": file}
        with pytest.raises(StopHereError):
            fit(make_clicks(), "mcmc", **how)
    assert_same(fit(make_clicks(), "mcmc", executor=dask, checkpoint=file), wanted("mcmc"))


@pytest.mark.slow
def test_the_scheduler_is_gone_while_a_task_runs():
    with started(1) as (address, scheduler, _), pm.DaskExecutor(address) as dask:
        timer = threading.Timer(0.5, end, (scheduler,))
        timer.start()
        begin = time.monotonic()
        with pytest.raises(pm.engines.WorkersError, match="the scheduler is gone"):
            list(dask.map(time.sleep, [60]))
        assert time.monotonic() - begin < QUICK


@pytest.mark.slow
def test_the_scheduler_comes_back():
    """It has forgotten the shards: the fit ends, and another one can begin."""
    with started(1) as (address, scheduler, workers), pm.DaskExecutor(address) as dask:
        new = []

        def restart():
            end(scheduler)
            while dask.client.status == "running":
                time.sleep(0.01)
            new.append(start_scheduler(address))
            while dask.client.status != "running":
                time.sleep(0.01)

        try:
            with pytest.raises(pm.engines.WorkersError, match="the scheduler is gone"):
                fit(make_clicks(), "sampled", executor=dask, progress=Once(restart))
            end(workers[0])
            workers.append(start("dask_worker", address, "--nthreads", "1", "--no-nanny"))
            dask.client.wait_for_workers(1, timeout=300)
            assert_same(fit(make_clicks(), "sampled", executor=dask), wanted("sampled"))
        finally:
            for process in (*new, *workers):
                end(process)


@pytest.mark.slow
def test_a_task_that_ends_its_worker():
    with (
        started(1, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as (address, *_),
        pm.DaskExecutor(address) as dask,
        pytest.raises(pm.engines.WorkersError, match="a task brought down several workers"),
    ):
        list(dask.map(os._exit, [1]))


# Parts that are broken


def break_part(parts, folder, how):
    """A copy of the parts, the third of which is not as it should be."""
    folder.mkdir()
    paths = []
    for path in parts.paths:
        with open(path, "rb") as file:
            content = file.read()
        paths.append(folder / os.path.basename(path))
        paths[-1].write_bytes(content)
    broken = paths[2]
    if how == "cut":
        broken.write_bytes(broken.read_bytes()[:-100])
    elif how == "text":
        broken.write_text("user,item\nann,i1\n")
    elif how == "missing":
        broken.unlink()
    else:
        table = pq.read_table(broken)
        items = pa.array(["strange", *table["item"].to_pylist()[1:]])
        pq.write_table(table.set_column(1, "item", items), broken)
    return pm.data.Parts(paths, items=parts.items), broken


BROKEN = [
    ("cut", "this Parquet file cannot be read"),
    ("text", "this Parquet file cannot be read"),
    ("missing", ""),
    ("item", "unknown item: 'strange'"),
]


@pytest.mark.parametrize(("how", "words"), BROKEN)
def test_a_broken_part_is_named(dask, parts, tmp_path, how, words):
    broken, path = break_part(parts[5], tmp_path / "clicks", how)
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        fit(broken, "sampled", executor=dask)
    assert str(path) in str(error.value)
    assert words in str(error.value)
    target = tmp_path / "answers"
    for executor in (None, dask):
        with pytest.raises((ValueError, FileNotFoundError)) as error:
            pm.recommendations.recommend_to(
                wanted("sampled"), target, 2, clicks=broken, executor=executor
            )
        assert str(path) in str(error.value)
        assert words in str(error.value)
    found = {file.name for file in target.iterdir()}
    assert found <= {os.path.basename(name) for name in parts[5].paths} - {path.name}
    assert len(found) >= 2  # those before it, at least
    for name in found:
        table = pq.read_table(target / name)
        clicks = pq.read_table(path.parent / name)
        assert set(table["user"].to_pylist()) == set(clicks["user"].to_pylist())


# Recommendations


@pytest.mark.parametrize("rows", [7, ROWS])
def test_workers_write_the_same_files(dask, parts, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(stream, "ROWS", rows)  # here; the workers have their own
    model, seen = wanted("clusters"), []
    for name, executor in (("here", None), ("there", dask)):
        counts = pm.recommendations.recommend_to(
            model,
            tmp_path / name,
            3,
            clicks=parts[5],
            executor=executor,
            progress=lambda done, total: seen.append((done, total)),
        )
        assert counts == 120 - 1  # one of them says nothing
    assert seen == 2 * [(done, 5) for done in range(1, 6)]
    files = [sorted(os.listdir(tmp_path / name)) for name in ("here", "there")]
    assert files[0] == files[1] == [os.path.basename(path) for path in parts[5].paths]
    for file in files[0]:
        here, there = tmp_path / "here" / file, tmp_path / "there" / file
        assert pq.read_table(here).equals(pq.read_table(there))
        is_cut = pq.ParquetFile(here).num_row_groups > 1
        assert is_cut == (rows < ROWS)
        assert is_cut or here.read_bytes() == there.read_bytes()


def test_parts_are_answered_side_by_side(dask, client, parts, tmp_path):
    """One task each: they do not all stick to the model."""
    with distributed.get_task_stream(client) as tasks:
        pm.recommendations.recommend_to(
            wanted("sampled"), tmp_path / "answers", clicks=parts[5], executor=dask
        )
        time.sleep(0.2)
    keys = {task["key"] for task in tasks.data if "_answer_part" in str(task["key"])}
    assert len(keys) == 5


# Refusals


def test_what_a_cluster_does_not_do(dask, parts):
    prefs = make_clicks()
    rankings = pm.simulate_rankings(10, 4, 3, rng=1).preferences
    with pytest.raises(TypeError, match="got rankings by footrule: leave executor out"):
        pm.fit(rankings, "pseudo", alpha=3, executor=dask)
    with pytest.raises(TypeError, match="recommend does not run on Dask workers"):
        pm.recommend(wanted("sampled"), executor=dask)
    with pytest.raises(TypeError, match="evaluate does not run on Dask workers"):
        pm.evaluate(prefs, method="pseudo", hide=1, executor=dask)
    with pytest.raises(ValueError, match="keep_latent does not work with Dask workers"):
        pm.fit(prefs, "pseudo", alpha=3, keep_latent=["u003"], executor=dask)
    with pytest.raises(TypeError, match="recommendations are for parts"):
        pm.recommendations.recommend_to(wanted("sampled"), "x.csv", executor=dask)
    for executor in (None, pm.Threads(1)):
        with pytest.raises(TypeError, match=r"parts are read by Dask workers.* pm\.read"):
            pm.fit(parts[2], "pseudo", alpha=3, executor=executor)


def test_parts_must_rise(dask, parts):
    paths = parts[5].paths
    with pytest.raises(ValueError, match=r"first user, 'u.*', does not come after 'u.*', the last"):
        pm.fit(pm.data.Parts([*paths[1:], paths[0]]), "pseudo", alpha=3, executor=dask)


def test_users_must_be_in_one_part(dask, parts, tmp_path):
    paths = list(parts[5].paths)
    table = pq.read_table(paths[1])
    last = pq.read_table(paths[0])["user"].to_pylist()[-1]
    rows = [(last, "i7"), *((row["user"], row["item"]) for row in table.to_pylist())]
    paths[1] = write_part(tmp_path / "part-00001.parquet", rows)
    for items in (None, parts[5].items):
        with pytest.raises(ValueError, match=f"its first user, '{last}', does not come after"):
            pm.fit(pm.data.Parts(paths, items=items), "pseudo", alpha=3, executor=dask)


def test_clients_that_are_none(client):
    with pytest.raises(ValueError, match=r"local workers are 'local:2' .* got 'local:x'"):
        pm.DaskExecutor("local:x")
    with pytest.raises(ValueError, match="got 'local:0'"):
        pm.DaskExecutor("local:0")
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client or an address"):
        pm.DaskExecutor(3)


@pytest.mark.slow
def test_a_local_cluster_is_made_and_ended(client, parts, tmp_path, capfd):
    """Beside another one, with whose ports it does not clash; errors are told once, not logged."""
    with pm.DaskExecutor("local:1") as dask:
        with pytest.raises(ValueError, match="cannot be read"):
            fit(break_part(parts[5], tmp_path / "clicks", "cut")[0], "sampled", executor=dask)
        assert "Traceback" not in capfd.readouterr().err
        assert_same(fit(make_clicks(), "sampled", executor=dask), wanted("sampled"))
        (pid,) = dask.client.run(os.getpid).values()
    assert dask.client.status == "closed"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(pm.engines.WorkersError, match="gone"):
        fit(make_clicks(), "sampled", executor=dask)


def test_a_client_that_was_given_stays_open(client):
    with pm.DaskExecutor(client) as dask:
        assert list(dask.map(abs, [-1, -2])) == [1, 2]
    assert client.status == "running"


def test_errors_of_tasks_come_as_they_are(dask):
    with pytest.raises(ZeroDivisionError):
        list(dask.map(functools.partial(divmod, 1), [1, 0]))


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 0.5)
    address, begin = f"tcp://127.0.0.1:{free_port()}", time.monotonic()
    with pytest.raises(pm.engines.WorkersError, match=f"no scheduler answers at '{address}'"):
        pm.DaskExecutor(address)
    assert time.monotonic() - begin < QUICK
    with pytest.raises(pm.engines.WorkersError, match="no scheduler answers at 'nonsense'"):
        pm.DaskExecutor("nonsense")


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(engine, "PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as nobody,
        distributed.Client(nobody) as lonely,
    ):
        begin = time.monotonic()
        with pytest.raises(
            pm.engines.WorkersError, match="no worker: start one with `dask worker`"
        ):
            pm.DaskExecutor(lonely)
        assert time.monotonic() - begin < QUICK
