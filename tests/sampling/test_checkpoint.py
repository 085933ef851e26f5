"""Fits that are interrupted and go on: the same bits, and no harm from a file."""

import copy
import functools
import io
import itertools
import json
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

import pseudomallows as pm
from pseudomallows.data import archive as archive_module
from pseudomallows.sampling import checkpoint, start

SHORT_STARTS = {"LEAST_RUNS": 4, "MOST_RUNS": 4, "RUN_SWEEPS": 3, "LAST_SWEEPS": 3}
ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
ARRAYS += ("latent", "chain_memberships", "errors")
SHORT = {"n_draws": 4, "warmup": 3, "thin": 1, "n_chains": 2, "method": "mcmc"}
FITS = {
    "full": ("full", {}),
    "full by ulam": ("full", {"distance": "ulam"}),
    "gaps": ("gaps", {"keep_latent": [3]}),
    "buckets": ("tops", {"distance": "kendall"}),
    "latent": ("gaps", {"distance": "cayley", "keep_latent": [3]}),
    "pairs": ("pairs", {"errors": "bernoulli"}),
    "votes": ("votes", {}),
    "clicks": ("clicks", {"keep_latent": [3]}),
    "clicks by kendall": ("clicks", {"distance": "kendall"}),
    "matched": ("clicks", {"method": "matched"}),
    "given": ("clicks", {"alpha": 4.0}),
    "clusters": ("full", {"n_clusters": 2}),
    "clusters of ulam": ("full", {"n_clusters": 2, "distance": "ulam"}),
    "clusters of gaps": ("gaps", {"n_clusters": 2}),
    "latent clusters": ("gaps", {"n_clusters": 2, "distance": "cayley"}),
    "clusters of pairs": ("pairs", {"n_clusters": 2, "errors": "bernoulli"}),
    "clusters of clicks": ("clicks", {"n_clusters": 2}),
    "clusters by kendall": ("clicks", {"n_clusters": 2, "distance": "kendall"}),
    "matched clusters": ("clicks", {"n_clusters": 2, "method": "matched"}),
    "many clusters": ("few", {"n_clusters": 5}),
}


