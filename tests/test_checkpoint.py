"""Fits that are interrupted and go on: the same bits, and nothing from a file is trusted."""

import copy
import functools
import hashlib
import json
import os
import pickle
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows import checkpoint

ARRAYS = ("consensus", "alpha", "shares", "costs", "weights", "log_posterior", "leaders")
ARRAYS += ("latent", "chain_memberships")
SHORT = {"n_draws": 4, "warmup": 3, "thin": 1}
FITS = {
    "sampled": ("clicks", {"alpha": 4, "keep_latent": [3, 5], **SHORT}),
    "estimated": ("clicks", {"update": "expected", "n_chains": 2, **SHORT}),
    "balanced": ("partial", {"method": "balanced", **SHORT}),
    "mcmc": ("clicks", {"method": "mcmc", "n_chains": 2, **SHORT}),
    "full mcmc": ("full", {"method": "mcmc", "n_chains": 2, **SHORT}),
    "clusters": ("clicks", {"n_clusters": 2, "n_chains": 2, "refresh": 2, **SHORT}),
    "expected clusters": (
        "clicks",
        {"n_clusters": 2, "refresh": 2, "update": "expected", "keep_latent": [7], **SHORT},
    ),
    "ranked clusters": ("partial", {"n_clusters": 2, "refresh": 1, **SHORT}),
    "exact clusters": ("clicks", {"method": "mcmc", "n_clusters": 2, "n_chains": 1, **SHORT}),
    "many clusters": ("few", {"method": "mcmc", "n_clusters": 5, "n_chains": 1, **SHORT}),
}


@functools.cache
def data(kind):
    """A few users, some of them several people, some of whom nothing is known."""
    weights = np.array([1, 2, 0, 3] * 10)
    if kind == "clicks":
        prefs = pm.simulate_clicks(40, 6, [6, 6], 2, rng=1).preferences
        return pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes)
    if kind == "few":  # with clusters that have nobody now and then
        return pm.Preferences.from_clicks({0: [0], 1: [1], 2: [0, 1], 3: [2], 4: [0]})
    ranks = pm.simulate_rankings(40, 5, [6, 6], rng=1).preferences.rankings.copy()
    if kind == "partial":
        ranks[np.random.default_rng(1).random(ranks.shape) < 0.4] = 0
    return pm.Preferences.from_rankings(ranks, weights=weights)


def fit(kind, **options):
    name, given = FITS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        warnings.simplefilter("ignore", pm.AlphaWarning)
        return pm.fit(data(name), **({"rng": 3} | given | options))


@functools.cache
def wanted(kind):
    steps = []
    return fit(kind, progress=lambda done, total: steps.append(done)), steps[-1]


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name


class StopHereError(Exception):
    pass


def stop_at(step):
    def progress(done, total):
        if done == step:
            raise StopHereError

    return progress


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)
    return tmp_path / "fit.checkpoint"


def interrupt(kind, file, step, **options):
    with pytest.raises(StopHereError):
        fit(kind, checkpoint=file, progress=stop_at(step), **options)
    assert [found.name for found in file.parent.iterdir()] == [file.name]


# The same bits


@pytest.mark.parametrize("kind", FITS)
def test_interrupted_fits_go_on(kind, file):
    whole, n_steps = wanted(kind)
    sweeps = SHORT["n_draws"] + SHORT["warmup"]  # of the last chain
    for step in (n_steps, n_steps - 2, n_steps - sweeps + 2):
        interrupt(kind, file, step)
        seen = []
        found = fit(kind, checkpoint=file, progress=lambda done, total, s=seen: s.append(done))
        assert_same(found, whole)
        assert seen[0] == step  # it did not begin anew
        assert not file.exists()


@pytest.mark.parametrize("kind", ["mcmc", "clusters"])
def test_interrupted_at_every_step(kind, file):
    """Also between two chains, and while clusters are sought."""
    whole, n_steps = wanted(kind)
    for step in range(n_steps, 1, -11):
        with pytest.raises(StopHereError):
            fit(kind, checkpoint=file, progress=stop_at(step))
        assert_same(fit(kind, checkpoint=file), whole)


def test_interrupted_again_and_again(file):
    whole, n_steps = wanted("clusters")
    for step in range(n_steps - 5, n_steps + 1):
        interrupt("clusters", file, step)
    assert_same(fit("clusters", checkpoint=file, executor=pm.Threads(1)), whole)


def test_a_fit_that_is_not_interrupted(file):
    assert_same(fit("clusters", checkpoint=file), wanted("clusters")[0])
    assert not any(file.parent.iterdir())


