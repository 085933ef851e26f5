"""A new installation: no kernel is compiled yet, and each command is a process of its own."""

import ast
import functools
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import pseudomallows as pm

KERNELS = sorted((Path(pm.__file__).parent / "kernels").rglob("*.py"))
CLICKS, FULL, PARTIAL = "clicks.csv", "full.csv", "partial.csv"
MODELS = {  # what later commands are asked about, fitted beforehand with another cache
    "pseudo.pm": (CLICKS, "--method", "pseudo"),
    "clusters.pm": (CLICKS, "--method", "pseudo", "--clusters", "2"),
    "mcmc.pm": (CLICKS, "--method", "mcmc"),
    "mixture.pm": (CLICKS, "--method", "mcmc", "--clusters", "2"),
    "personal.pm": (CLICKS, "--method", "personal"),
    "full.pm": (FULL, "--method", "mcmc"),
}
SHORT = ("--draws", "4", "--seed", "1", "--quiet")


def fits():
    """Every method of `fit` on every kind of data, with one cluster and two."""
    for data, n_clusters in itertools.product((CLICKS, FULL, PARTIAL), ("1", "2")):
        for method in ("pseudo", "balanced", "mcmc"):
            yield (data, "--method", method, "--clusters", n_clusters, *SHORT)
    yield (CLICKS, "--method", "personal", "--seed", "1", "--quiet")
    yield (CLICKS, "--clusters", "auto", *SHORT)


def commands():
    """Every command line, by the words that name it."""
    found = [("fit", *options, "--out", "made.pm") for options in fits()]
    found += [("simulate", what, "--users", "9", "--items", "5") for what in ("clicks", "rankings")]
    found += [("split", CLICKS, "--out", "parts"), ("info", CLICKS), ("completion", "bash")]
    found += [("demo", "--out", "demo", "--quiet")]
    found += [("consensus", "mixture.pm"), ("info", "mixture.pm")]
    for model in MODELS:
        found.append(("report", model))
        if model != "full.pm":
            found += [("recommend", model, "--k", "2"), ("serve", model)]
            found += [("recommend", model, "--k", "2", "--clicks", CLICKS)]
    for method in ("pseudo", "mcmc", "personal"):
        found.append(("evaluate", CLICKS, "--hide", "1", "--k", "2", "--method", method))
    return {" ".join(words): words for words in found}


COMMANDS = commands()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data, and a model that was made with another cache."""
    found = tmp_path_factory.mktemp("data")
    write_clicks(found / CLICKS)
    for name, top in ((FULL, None), (PARTIAL, 3)):
        prefs = pm.simulate_rankings(40, 6, [6, 6], top=top, rng=1).preferences
        lines = [",".join(["user", *"abcdef"])]
        lines += [",".join(map(str, [user, *row])) for user, row in enumerate(prefs.rankings)]
        (found / name).write_text("\n".join(lines).replace(",0", ","))
    make_model(found, "pseudo.pm")
    return found


def make_model(folder, name):
    data, *options = MODELS[name]
    short = SHORT[2:] if "personal" in options else SHORT
    run(folder, None, ("fit", data, *options, *short, "--out", name))


def write_clicks(path):
    prefs = pm.simulate_clicks(120, 6, [6, 6], 2.5, rng=1).preferences
    pairs = [(user, code) for user in range(120) for code in prefs.clicks_of(user)]
    path.write_text("\n".join(["user,item", *(f"u{user:03},i{code}" for user, code in pairs)]))


def run(folder, cache, words):
    """Run one command in a process of its own; `cache` is where its kernels are kept."""
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    command = [sys.executable, "-m", "pseudomallows", *words]
    if words[0] == "serve":
        serve_once(folder, command, environment)
        return
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr[-3000:]}"


def serve_once(folder, command, environment):
    """Start the service, ask it once for recommendations, end it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    store = folder / "clicks.sqlite"
    command += ["--port", str(port), "--store", str(store)]
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE)
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 300
        while not answers(f"{address}/healthz"):
            assert process.poll() is None, process.stderr.read().decode()[-3000:]
            assert time.monotonic() < until, "the service does not answer"
            time.sleep(0.2)
        body = json.dumps({"clicks": ["i1"], "k": 2}).encode()
        asked = urllib.request.Request(f"{address}/recommend", body)
        asked.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(asked, timeout=300) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        store.unlink(missing_ok=True)


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def cached(cache):
    """Names of the kernels that were compiled, or loaded to compile others: file.function."""
    return {path.name.rpartition("-")[0] for path in cache.rglob("*.nbi")}


# No generators


def compiled_functions(source):
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [
        function
        for function in functions
        if any("compiled" in ast.unparse(decorator) for decorator in function.decorator_list)
    ]


def generators_of(source):
    """Names of the compiled functions that yield."""
    return [
        function.name
        for function in compiled_functions(source)
        if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    ]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_kernel_is_a_generator(path):
    """Numba cannot compile a new caller of a generator that it loaded from its cache."""
    assert generators_of(path.read_text()) == []


def test_a_generator_is_found():
    source = "@compiled\ndef f(n):\n    for i in range(n):\n        yield i\n"
    assert generators_of(source) == ["f"]


# Commands after each other


@functools.cache
def calls():
    """calls[kernel]: the kernels that it calls itself; names as file.function."""
    homes = {
        function.name: f"{path.stem}.{function.name}"
        for path in KERNELS
        for function in compiled_functions(path.read_text())
    }
    return {
        homes[function.name]: {
            homes[node.id]
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id in homes and node.id != function.name
        }
        for path in KERNELS
        for function in compiled_functions(path.read_text())
    }


def test_the_names_of_kernels_are_unique():
    """So that a call can be told by the name alone."""
    names = [function.name for path in KERNELS for function in compiled_functions(path.read_text())]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_every_command_on_what_others_have_left_behind(folder, tmp_path):
    """On an empty cache, one after the other, and on another one backwards: kernels are compiled
    that call those which an earlier command has left behind."""
    for name in MODELS:
        make_model(folder, name)
    found = set()
    for number, order in enumerate((list(COMMANDS), list(COMMANDS)[::-1])):
        cache, before = tmp_path / str(number), set()
        shutil.rmtree(folder / "parts", ignore_errors=True)  # `split` writes into no folder twice
        for name in order:
            run(folder, cache, COMMANDS[name])
            after = cached(cache)
            found |= situations(before, after)
            before = after
        assert before >= {"groups.draw_users", "pseudo_draws.draw_consensuses"}
    assert found, "no command compiled a kernel that calls one of another command"


def situations(before, after):
    """What a command has to compile, and what it finds of it: (caller, callee)."""
    return {(caller, callee) for caller in after - before for callee in calls()[caller] & before}


def test_a_kernel_meets_only_what_was_there_before():
    caller, callee = next((one, min(those)) for one, those in calls().items() if those)
    assert situations({callee}, {caller, callee}) == {(caller, callee)}
    assert situations(set(), {caller, callee}) == situations({caller, callee}, {caller}) == set()