@pytest.fixture(autouse=True, scope="module")
def _short_starts():
    """Few and short runs to find clusters from: here it does not matter how good they are."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT_STARTS.items():
            patch.setattr(start, name, value)
        yield


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
    if kind == "votes":
        return pm.Preferences.from_pairs([(r.index(1), r.index(3)) for r in ranks.tolist()])
    if kind == "pairs":
        said = [[(r.index(1), r.index(3)), (r.index(2), r.index(4))] for r in ranks.tolist()]
        return pm.Preferences.from_pairs(dict(enumerate(said)))
    if kind == "tops":
        ranks[ranks > 3] = 0
    if kind == "gaps":
        ranks[np.random.default_rng(1).random(ranks.shape) < 0.4] = 0
    return pm.Preferences.from_rankings(ranks, weights=weights)


def fit(name, **options):
    kind, given = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pm.fit(data(kind), **{"rng": 3} | SHORT | given | options)


@functools.cache
def wanted(name):
    steps = []
    return fit(name, progress=lambda done, total: steps.append(done)), steps[-1]


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name
    assert found.settings.get("starts") == other.settings.get("starts")
    assert found.settings.get("matched") == other.settings.get("matched")


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


def interrupt(name, file, step, **options):
    with pytest.raises(StopHereError):
        fit(name, checkpoint=file, progress=stop_at(step), **options)
    assert [found.name for found in file.parent.iterdir()] == [file.name]


# The same bits


@pytest.mark.parametrize("name", FITS)
def test_interrupted_fits_go_on(name, file):
    """At the end of the last chain, and in its middle."""
    whole, n_steps = wanted(name)
    for step in (n_steps, n_steps - 2, n_steps - 6):
        interrupt(name, file, step)
        seen = []
        found = fit(name, checkpoint=file, progress=lambda done, total, s=seen: s.append(done))
        assert_same(found, whole)
        assert len(seen) <= n_steps  # or it had begun anew
        assert not file.exists()


@pytest.mark.parametrize("name", ["clicks", "clusters"])
def test_a_fit_does_not_begin_anew(name, file):
    _, n_steps = wanted(name)
    interrupt(name, file, n_steps - 1)
    seen = []
    fit(name, checkpoint=file, progress=lambda done, total: seen.append(done))
    sweeps = SHORT["n_chains"] * (SHORT["n_draws"] + SHORT["warmup"])
    assert [step for step in seen if step > n_steps - sweeps] == [n_steps - 1, n_steps]


def test_interrupted_again_and_again(file):
    whole, n_steps = wanted("clusters of gaps")
    for step in range(n_steps - 11, n_steps + 1, 2):
        interrupt("clusters of gaps", file, step)
    assert_same(fit("clusters of gaps", checkpoint=file, executor=pm.Threads(1)), whole)


def test_a_fit_that_is_not_interrupted(file):
    assert_same(fit("clusters", checkpoint=file), wanted("clusters")[0])
    assert not any(file.parent.iterdir())


def test_nothing_is_written_before_it_is_time(file, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    seen = []
    fit("full", checkpoint=file, progress=lambda *_: seen.append(file.exists()))
    assert seen == [False] * 14


@pytest.mark.parametrize("name", ["gaps", "latent clusters", "clusters of clicks"])
def test_a_fit_that_breaks_off_saves_its_last_sweep(name, file, monkeypatch):
    """Long before it is time to save."""
    monkeypatch.setattr(checkpoint, "PAUSE", 1000)
    whole, n_steps = wanted(name)
    interrupt(name, file, n_steps - 1)
    assert_same(fit(name, checkpoint=file), whole)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_process_that_is_killed_goes_on(tmp_path):
    """By the operating system, with no time to say goodbye."""
    script = (
        "import sys, numpy as np, pseudomallows as pm\n"
        "from pseudomallows.sampling import checkpoint\n"
        "checkpoint.PAUSE = 0\n"
        "prefs = pm.simulate_rankings(100, 8, 4, rng=1).preferences\n"
        "step = lambda done, total: print(done, flush=True)\n"
        "found = pm.fit(prefs, 'mcmc', n_draws=3000, warmup=10, rng=1, checkpoint=sys.argv[1],"
        " progress=step)\n"
        "np.save(sys.argv[2], found.consensus)\n"
    )
    file, out = tmp_path / "x.checkpoint", tmp_path / "out.npy"
    command = [sys.executable, "-c", script, str(file), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) > 500 and file.exists():
                break
        process.kill()
    assert file.exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    prefs = pm.simulate_rankings(100, 8, 4, rng=1).preferences
    whole = pm.fit(prefs, "mcmc", n_draws=3000, warmup=10, rng=1)
    assert np.array_equal(np.load(out), whole.consensus)


# Another fit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 5}, r"alpha: it has None, this one 5\.0"),
        ({"n_draws": 5}, "n_draws: it has 4, this one 5"),
        ({"warmup": 4}, "warmup: it has 3, this one 4"),
        ({"n_moves": 7}, "n_moves: it has None, this one 7"),
        ({"rng": 4}, "with another seed"),
        ({"method": "matched"}, "method: it has 'mcmc', this one 'matched'"),
    ],
)
def test_another_fit_is_refused(file, options, words):
    interrupt("clicks", file, 5)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=rf"checkpoint of another fit \({words}\): delete it"):
        fit("clicks", checkpoint=file, **options)
    assert file.read_bytes() == before


def test_other_data_are_refused(file):
    prefs = data("clicks")
    interrupt("clicks", file, 5)
    weights = prefs.weights.copy()
    weights[0] = 7
    others = [
        pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes),
        prefs.rename(items=list("abcdef")),
        prefs.take(np.arange(39)),
    ]
    for other in others:
        with pytest.raises(ValueError, match=r"another fit \(of other data\): delete"):
            pm.fit(other, rng=3, keep_latent=[3], checkpoint=file, **SHORT)


def test_another_version_is_refused(file, monkeypatch):
    interrupt("clicks", file, 5)
    monkeypatch.setattr(checkpoint, "__version__", "99")
    with pytest.raises(ValueError, match=r"another fit \(version: it has .*, this one '99'\)"):
        fit("clicks", checkpoint=file)


# What cannot be saved


def test_what_cannot_be_saved(file):
    with pytest.raises(ValueError, match="needs a seed: give rng"):
        fit("clicks", checkpoint=file, rng=None)
    for method in ("personal", "pseudo", "balanced"):
        with pytest.raises(ValueError, match=f"{method}' has nothing to save, since it is quick"):
            pm.fit(data("clicks"), method, rng=1, checkpoint=file)
    with pytest.raises(ValueError, match=r"needs a generator of PCG64, .* got MT19937"):
        fit("clicks", checkpoint=file, rng=np.random.Generator(np.random.MT19937(1)))
    with pytest.raises(ValueError, match="does not keep the replicas of temperatures"):
        fit("full", checkpoint=file, temperatures=3)
    assert not any(file.parent.iterdir())


# Files that are damaged, or forged


def test_a_file_of_another_kind_is_kept(file):
    model = io.BytesIO()
    with zipfile.ZipFile(model, "w") as archive:
        archive.writestr("header.json", "{}")
    for content in (b"", b"my diary", b"{}\n", b"\xff\x00\n", b"PK\x03\x04", model.getvalue()):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="is not a checkpoint: give another name"):
            fit("clicks", checkpoint=file)
        assert file.read_bytes() == content


class Command:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def test_a_pickle_of_an_older_version_is_not_opened(file, tmp_path):
    header = {"format": "pseudomallows checkpoint 1", "call": {}, "sha256": ""}
    trap = Command(os.mkdir, str(tmp_path / "trap"))
    file.write_bytes(json.dumps(header).encode() + b"\n" + pickle.dumps(trap))
    with pytest.raises(ValueError, match="is not a checkpoint: give another name"):
        fit("clicks", checkpoint=file)
    assert not (tmp_path / "trap").exists()


@functools.cache
def saved_parts(name):
    """A checkpoint of a fit near its end: bytes, header, arrays."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "file"
        with pytest.raises(StopHereError):
            fit(name, checkpoint=file, progress=stop_at(wanted(name)[1] - 1))
        with zipfile.ZipFile(file) as archive:
            content = {each: archive.read(each) for each in archive.namelist()}
        return file.read_bytes(), json.loads(content.pop(checkpoint.HEADER)), content


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


