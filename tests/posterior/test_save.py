import dataclasses
import errno
import functools
import io
import json
import math
import os
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.data.atomic import write_whole
from pseudomallows.posterior.names import METHODS
from pseudomallows.posterior.save import NAMED, POSTERIOR
from pseudomallows.sampling import options
from pseudomallows.web.models.versions import Versions


@pytest.fixture(scope="module")
def posterior():
    prefs = pm.simulate_rankings(30, 5, 2, rng=1).preferences.rename(items=list("abcdé"))
    return pm.fit(prefs, "balanced", n_draws=200, rng=1)


@pytest.fixture
def path(posterior, tmp_path):
    posterior.save(tmp_path / "a posterior.pm")
    return tmp_path / "a posterior.pm"


def test_a_saved_posterior_comes_back_whole(posterior, path):
    again = pm.load(path)
    for name in POSTERIOR:
        assert (getattr(again, name) == getattr(posterior, name)).all() or name == "log_posterior"
        assert getattr(again, name).dtype == getattr(posterior, name).dtype
    assert np.isnan(again.log_posterior).all()
    assert again.items.tolist() == list("abcdé")
    assert (again.n_users, again.n_items) == (30, 5)
    assert again.settings == posterior.settings
    assert again.point_consensus("map").tolist() == posterior.point_consensus("map").tolist()
    assert os.listdir(path.parent) == ["a posterior.pm"]


def every_kind():
    """Data of 30 users on 5 items, of each kind."""
    rng = np.random.default_rng(1)
    names = {"items": list("abcdé")}
    ranked = pm.Preferences.from_rankings(np.argsort(rng.random((30, 5))) + 1, **names)
    clicked = pm.Preferences.from_clicks(rng.random((30, 5)) < 0.5, **names)
    pairs = [(user, *rng.choice(list("abcdé"), 2, replace=False)) for user in range(30)]
    compared = pm.Preferences.from_pairs(pairs, **names)
    parts = [part.take(range(10)) for part in (compared, ranked, clicked)]
    return {each.kind: each for each in (ranked, clicked, compared, pm.Preferences.concat(parts))}


@pytest.mark.parametrize("kind", pm.data.KINDS)
def test_data_of_every_kind_come_back(posterior, tmp_path, kind):
    data = every_kind()[kind]
    dataclasses.replace(posterior, data=data, users=data.users).save(tmp_path / "x")
    again = pm.load(tmp_path / "x").data
    assert type(again) is type(data)
    assert again.digest() == data.digest()
    assert again.users.tolist() == data.users.tolist()


def test_data_that_are_not_whole_are_refused(posterior, tmp_path, monkeypatch):
    data = every_kind()["mixed"]
    whole = data.to_arrays()
    for name in whole:
        rest = {other: array for other, array in whole.items() if other != name}
        monkeypatch.setattr(type(data), "to_arrays", lambda self, rest=rest: rest)
        dataclasses.replace(posterior, data=data, users=data.users).save(tmp_path / "x")
        with pytest.raises(ValueError, match="is damaged: it"):
            pm.load(tmp_path / "x")


def test_numpy_opens_the_file_without_pickle(posterior, path):
    with np.load(path, allow_pickle=False) as archive:
        assert (archive["consensus"] == posterior.consensus).all()


def test_numbers_as_names_come_back_as_numbers(tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [1, 3, 2]])
    pm.fit(prefs, "pseudo", alpha=1, rng=1).save(tmp_path / "x")
    assert pm.load(tmp_path / "x").items.tolist() == [0, 1, 2]