def test_nothing_is_written_before_it_is_time(file, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    with pytest.raises(StopHereError):
        fit("sampled", checkpoint=file, progress=stop_at(7))
    assert not any(file.parent.iterdir())


def test_a_generator_as_seed(file):
    rng = np.random.default_rng(3)
    interrupt("sampled", file, 5, rng=copy.deepcopy(rng))
    assert_same(fit("sampled", checkpoint=file, rng=rng), wanted("sampled")[0])


def test_the_state_of_the_generator_counts(file, monkeypatch):
    """A checkpoint that forgets it gives other draws, so the comparisons can tell."""
    interrupt("sampled", file, 5)
    load = checkpoint.Checkpoint.load

    def forget(self, latent):
        saved = load(self, latent)
        saved["state"].rng = np.random.default_rng(3).spawn(1)[0]
        return saved

    monkeypatch.setattr(checkpoint.Checkpoint, "load", forget)
    with pytest.raises(AssertionError, match="consensus"):
        assert_same(fit("sampled", checkpoint=file), wanted("sampled")[0])


def test_a_file_that_cannot_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(FileNotFoundError, match="cannot write"):
            fit("sampled", checkpoint=path)


# Files of other fits


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 5}, r"alpha: it has 4\.0, this one 5\.0"),
        ({"n_draws": 5}, "n_draws: it has 4, this one 5"),
        ({"warmup": 4}, "warmup: it has 3, this one 4"),
        ({"sigma": 1.0}, r"sigma: it has 0\.0, this one 1\.0"),
        ({"rng": 4}, "with another seed"),
        ({"method": "mcmc"}, "method: it has 'pseudo', this one 'mcmc'"),
    ],
)
def test_another_fit_is_refused(file, options, words):
    interrupt("sampled", file, 5)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=rf"checkpoint of another fit \({words}\): delete it"):
        fit("sampled", checkpoint=file, **options)
    assert file.read_bytes() == before


def test_other_data_are_refused(file):
    prefs, (_, options) = data("clicks"), FITS["sampled"]
    interrupt("sampled", file, 5)
    codes, weights = prefs.codes.copy(), prefs.weights.copy()
    single = np.flatnonzero(prefs.n_clicks == 1)[0]
    codes[prefs.starts[single]] = (codes[prefs.starts[single]] + 1) % prefs.n_items
    weights[0] = 7
    others = [
        pm.Clicks(prefs.weights, prefs.users, prefs.items, prefs.starts, codes),
        pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes),
        prefs.rename(items=list("abcdef")),
        prefs.take(np.arange(39)),
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"another fit \(of other data\): delete"):
            pm.fit(other, rng=3, checkpoint=file, **options)


def test_another_version_is_refused(file, monkeypatch):
    interrupt("sampled", file, 5)
    monkeypatch.setattr(checkpoint, "__version__", "99")
    with pytest.raises(ValueError, match=r"another fit \(version: it has .*, this one '99'\)"):
        fit("sampled", checkpoint=file)


# Files that are damaged, or forged


def test_a_file_of_another_kind_is_kept(file):
    header = json.dumps({"format": checkpoint.FORMAT}).encode()
    for content in (b"", b"my diary", b"{}\n", b"[1]\n", b"3\n", b"\xff\x00\n", header + b"\nx"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is not a checkpoint: give another name"):
            fit("sampled", checkpoint=file)
        assert file.read_bytes() == content


def test_damaged_files_are_refused(file):
    interrupt("sampled", file, 5)
    content = file.read_bytes()
    start = content.index(b"\n") + 1
    for damaged in (
        content[:-1],
        content[: start + 10],
        content[:start],
        content + b"x",
        content[: start + 50] + bytes([content[start + 50] ^ 1]) + content[start + 51 :],
    ):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged: delete it to begin anew"):
            fit("sampled", checkpoint=file)
    file.write_bytes(content)
    assert_same(fit("sampled", checkpoint=file), wanted("sampled")[0])


class Command:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def forge(file, content):
    """Put other content into a checkpoint, with the right hash."""
    header = json.loads(file.read_bytes().partition(b"\n")[0])
    header["sha256"] = hashlib.sha256(content).hexdigest()
    file.write_bytes(json.dumps(header).encode() + b"\n" + content)


def test_forged_files_run_nothing(file, tmp_path):
    interrupt("sampled", file, 5)
    trap = tmp_path / "trap"
    commands = [
        pickle.dumps(Command(os.system, f"touch {trap}")),
        pickle.dumps(Command(eval, f"open({str(trap)!r}, 'w')")),
        pickle.dumps({"state": Command(os.mkdir, str(trap))}, protocol=5),
        # names with a dot reach into a class that is known, or into its module
        b"\x80\x04\x8c\x12pseudomallows.mcmc\x8c\x0eChain.__init__\x93.",
        b"\x80\x04\x8c\x16pseudomallows.clusters\x8c\x0dwarnings.warn\x93.",
        b"cposix\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR.",
    ]
    for content in commands:
        forge(file, content)
        with pytest.raises(ValueError, match=r"a checkpoint does not hold .*: it is damaged or"):
            fit("sampled", checkpoint=file)
        assert not trap.exists()
    pickle.loads(commands[2])  # it would have worked
    assert trap.exists()


def test_forged_files_that_make_no_sense(file):
    interrupt("sampled", file, 5)
    for content in (b"", b"no pickle", b"\x80\x05.", pickle.dumps([1])[:-2]):
        forge(file, content)
        with pytest.raises(ValueError, match="is damaged: delete it"):
            fit("sampled", checkpoint=file)


# Refusals


def test_what_cannot_be_saved(file):
    with pytest.raises(ValueError, match="needs a seed: give rng"):
        fit("sampled", checkpoint=file, rng=None)
    with pytest.raises(ValueError, match="'personal' has nothing to save"):
        pm.fit(data("clicks"), "personal", rng=1, checkpoint=file)
    with pytest.raises(ValueError, match="'metropolis' cannot be saved"):
        fit("mcmc", checkpoint=file, augmentation="metropolis")
    assert not any(file.parent.iterdir())