def test_a_flipped_bit_never_gives_other_draws(file):
    name, rng = "clusters of gaps", np.random.default_rng(1)
    for _ in range(60):
        content = bytearray(saved_parts(name)[0])
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        file.write_bytes(content)
        try:
            found = fit(name, checkpoint=file)
        except ValueError as error:
            assert str(file) in str(error)  # noqa: PT017
        else:
            assert_same(found, wanted(name)[0])


@pytest.mark.parametrize("name", ["clicks", "latent clusters"])
def test_a_file_that_is_cut_is_refused(name, file):
    content = saved_parts(name)[0]
    for length in range(60, len(content), len(content) // 10):
        file.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"damaged or cut short: .*: delete it to start over"):
            fit(name, checkpoint=file)


FORGED = {
    "objects": lambda array: as_bytes(np.array([{}] * 3, dtype=object), allow_pickle=True),
    "a pickle": lambda array: pickle.dumps(array),
    "nothing": lambda array: b"",
    "text": lambda array: as_bytes(np.full(array.shape, "x")),
    "other numbers": lambda array: as_bytes(array.astype(np.complex128)),
    "one axis more": lambda array: as_bytes(array[None]),
    "cut": lambda array: as_bytes(array)[:-1],
}
PLACES = ("consensus", "latent", "labels")  # where kernels look
FORGED_PLACES = {
    "huge values": lambda array: as_bytes(np.full_like(array, 2**31 - 1)),
    "negative values": lambda array: as_bytes(np.full_like(array, -1)),
    "equal ranks": lambda array: as_bytes(np.ones_like(array)),
}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *(("clusters of gaps", how) for how in FORGED),
        *itertools.product(("clusters of gaps", "latent clusters", "pairs"), FORGED_PLACES),
    ],
)
def test_forged_arrays_are_refused_or_do_no_harm(name, how, file):
    """Never another error, nor the end of the process."""
    _, header, arrays = saved_parts(name)
    for each, content in arrays.items():
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.load(io.BytesIO(content))
            is_place = each.removesuffix(".npy").endswith(PLACES)
            if not array.size or (how in FORGED_PLACES and not is_place):
                continue
            forged = (FORGED | FORGED_PLACES)[how](array)
        forge(file, header, arrays | {each: forged})
        try:
            found = fit(name, checkpoint=file)
        except ValueError as error:
            assert str(file) in str(error), each  # noqa: PT017
            file.unlink()
        else:
            assert found.consensus.shape == wanted(name)[0].consensus.shape