def test_names_that_cannot_be_written_are_refused_before_anything_is_written(posterior, tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2]], items=[("a", 1), ("b", 2)])
    with pytest.raises(TypeError, match=r"must be text or numbers to be saved, got \('a', 1\)"):
        pm.fit(prefs, "pseudo", alpha=1, rng=1).save(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_a_file_has_the_usual_permissions(path):
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("length", [0, 1, 100, 0.5, 0.99])
def test_a_file_cut_short_is_refused(path, length):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(length * len(whole)) if isinstance(length, float) else length])
    words = "is damaged or cut short" if length > 1 or length in (0.5, 0.99) else "is not a saved"
    with pytest.raises(ValueError, match=words):
        pm.load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_a_damaged_byte_never_gives_another_posterior(posterior, path, data):
    posterior.save(path)  # as it was before any damage
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    try:
        found = pm.load(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        assert (found.consensus == posterior.consensus).all()
        assert (found.alpha == posterior.alpha).all()
        assert (found.weights == posterior.weights).all()


def rewrite(path, change):
    """Write the file again with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    change(header, members)
    if "header.json" in members:
        members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def other_array(header, members):
    stream = io.BytesIO()
    np.save(stream, np.ones((2, 2)))
    members["alpha.npy"] = stream.getvalue()


def pickled_array(header, members):
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    members["alpha.npy"] = stream.getvalue()


def wrong_ranks(header, members):
    array = np.load(io.BytesIO(members["consensus.npy"]))
    array[0, 0, 0, 0] = 99
    stream = io.BytesIO()
    np.save(stream, array)
    members["consensus.npy"] = stream.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, m: m.pop("header.json"), "not a saved posterior: it has no header.json"),
        (lambda h, m: h.update(format="other"), "its header has another format"),
        (
            lambda h, m: h.update(version=7),
            "has format version 7, and this program reads 8: fit again",
        ),
        (lambda h, m: h.update(version="1"), "has format version '1'"),
        (lambda h, m: h.pop("items"), "'items' is missing"),
        (lambda h, m: h.update(items=["a"]), "do not fit together"),
        (lambda h, m: m.pop("alpha.npy"), "has no array 'alpha'"),
        (other_array, "'alpha' with 2 axes"),
        (lambda h, m: m.update({"beta.npy": m["alpha.npy"]}), "an array 'beta', which no fit has"),
        (pickled_array, "has a damaged array 'alpha'"),
        (wrong_ranks, "its consensus is not made of rankings"),
    ],
)
def test_a_foreign_file_is_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(ValueError, match=message):
        pm.load(path)


# Forged models: each is refused in words, or answers


@functools.cache
def model(kind):
    """The bytes of a saved posterior."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, short = Path(folder) / "x.pm", {"n_draws": 6, "rng": 1}
        clicks = pm.simulate_clicks(60, 6, [6, 6], 2, rng=1).preferences
        if kind == "rankings":
            made = pm.fit(pm.simulate_rankings(30, 5, 2, rng=1).preferences, alpha=2, **short)
        elif kind == "clicks":
            made = pm.fit(clicks, alpha=4, keep_latent=[3], **short)
        elif kind == "clusters":
            made = pm.fit(clicks, "mcmc", n_clusters=2, n_chains=1, warmup=5, thin=1, **short)
        else:
            made = pm.fit(clicks, "personal", ridge=0.3, rng=1)
        made.save(path)
        return path.read_bytes()


MODELS = ("rankings", "clicks", "clusters", "personal")


def assert_refused_or_answers(path):
    try:
        found = pm.load(path)
    except ValueError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
        return
    assert found.most_clicked() if isinstance(found, pm.PersonalFit) else found.summary()
    pm.report(found, path.with_suffix(".html"))
    if found.clicks is not None:
        pm.recommend(found, 2)


def forge(path, kind, change):
    path.write_bytes(model(kind))
    rewrite(path, change)


FORGED_VALUES = [None, -1, 2**70, 1.5, 1e300, math.nan, math.inf, "x", "", [], [-1], {}, True]
FORGED_VALUES += [[2**40], ["x"], {"chosen": 1}, {"n_clusters": 1, "means": [], "errors": []}]
fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


@pytest.mark.parametrize("kind", MODELS)
@fuzz
@given(data=st.data())
def test_forged_settings(kind, tmp_path, data):
    value = data.draw(st.sampled_from(FORGED_VALUES))

    def change(header, members):
        more = [*header["settings"], "curve", "stored_changes", "served"]
        if data.draw(st.booleans()):
            header["settings"][data.draw(st.sampled_from(more))] = value
        else:
            options = header["settings"]["options"]
            options[data.draw(st.sampled_from(sorted(options)))] = value

    forge(tmp_path / "x.pm", kind, change)
    assert_refused_or_answers(tmp_path / "x.pm")


@pytest.mark.parametrize("kind", MODELS)
@fuzz
@given(data=st.data())
def test_forged_arrays(kind, tmp_path, data):
    """One number of an array is another one."""

    def change(header, members):
        name = data.draw(st.sampled_from(sorted(members.keys() - {"header.json"})))
        array = np.load(io.BytesIO(members[name]))
        if array.size:
            place = data.draw(st.integers(0, array.size - 1))
            odd = [0, 1, 2, 99] + ([-1] if array.dtype.kind != "u" else [])
            odd += [np.nan, np.inf, -np.inf, 1e30] if array.dtype.kind == "f" else []
            array.ravel()[place] = data.draw(st.sampled_from(odd))
        members[name] = as_bytes(array)

    forge(tmp_path / "x.pm", kind, change)
    with np.errstate(all="ignore"):
        assert_refused_or_answers(tmp_path / "x.pm")


def as_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def with_array(name, change):
    def forged(header, members):
        array = change(np.load(io.BytesIO(members[f"{name}.npy"])))
        members[f"{name}.npy"] = as_bytes(array)

    return forged


def huge(header, members):
    claimed = io.BytesIO()
    said = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 1)}
    np.lib.format.write_array_header_1_0(claimed, said)
    members["alpha.npy"] = claimed.getvalue() + bytes(80)


