"""The process of a refit: the fit of all clicks, old and new."""

import io
import json
import os
import sys
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.web.jobs import child
from pseudomallows.web.jobs.child import join_clicks, refit
from pseudomallows.web.models.versions import Versions
from pseudomallows.web.stores.open import open_store
from webhelp import Process, make_model, wait_until


def test_old_and_new_clicks_are_joined():
    old = pm.Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"]}, weights=[2, 1])
    new = [("ann", "ale"), ("ann", "tea"), ("eve", "rum"), ("eve", "gin")]
    found = join_clicks(old, [(*pair, 1e9) for pair in new])
    assert found.users.tolist() == ["ann", "bob", "eve"]
    assert found.items.tolist() == ["rum", "tea", "ale", "gin"]
    assert [found.items[found.clicks_of(row)].tolist() for row in range(3)] == [
        ["rum", "tea", "ale"],
        ["tea"],
        ["rum", "gin"],
    ]
    assert found.weights.tolist() == [2, 1, 1]
    assert join_clicks(old, []).codes.tolist() == old.codes.tolist()


def test_times_of_the_store_are_joined_to_those_of_the_fit():
    columns = {"user": ["ann", "ann"], "item": ["tea", "rum"], "time": [5.0, 6.0]}
    old = pm.Preferences.from_clicks(columns)
    new = [("ann", "ale", 9.0), ("ann", "tea", 2.0), ("eve", "rum", None)]
    found = join_clicks(old, new)
    assert str(found.times.tolist()) == "[6.0, 2.0, 9.0, nan]"  # rum, tea, ale; rum
    assert join_clicks(pm.Preferences.from_clicks({"ann": ["tea", "rum"]}), new).times is None


def test_names_that_are_numbers_stay_numbers():
    old = pm.Preferences.from_clicks({1: [10, 20], 2: [10]})
    found = join_clicks(old, [("2", "20", 1.0), ("3", "30", 2.0), ("x", "010", None)])
    assert found.users.tolist() == [1, 2, 3, "x"]
    assert found.items.tolist() == [10, 20, 30, "010"]


def test_a_refit_is_the_fit_of_all_clicks(tmp_path):
    posterior = make_model(tmp_path / "m.pm", method="pseudo", n_clusters=2)
    store = open_store(str(tmp_path / "s.sqlite"))
    store.add([("zoe", "item 1"), ("zoe", "item 2"), ("user 1", "item 5")])
    request = {"store": str(tmp_path / "s.sqlite")}
    found = refit(posterior, request, posterior.clicks)
    prefs = join_clicks(posterior.clicks, store.all_clicks())
    store.close()
    with pytest.warns(pm.ConvergenceWarning):
        expected = pm.fit(prefs, "pseudo", n_draws=20, n_clusters=2, rng=1)
    assert np.array_equal(found.consensus, expected.consensus)
    assert found.users.tolist()[-1] == "zoe"
    assert found.settings["stored_changes"] == 3
    assert refit(posterior, request | {"clusters": 3}, posterior.clicks).n_clusters == 3
    again = refit(posterior, request | {"method": "personal"}, posterior.clicks)
    assert isinstance(again, pm.PersonalFit)
    with pytest.raises(ValueError, match="has no clusters"):
        refit(posterior, request | {"method": "personal", "clusters": 2}, posterior.clicks)


@pytest.mark.parametrize(
    ("request_of", "how"),
    [
        ({}, "update"),
        ({"clusters": 2, "method": "mcmc"}, "update"),
        ({"clusters": 3}, "fit"),
        ({"clusters": "auto"}, "fit"),
        ({"method": "matched"}, "fit"),
        ({"item": "lead"}, "fit"),
    ],
)
def test_chains_go_on_where_they_can(tmp_path, capsys, request_of, how):
    posterior = make_model(tmp_path / "m.pm", n_clusters=2)
    store = open_store(str(tmp_path / "s.sqlite"))
    item = request_of.get("item", "item 2")
    store.add([("zoe", "item 1"), ("zoe", item), ("user 1", "item 5")])
    request = {"store": str(tmp_path / "s.sqlite"), **request_of}
    found = refit(posterior, request, posterior.clicks)
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {"how": how}
    prefs = join_clicks(posterior.clicks, store.all_clicks())
    store.close()
    assert found.data.digest() == prefs.digest()
    assert found.users.tolist()[-1] == "zoe"
    assert found.settings.get("updates", 0) == (how == "update")
    if how == "update":
        more = {"zoe": ["item 1", "item 2"], "user 1": ["item 5"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
            expected = posterior.update(more, rng=2)
        assert np.array_equal(found.consensus, expected.consensus)
        found.save(tmp_path / "m2.pm")
        again = refit(pm.load(tmp_path / "m2.pm"), request, posterior.clicks)
        assert (again.settings["updates"], again.settings["seed"]) == (2, 3)


def test_removed_clicks_do_not_come_back_by_a_refit(tmp_path, monkeypatch, capsys):
    """Even if a version in between has learned from them."""
    first = make_model(tmp_path / "m.pm", method="pseudo")
    store, versions = open_store(str(tmp_path / "s.sqlite")), Versions(tmp_path / "m.pm")
    upload = store.begin_upload(2, 2)
    store.add_part(upload, [("evil", "item 1"), ("evil", "lead"), ("user 1", "lead")])
    store.finish_upload(upload)
    store.add([("ann", "item 1"), ("bob", "item 2")])
    monkeypatch.setattr(os, "nice", lambda by: None)
    monkeypatch.setattr(child, "end_with_the_service", lambda: None)

    def run(number):
        request = {"model": str(tmp_path / "m.pm"), "number": number}
        request["store"] = str(tmp_path / "s.sqlite")
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request) + "\n"))
        assert child.main("refit") == 0
        saved = json.loads(capsys.readouterr().out.splitlines()[-1])["saved"]
        return versions.load(saved)

    second = run(1)
    assert {"evil", "ann", "bob"} <= set(second.users)
    assert second.items.tolist()[-1] == "lead"
    store.remove_upload(upload)
    store.remove_user("ann")
    third = run(2)
    assert set(third.users) == {*first.users, "bob"}
    assert third.items.tolist() == first.items.tolist()
    assert third.settings["stored_changes"] == store.counts()[1] > second.settings["stored_changes"]
    store.close()


@pytest.mark.slow
def test_a_killed_service_takes_its_refit_with_it(tmp_path):
    make_model(tmp_path / "m.pm", "pseudo", n_draws=20_000)  # whose refits begin anew
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:
        job = service.ask("/refit", {})[1]["job"]
        wait_until(lambda: service.ask(f"/jobs/{job}")[1]["total"] > 0)
        ours = f"/proc/{service.process.pid}/task/{service.process.pid}/children"
        with open(ours) as stream:
            (child,) = map(int, stream.read().split())
        service.kill()
        wait_until(lambda: not os.path.exists(f"/proc/{child}"))
    assert not list(tmp_path.glob("m.pm.d/*"))