def damage(message, change):
    return pytest.param(change, message, id=message)


def with_array(name, index, value):
    def forged(header, arrays):
        array = np.load(io.BytesIO(arrays[f"{name}.npy"]))
        array[index] = value
        arrays[f"{name}.npy"] = as_bytes(array)

    return forged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        damage("it must hold chain, sweep, rng", lambda h, a: h["state"].pop("chain")),
        damage("it must hold chain, sweep, rng", lambda h, a: h["state"].update(more=1)),
        damage("it must hold filled/", lambda h, a: a.update({"other.npy": as_bytes(1)})),
        damage("it must hold filled/", lambda h, a: a.pop("state/labels.npy")),
        damage("its header is of another kind", lambda h, a: h.pop("state")),
        damage("'filled/consensus' must be made", with_array("filled/consensus", 0, 9)),
        damage("'state/consensus' must be made", with_array("state/consensus", 0, 9)),
        damage("labels must be in 0..1", with_array("state/labels", 0, 2)),
        damage("'state/latent' must be made", with_array("state/latent", 0, 9)),
    ],
)
def test_what_is_wrong_is_named(change, message, file):
    _, header, arrays = copy.deepcopy(saved_parts("latent clusters"))
    change(header, arrays)
    forge(file, header, arrays)
    with pytest.raises(ValueError, match=message) as caught:
        fit("latent clusters", checkpoint=file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(": delete it to start over")


def test_forged_headers(file):
    _, _, arrays = saved_parts("clicks")
    for text in ("", "[" * 100_000, "[1]", "9" * 5000, "{}", '{"format": 1}'):
        forge(file, text, arrays)
        with pytest.raises(ValueError, match=r"damaged.*: delete it to start over"):
            fit("clicks", checkpoint=file)


def test_a_part_that_unpacks_to_more_than_there_is(file, monkeypatch):
    """Zeros that are packed a thousand times."""
    _, header, arrays = saved_parts("clicks")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(checkpoint.HEADER, json.dumps(header), zipfile.ZIP_STORED)
        for name, content in arrays.items():
            archive.writestr(name, content)
        archive.writestr("zeros.npy", as_bytes(np.zeros(10**7, np.uint8)))
    monkeypatch.setattr(archive_module, "available_memory", lambda: 10**6)
    with pytest.raises(ValueError, match="does not fit into half of the memory: it needs 10 MB"):
        fit("clicks", checkpoint=file)