FORGED = [
    (lambda h, m: h.update(settings={}), "has damaged settings: method is None"),
    (lambda h, m: h["settings"].pop("options"), "settings: there are no options"),
    (lambda h, m: h["settings"].update(method=["x"]), r"settings: method is \['x'\]"),
    (lambda h, m: h["settings"].update(kind="magic"), "was fitted with kind='magic'"),
    (lambda h, m: h["settings"].update(is_full=1), "settings: is_full is 1"),
    (lambda h, m: h["settings"].update(method="personal"), "settings: method is 'personal'"),
    (
        lambda h, m: h["settings"].update(method="magic"),
        "was fitted with method='magic', and this version knows 'pseudo', .* only: update",
    ),
    (
        lambda h, m: h["settings"]["options"].update(move="jump"),
        "was fitted with move='jump', and this version knows 'swap', 'leap_and_shift', 'insert'",
    ),
    (lambda h, m: h["settings"].update(alpha=math.nan), "settings: alpha is nan"),
    (lambda h, m: h["settings"]["options"].update(order="z"), "settings: order is 'z'"),
    (lambda h, m: h["settings"].update(seed="x"), "settings: seed is 'x'"),
    (lambda h, m: h["settings"]["options"].update(keep_latent=[60]), "keep_latent is"),
    (lambda h, m: h["settings"].update(options={}), "settings: n_draws is None"),
    (lambda h, m: h["settings"]["options"].update(n_draws=-3), "settings: n_draws is -3"),
    (lambda h, m: h["settings"]["options"].update(n_clusters=10**9), "n_clusters is 1000000000"),
    (lambda h, m: h["settings"]["options"].update(n_clusters=True), "n_clusters is True"),
    (lambda h, m: h["settings"]["options"].update(thin="x"), "settings: thin is 'x'"),
    (lambda h, m: h["settings"]["options"].update(sigma=-1), "settings: sigma is -1"),
    (lambda h, m: h["settings"]["options"].update(temperatures=1), "temperatures is 1"),
    (lambda h, m: h["settings"].update(tempered=[1.0, 0.0]), r"tempered is \[1.0, 0.0\]"),
    (lambda h, m: h["settings"].update(tempered={"powers": [1.0]}), "tempered is {'powers'"),
    (lambda h, m: h["settings"]["options"].update(alpha_prior=[1]), "alpha_prior is"),
    (with_array("alpha", lambda a: a * np.nan), "its alpha must be numbers from 0 .* is nan"),
    (with_array("alpha", lambda a: -a), "its alpha must be numbers from 0 .* is -4"),
    (with_array("alpha", lambda a: a + np.inf), "its alpha must be numbers from 0 .* is inf"),
    (with_array("alpha", lambda a: a.astype(complex)), "'alpha' of complex128, and it must be"),
    (with_array("consensus", lambda a: a.astype(float)), "'consensus' of float64, and it must"),
    (with_array("best", lambda a: a + 1), "its best is not made of rankings"),
    (with_array("weights", lambda a: -a), "its weights are not weights"),
    (with_array("latent", lambda a: a + 100), "its latent is not made of rankings"),
    (with_array("click_weights", lambda a: a - 2), "its clicks have weights below 0"),
    (with_array("click_weights", lambda a: a + 2**60), "or too large ones"),
    (with_array("click_codes", lambda a: a * 0), "a user has clicked an item twice"),
    (with_array("click_codes", lambda a: a + 3), "its clicks do not fit together"),
    (with_array("click_starts", lambda a: a[::-1].copy()), "its clicks do not fit together"),
    (lambda h, m: h.update(items=["a"] * 6), "two of its items have one name"),
    (lambda h, m: h.update(users=["a"] * 60), "two of its users have one name"),
    (lambda h, m: h.update(items=[[1]] * 6), "its items are not text or numbers"),
    (huge, "'alpha': it claims 8 TB, and 80 bytes are there"),
]


