"""Fits that are interrupted and go on: the same bits, and nothing from a file is trusted."""

import copy
import functools
import io
import json
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pseudomallows.inference.chains import clusters
from pseudomallows.inference.chains.matched_mixture import MatchedMixture

import pseudomallows as pm
from pseudomallows.files import archive as archive_module
from pseudomallows.files import saved
from pseudomallows.inference import checkpoint

ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
ARRAYS += ("latent", "chain_memberships")
SHORT = {"n_draws": 4, "warmup": 3, "thin": 1}
FITS = {
    "sampled": ("clicks", {"alpha": 4, "keep_latent": [3, 5], **SHORT}),
    "estimated": ("clicks", {"method": "pseudo", "n_chains": 2, **SHORT}),
    "balanced": ("partial", {"method": "balanced", **SHORT}),
    "mcmc": ("clicks", {"method": "mcmc", "n_chains": 2, **SHORT}),
    "matched": ("clicks", {"method": "matched", "n_chains": 2, "keep_latent": [3], **SHORT}),
    "latent mcmc": ("clicks", {"method": "mcmc", "augmentation": "exact", **SHORT}),
    "full mcmc": ("full", {"method": "mcmc", "n_chains": 2, **SHORT}),
    "clusters": ("clicks", {"n_clusters": 2, "n_chains": 2, **SHORT}),
    "ranked clusters": ("partial", {"n_clusters": 2, **SHORT}),
    "exact clusters": ("clicks", {"method": "mcmc", "n_clusters": 2, "n_chains": 1, **SHORT}),
    "chains of clusters": ("clicks", {"method": "mcmc", "n_clusters": 2, "n_chains": 3, **SHORT}),
    "matched clusters": ("clicks", {"method": "matched", "n_clusters": 2, **SHORT}),
    "latent clusters": (
        "clicks",
        {"method": "mcmc", "augmentation": "exact", "n_clusters": 2, "n_chains": 2, **SHORT},
    ),
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
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(data(name), **({"method": "pseudo", "rng": 3} | given | options))


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
    seen = []
    fit("sampled", checkpoint=file, progress=lambda *_: seen.append(file.exists()))
    assert seen == [False] * 7


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_that_breaks_off_saves_its_last_sweep(kind, file, monkeypatch):
    """Long before it is time to save, and although the next sweep has changed the state."""
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    whole, n_steps = wanted(kind)
    interrupt(kind, file, n_steps - 1)
    seen = []
    found = fit(kind, checkpoint=file, progress=lambda done, total: seen.append(done))
    assert_same(found, whole)
    assert seen == [n_steps - 1, n_steps]


@pytest.mark.parametrize(
    ("kind", "owner", "step"),
    [
        ("sampled", pm.PseudoMallows, "draw"),
        ("clusters", pm.PseudoMallows, "draw"),
        ("latent mcmc", clusters.Cluster, "note_origin"),
    ],
)
def test_a_fit_that_breaks_off_in_the_middle_of_a_sweep(kind, owner, step, file, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    plain, n_steps = getattr(owner, step), 0

    def break_off(self, *arguments):
        nonlocal n_steps
        n_steps += 1
        if n_steps == last:
            raise KeyboardInterrupt
        return plain(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, break_off)
        last = None
        fit(kind)
        last, n_steps = n_steps, 0
        with pytest.raises(KeyboardInterrupt):
            fit(kind, checkpoint=file)
    assert file.exists()
    assert_same(fit(kind, checkpoint=file), wanted(kind)[0])


@pytest.mark.parametrize("kind", ["mcmc", "exact clusters", "matched clusters"])
def test_a_matched_fit_that_breaks_off_in_the_middle_of_a_sweep(kind, file, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    move, n_moves = MatchedMixture._move, 0

    def break_off(self, *arguments):
        nonlocal n_moves
        n_moves += 1
        if n_moves == last:
            raise KeyboardInterrupt
        return move(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(MatchedMixture, "_move", break_off)
        last = None
        fit(kind)
        last, n_moves = n_moves, 0
        with pytest.raises(KeyboardInterrupt):
            fit(kind, checkpoint=file)
    assert file.exists()
    assert_same(fit(kind, checkpoint=file), wanted(kind)[0])


SCRIPT = """
import sys
import test_checkpoint
progress = lambda done, total: done == 300 and print("now", flush=True)
test_checkpoint.fit_longer(progress=progress, checkpoint=sys.argv[1])
"""


def fit_longer(**options):
    return fit("exact clusters", n_draws=50, thin=100, **options)


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_saves_the_state(tmp_path):
    """A real process, long before the first save by time; the next one goes on from there."""
    file, seen = tmp_path / "file", []
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=pathlib.Path(__file__).parent,
    ) as process:
        assert process.stdout.readline() == b"now\n"
        assert not file.exists()
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    found = fit_longer(checkpoint=file, progress=lambda done, total: seen.append(done))
    assert seen[0] >= 300  # it did not begin anew
    assert_same(found, fit_longer())
    assert not file.exists()


def test_a_generator_as_seed(file):
    rng = np.random.default_rng(3)
    interrupt("sampled", file, 5, rng=copy.deepcopy(rng))
    assert_same(fit("sampled", checkpoint=file, rng=rng), wanted("sampled")[0])


def test_the_state_of_the_generator_counts(file, monkeypatch):
    """A checkpoint that forgets it gives other draws, so the comparisons can tell."""
    interrupt("sampled", file, 5)
    forget = lambda self, name: self.part(name) and np.random.default_rng(3)  # noqa: E731
    monkeypatch.setattr(saved.Saved, "generator", forget)
    monkeypatch.setattr(saved.Saved, "check_all_used", lambda self: None)
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
    model = io.BytesIO()
    with zipfile.ZipFile(model, "w") as archive:
        archive.writestr("header.json", "{}")
    for content in (b"", b"my diary", b"{}\n", b"\xff\x00\n", b"PK\x03\x04", model.getvalue()):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is not a checkpoint: give another name"):
            fit("sampled", checkpoint=file)
        assert file.read_bytes() == content


def test_a_pickle_of_an_older_version_is_not_opened(file, tmp_path):
    header = {"format": "pseudomallows checkpoint 1", "call": {}, "sha256": ""}
    trap = Command(os.mkdir, str(tmp_path / "trap"))
    file.write_bytes(json.dumps(header).encode() + b"\n" + pickle.dumps(trap))
    with pytest.raises(ValueError, match="of an older version: delete it to start over"):
        fit("sampled", checkpoint=file)
    assert not (tmp_path / "trap").exists()


class Command:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def parts_of(file):
    """The header and the arrays, as bytes."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(content.pop(checkpoint.HEADER)), content


def forge(file, header, arrays):
    """Write a checkpoint whose checksums are right."""
    with zipfile.ZipFile(file, "w") as archive:
        text = header if isinstance(header, str) else json.dumps(header)
        archive.writestr(checkpoint.HEADER, text)
        for name, content in arrays.items():
            archive.writestr(name, content)


def as_bytes(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def claim(content, **what):
    """An array whose header says something else of it."""
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    shape, order, dtype = np.lib.format.read_array_header_1_0(stream)
    said = {"descr": dtype.str, "fortran_order": order, "shape": shape} | what
    claimed = io.BytesIO()
    np.lib.format.write_array_header_1_0(claimed, said)
    return claimed.getvalue() + stream.read()


@functools.cache
def saved_parts(kind):
    """A checkpoint of a fit near its end."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "file"
        with pytest.raises(StopHereError):
            fit(kind, checkpoint=file, progress=stop_at(wanted(kind)[1]))
        return file.read_bytes(), *parts_of(file)


FORGED_VALUES = [None, -1, 0, 2**70, 1.5, -1.0, 1e300, math.nan, math.inf, "x", [], {}, True]
FORGED_ARRAYS = {
    "objects": lambda array: as_bytes(np.array([{}] * 3, dtype=object), allow_pickle=True),
    "a pickle": lambda array: pickle.dumps(array),
    "nothing": lambda array: b"",
    "text": lambda array: as_bytes(np.full(array.shape, "x")),
    "other numbers": lambda array: as_bytes(array.astype(np.complex128)),
    "narrow numbers": lambda array: as_bytes(array.astype(np.int8)),
    "swapped bytes": lambda array: as_bytes(array.astype(array.dtype.newbyteorder())),
    "one axis more": lambda array: as_bytes(array[None]),
    "one number more": lambda array: as_bytes(np.append(array.ravel(), array.ravel()[:1])),
    "a huge shape": lambda array: claim(as_bytes(array), shape=(10**12, 10**3)),
    "a negative shape": lambda array: claim(as_bytes(array), shape=(-1, -array.size)),
    "objects in the header": lambda array: claim(as_bytes(array), descr="|O"),
    "fields": lambda array: claim(as_bytes(array), descr=[("a", "<i4"), ("b", "|O")]),
    "cut": lambda array: as_bytes(array)[:-1],
    "huge values": lambda array: as_bytes(np.full_like(array, 2**31 - 1)),
    "negative values": lambda array: as_bytes(np.full_like(array, -1)),
    "no numbers": lambda array: as_bytes((array * np.nan).astype(array.dtype)),
}


def places_of(values, path=()):
    """Every place in the header's state."""
    yield path
    inner = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from places_of(value, (*path, key))
        else:
            yield (*path, key)


def replaced(values, path, value):
    """The values with another one at this place."""
    if not path:
        return value
    changed = copy.copy(values)
    changed[path[0]] = replaced(values[path[0]], path[1:], value)
    return changed


def assert_refused_or_harmless(kind, file):
    """Never another error, nor the end of the process."""
    try:
        found = fit(kind, checkpoint=file)
    except ValueError as error:
        assert str(file) in str(error)  # noqa: PT017
        assert "to start over" in str(error) or "checkpoint" in str(error)  # noqa: PT017
    else:
        assert found.consensus.shape == wanted(kind)[0].consensus.shape


FORGED_KINDS = ["sampled", "mcmc", "clusters"]
fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@pytest.mark.parametrize("kind", FORGED_KINDS)
@fuzz
@given(data=st.data())
def test_a_flipped_bit_never_gives_other_draws(kind, file, data):
    content = bytearray(saved_parts(kind)[0])
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(content)
    try:
        found = fit(kind, checkpoint=file)
    except ValueError as error:
        assert str(file) in str(error)  # noqa: PT017
    else:
        assert_same(found, wanted(kind)[0])


@pytest.mark.parametrize("kind", FORGED_KINDS)
def test_a_file_that_is_cut_is_refused(kind, file):
    content = saved_parts(kind)[0]
    for length in range(60, len(content), len(content) // 20):
        file.write_bytes(content[:length])
        with pytest.raises(
            ValueError, match=r"is damaged or cut short: .*: delete it to start over"
        ):
            fit(kind, checkpoint=file)


@pytest.mark.parametrize("kind", FORGED_KINDS)
@fuzz
@given(data=st.data())
def test_forged_numbers(kind, file, data):
    _, header, arrays = saved_parts(kind)
    path = data.draw(st.sampled_from(list(places_of(header["state"]))))
    value = data.draw(st.sampled_from(FORGED_VALUES))
    forge(file, header | {"state": replaced(header["state"], path, value)}, arrays)
    assert_refused_or_harmless(kind, file)


@pytest.mark.parametrize("kind", FORGED_KINDS)
@fuzz
@given(data=st.data())
def test_forged_arrays(kind, file, data):
    _, header, arrays = saved_parts(kind)
    name = data.draw(st.sampled_from(sorted(arrays)))
    how = data.draw(st.sampled_from(sorted(FORGED_ARRAYS)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forged = FORGED_ARRAYS[how](np.load(io.BytesIO(arrays[name])))
    forge(file, header, arrays | {name: forged})
    assert_refused_or_harmless(kind, file)


def damage(message, change, kind="latent clusters"):
    return pytest.param(kind, change, message, id=message)


def with_array(name, change):
    def forged(header, arrays):
        array = np.load(io.BytesIO(arrays[f"{name}.npy"]))
        change(array)
        arrays[f"{name}.npy"] = as_bytes(array)

    return forged


def fill(index, value):
    return lambda array: array.__setitem__(index, value)


def swap_users(array):
    array[[0, 1]] = array[[1, 0]]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        damage("'chain' is missing", lambda h, a: h["state"].pop("chain")),
        damage("'chain' must be a whole number", lambda h, a: h["state"].update(chain=2)),
        damage("'sweep' must be that of the state", lambda h, a: h["state"].update(sweep=2)),
        damage("'more' does not belong here", lambda h, a: h["state"].update(more=1)),
        damage("'other' does not belong here", lambda h, a: a.update({"other.npy": as_bytes(1)})),
        damage("'state/counts' is missing", lambda h, a: a.pop("state/counts.npy")),
        damage("its header is of another kind", lambda h, a: h.pop("state")),
        damage("'filled/consensus' must be made", with_array("filled/consensus", fill(0, 9))),
        damage(
            "'state/clusters/0/consensus'", with_array("state/clusters/0/consensus", fill(0, 9))
        ),
        damage("'filled/alphas' must be numbers", with_array("filled/alphas", fill(0, np.nan))),
        damage("'state/shares' must be shares", with_array("state/shares", fill(0, 0.9))),
        damage("'filled/shares' must be shares", with_array("filled/shares", fill((0, 0), 0.9))),
        damage("'filled/memberships' must be", with_array("filled/memberships", fill(0, -1))),
        damage("as many users as the data", with_array("state/counts", fill(0, [1, 1]))),
        damage("'state/counts' must be numbers", with_array("state/counts", fill(0, [-1, 2]))),
        damage("'state/total' must be shares", with_array("state/total", fill(0, np.inf))),
        damage("'filled/evidence' must be", with_array("filled/evidence", fill(0, np.nan))),
        damage(
            "'state/consensus' must be made",
            with_array("state/consensus", fill((0, 0), 9)),
            "clusters",
        ),
        damage(
            "'state/alpha' must be numbers",
            with_array("state/alpha", fill(0, np.nan)),
            "clusters",
        ),
        damage("'state/seeds' must be", with_array("state/seeds", fill(0, -1)), "clusters"),
        damage(
            "'state/memberships' must be shares",
            with_array("state/memberships", fill(0, 0.9)),
            "clusters",
        ),
        damage(
            "must have as many users",
            with_array("state/counts", fill(0, [1, 1])),
            "clusters",
        ),
        damage(
            "'state/rng' must be of PCG64",
            lambda h, a: h["state"]["state"]["rng"].update(bit_generator="MT19937"),
        ),
        damage(
            "'state/rng' has an even increment",
            lambda h, a: h["state"]["state"]["rng"]["state"].update(inc=2),
        ),
        damage(
            "'state/clusters/0/alpha' must be a finite number in 1e-12",
            lambda h, a: h["state"]["state"]["clusters"][0].update(alpha=0.0),
            "mcmc",
        ),
        damage(
            "'state/clusters/0/log_step' must be a finite",
            lambda h, a: h["state"]["state"]["clusters"][0].update(log_step=1e6),
            "mcmc",
        ),
        damage("'filled/latents' must be", with_array("filled/latents", fill(0, 7)), "sampled"),
        damage("'state/labels' is", lambda h, a: a.pop("state/labels.npy"), "exact clusters"),
        damage(
            "'state/labels' must be numbers in 0..1",
            with_array("state/labels", fill(0, 2)),
            "exact clusters",
        ),
        damage(
            "'state/rounds_each' must be a finite number in 1..5",
            lambda h, a: h["state"]["state"].update(rounds_each=1e9),
            "exact clusters",
        ),
    ],
)
def test_what_is_wrong_is_named(kind, change, message, file):
    _, header, arrays = copy.deepcopy(saved_parts(kind))
    change(header, arrays)
    forge(file, header, arrays)
    with pytest.raises(ValueError, match=message) as caught:
        fit(kind, checkpoint=file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(": delete it to start over")


def test_forged_headers(file):
    _, _, arrays = saved_parts("sampled")
    for text in ("", "[" * 100_000, "[1]", "9" * 5000, "{}", '{"format": 1}'):
        forge(file, text, arrays)
        with pytest.raises(ValueError, match=r"damaged.*: delete it to start over"):
            fit("sampled", checkpoint=file)


def test_a_part_that_unpacks_to_more_than_there_is(file):
    """Zeros that are packed a thousand times."""
    _, header, arrays = saved_parts("sampled")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(checkpoint.HEADER, json.dumps(header), zipfile.ZIP_STORED)
        for name, content in arrays.items():
            archive.writestr(name, content)
        archive.writestr("zeros.npy", as_bytes(np.zeros(10**7, np.uint8)))
    with pytest.raises(ValueError, match="'zeros' does not belong here"):
        fit("sampled", checkpoint=file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive_module, "available_memory", lambda: 10**6)
        with pytest.raises(
            ValueError, match="does not fit into half of the memory: it needs 10 MB"
        ):
            fit("sampled", checkpoint=file)


# Refusals


def test_what_cannot_be_saved(file):
    with pytest.raises(ValueError, match="needs a seed: give rng"):
        fit("sampled", checkpoint=file, rng=None)
    with pytest.raises(ValueError, match="'personal' has nothing to save"):
        pm.fit(data("clicks"), "personal", rng=1, checkpoint=file)
    with pytest.raises(ValueError, match=r"needs a generator of PCG64, .* got MT19937"):
        fit("sampled", checkpoint=file, rng=np.random.Generator(np.random.MT19937(1)))
    assert not any(file.parent.iterdir())