@pytest.mark.parametrize(("change", "message"), FORGED, ids=[words for _, words in FORGED])
def test_what_is_forged_is_named(tmp_path, change, message):
    path = tmp_path / "x.pm"
    forge(path, "clicks", change)
    with pytest.raises(ValueError, match=message) as caught:
        pm.load(path)
    assert str(caught.value).startswith(str(path))


def test_a_saved_fit_may_have_every_method_and_name_that_fit_knows():
    assert tuple(options.METHODS) == METHODS
    for name, known in NAMED.items():
        checks = [field.metadata["check"] for field in options.OPTIONS if field.name == name]
        assert checks
        for check in checks:
            assert [check(value, name) for value in known] == list(known)


@pytest.mark.parametrize("options", [{}, {"ridge": "x"}, {"ridge": -1}])
def test_forged_options_of_a_personal_model_are_named(tmp_path, options):
    path = tmp_path / "x.pm"
    forge(path, "personal", lambda header, _: header["settings"].update(options=options))
    with pytest.raises(ValueError, match=r"x\.pm has damaged settings: ridge is"):
        pm.load(path)


def test_a_forged_header_does_not_break_the_reader(tmp_path):
    path = tmp_path / "x.pm"
    for text in ("[" * 100_000, "9" * 5000, "[]", "\ud800"):
        path.write_bytes(model("clicks"))
        rewrite(path, lambda header, members: members.pop("header.json"))
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("header.json", text.encode("utf-8", "surrogatepass"))
        with pytest.raises(ValueError, match="damaged header"):
            pm.load(path)


def test_a_service_skips_a_forged_version(tmp_path, caplog):
    """The newest that is sound answers."""
    (tmp_path / "x.pm").write_bytes(model("clicks"))
    versions = Versions(tmp_path / "x.pm")
    sound = versions.save(pm.load(tmp_path / "x.pm"))
    for change, _ in FORGED:
        bad = versions.path(max(versions.numbers()) + 1)
        forge(bad, "clicks", change)
    assert versions.newest()[0] == sound
    assert len(caplog.records) == len(FORGED)


def test_a_place_that_cannot_be_written_is_named(posterior, tmp_path):
    with pytest.raises(OSError, match="it is a folder"):
        posterior.save(tmp_path)
    with pytest.raises(OSError, match="there is no folder"):
        posterior.save(tmp_path / "nowhere" / "x.pm")


def test_a_text_file_and_a_missing_file_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("user,item\n1,2\n")
    with pytest.raises(ValueError, match=r"x\.csv is not a saved posterior"):
        pm.load(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        pm.load(tmp_path / "nothing")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_device_is_named(posterior):
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        posterior.save("/dev/full")


def test_a_file_for_which_there_is_no_room_is_named(tmp_path):
    path = tmp_path / "x.csv"
    with pytest.raises(OSError, match=f"No space left on device: '{path}'"), write_whole(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not os.listdir(tmp_path)
    with pytest.raises(BrokenPipeError) as caught, write_whole(path):
        raise BrokenPipeError(errno.EPIPE, "the reader has gone")
    assert caught.value.filename is None


@pytest.mark.parametrize("content", ["cut", "noise", "zeros"])
def test_a_damaged_model_is_no_spreadsheet(path, content):
    noise = np.random.default_rng(1).bytes(500)
    broken = path.with_name("broken.pm")
    broken.write_bytes({"cut": path.read_bytes()[:10], "noise": noise, "zeros": b"x\0"}[content])
    with pytest.raises(ValueError, match=r"broken\.pm: this is a damaged model file"):
        pm.read(broken)


def test_a_header_that_unpacks_to_much_is_refused(path):
    bomb = path.with_name("bomb.pm")
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        for name in whole.namelist():
            blanks = b" " * 30_000_000 if name == "header.json" else b""
            made.writestr(name, whole.read(name) + blanks)
    with pytest.raises(
        ValueError, match=r"header unpacks from .* KB to 30 MB, more than 200 times"
    ):
        pm.load(bomb)
