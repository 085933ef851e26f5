"""Refits: new versions, progress, cancelling, and what happens when they fail."""

import contextlib
import io
import json
import logging
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.web import refit as refit_module
from pseudomallows.web.app import make_app
from pseudomallows.web.jobs import Jobs
from pseudomallows.web.refit import join_clicks, refit
from pseudomallows.web.stores.store import open_store
from pseudomallows.web.versions import Versions
from webhelp import Client, Process, make_model


def script(text):
    return (sys.executable, "-c", text)


LONG = script('import time; print(\'{"done": 3, "total": 9}\', flush=True); time.sleep(60)')


def wait_for(client, job, states=("done", "failed", "cancelled"), seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = client.get(f"/jobs/{job}").json()
        if answer["state"] in states:
            return answer
        time.sleep(0.05)
    raise AssertionError(answer)


@contextlib.contextmanager
def client_of(folder, **more):
    if not (folder / "m.pm").exists():
        make_model(folder / "m.pm")
    with Client(make_app(folder / "m.pm", str(folder / "s.sqlite"), **more)) as client:
        yield client


def test_old_and_new_clicks_are_joined():
    old = pm.Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"]}, weights=[2, 1])
    new = [("ann", "ale"), ("ann", "tea"), ("eve", "rum"), ("eve", "gin")]
    found = join_clicks(old, new)
    assert found.users.tolist() == ["ann", "bob", "eve"]
    assert found.items.tolist() == ["rum", "tea", "ale", "gin"]
    assert [found.items[found.clicks_of(row)].tolist() for row in range(3)] == [
        ["rum", "tea", "ale"],
        ["tea"],
        ["rum", "gin"],
    ]
    assert found.weights.tolist() == [2, 1, 1]
    assert join_clicks(old, []).codes.tolist() == old.codes.tolist()


def test_names_that_are_numbers_stay_numbers():
    old = pm.Preferences.from_clicks({1: [10, 20], 2: [10]})
    found = join_clicks(old, [("2", "20"), ("3", "30"), ("x", "010")])
    assert found.users.tolist() == [1, 2, 3, "x"]
    assert found.items.tolist() == [10, 20, 30, "010"]


def test_a_refit_is_the_fit_of_all_clicks(tmp_path):
    posterior = make_model(tmp_path / "m.pm", method="pseudo", n_clusters=2)
    store = open_store(str(tmp_path / "s.sqlite"))
    store.add([("zoe", "item 1"), ("zoe", "item 2"), ("user 1", "item 5")])
    order = {"store": str(tmp_path / "s.sqlite")}
    found = refit(posterior, order, posterior.clicks)
    prefs = join_clicks(posterior.clicks, store.all_clicks())
    store.close()
    with pytest.warns(pm.ConvergenceWarning):
        expected = pm.fit(prefs, "pseudo", n_draws=20, n_clusters=2, rng=1)
    assert np.array_equal(found.consensus, expected.consensus)
    assert found.users.tolist()[-1] == "zoe"
    assert found.settings["stored_clicks"] == 3
    assert refit(posterior, order | {"clusters": 3}, posterior.clicks).n_clusters == 3
    again = refit(posterior, order | {"method": "personal"}, posterior.clicks)
    assert isinstance(again, pm.PersonalFit)
    with pytest.raises(ValueError, match="has no clusters"):
        refit(posterior, order | {"method": "personal", "clusters": 2}, posterior.clicks)


def test_removed_clicks_do_not_come_back_by_a_refit(tmp_path, monkeypatch, capsys):
    """Even if a version in between has learned from them."""
    first = make_model(tmp_path / "m.pm", method="pseudo")
    store, versions = open_store(str(tmp_path / "s.sqlite")), Versions(tmp_path / "m.pm")
    upload = store.begin_upload(2, 2)
    store.add_part(upload, [("evil", "item 1"), ("evil", "lead"), ("user 1", "lead")])
    store.finish_upload(upload)
    store.add([("ann", "item 1"), ("bob", "item 2")])
    monkeypatch.setattr(os, "nice", lambda by: None)
    monkeypatch.setattr(refit_module, "_end_with_the_service", lambda: None)

    def run(number):
        order = {"model": str(tmp_path / "m.pm"), "number": number}
        order["store"] = str(tmp_path / "s.sqlite")
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(order) + "\n"))
        assert refit_module.main() == 0
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
def test_requests_go_on_while_a_refit_takes_over(tmp_path):
    """New users and items of an upload are known afterwards; no request fails meanwhile."""
    statuses, stop = [], threading.Event()
    with client_of(tmp_path) as client:

        def ask():
            while not stop.is_set():
                answer = client.post("/recommend", json={"clicks": ["item 1"], "k": 3})
                statuses.append(answer.status_code)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            text = "user,item,time\nann,item 3,1\nann,gold,2\nbob,gold,3\n"
            answer = client.post("/upload", content=text)
            assert answer.status_code == 202
            job = answer.json()
            assert (job["users"], job["items"], job["clicks"]) == (2, 2, 3)
            done = wait_for(client, job["job"])
            assert done["state"] == "done", done
            assert done["done"] == done["total"] > 0
        finally:
            stop.set()
            thread.join()
        assert set(statuses) == {200}
        found = client.get("/model").json()
        assert (found["model"], found["n_users"], found["n_items"]) == (2, 62, 13)
        assert client.post("/recommend", json={"clicks": ["gold"]}).status_code == 200
        saved = pm.load(tmp_path / "m.pm.d" / "000002.pm")
        answer = client.get("/users/ann/recommendations?k=2").json()
        expected = pm.recommend(saved, 2, users=["ann"]).to_rows()
        assert [r["item"] for r in answer["recommendations"]] == [r["item"] for r in expected]
    with client_of(tmp_path) as client:  # it comes back with the newest
        assert client.get("/model").json()["model"] == 2


def test_progress_one_at_a_time_and_cancel(tmp_path, monkeypatch):
    monkeypatch.setattr(Jobs, "command", LONG)
    with client_of(tmp_path) as client:
        job = client.post("/refit", json={}).json()["job"]
        deadline = time.monotonic() + 20
        while client.get(f"/jobs/{job}").json()["done"] != 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for path, body in (("/refit", b"{}"), ("/upload", b"user,item\na,item 1\n")):
            answer = client.post(path, content=body)
            assert answer.status_code == 409
            assert "is running" in answer.json()["error"]
        pid = client.app.service.jobs.get(job).process.pid
        answer = client.delete(f"/jobs/{job}").json()
        assert (answer["state"], answer["total"]) == ("cancelled", 9)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert client.delete(f"/jobs/{job}").json()["state"] == "cancelled"
        assert client.post("/recommend", json={"clicks": []}).status_code == 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit(1)", "with code 1"),
        ('print(\'{"error": "no luck"}\')', "no luck"),
        ("import os; os.abort()", "by signal 6"),
        ("print('{\"saved\": 7}')", "could not be taken into use"),
        ("print('what?'); print('[]'); print('{\"done\": \"x\"}')", "with code 0"),
    ],
)
def test_a_refit_that_fails_leaves_the_old_model(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr(Jobs, "command", script(text))
    with client_of(tmp_path) as client:
        before = client.post("/recommend", json={"clicks": ["item 1"]}).json()
        job = client.post("/refit").json()["job"]
        answer = wait_for(client, job)
        assert answer["state"] == "failed"
        assert words in answer["error"]
        assert client.post("/recommend", json={"clicks": ["item 1"]}).json() == before
        assert client.get("/model").json()["model"] == 1
        monkeypatch.setattr(Jobs, "command", LONG)
        assert client.post("/refit").status_code == 202  # and another can be started


def test_a_killed_refit_leaves_the_old_model(tmp_path, monkeypatch):
    monkeypatch.setattr(Jobs, "command", LONG)
    with client_of(tmp_path) as client:
        job = client.post("/refit").json()["job"]
        os.kill(client.app.service.jobs.get(job).process.pid, signal.SIGKILL)
        answer = wait_for(client, job)
        assert (answer["state"], "by signal 9" in answer["error"]) == ("failed", True)
        assert client.get("/model").json()["model"] == 1


def test_the_end_of_the_service_ends_its_refit(tmp_path, monkeypatch):
    monkeypatch.setattr(Jobs, "command", LONG)
    with client_of(tmp_path) as client:
        job = client.post("/refit").json()["job"]
        pid = client.app.service.jobs.get(job).process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_version_of_another_process_is_taken_into_use(tmp_path):
    with client_of(tmp_path) as client:
        versions = Versions(tmp_path / "m.pm")
        assert versions.save(pm.load(tmp_path / "m.pm")) == 2
        deadline = time.monotonic() + 20
        while client.get("/model").json()["model"] != 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_damaged_or_foreign_version_is_skipped_with_a_line(tmp_path, caplog):
    make_model(tmp_path / "m.pm")
    versions = Versions(tmp_path / "m.pm")
    assert [versions.save(pm.load(tmp_path / "m.pm")) for _ in range(3)] == [2, 3, 4]
    content = versions.path(4).read_bytes()
    versions.path(4).write_bytes(content[: len(content) // 2])
    foreign = pm.load(tmp_path / "m.pm")
    foreign.settings["served"] = {"base": "another"}
    foreign.save(versions.path(5))
    (versions.folder / ".draft-1.pm").write_bytes(b"half")
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_of(tmp_path) as client:
        assert client.get("/model").json()["model"] == 3
    assert "version 5 is skipped" in caplog.text
    assert "version 4 is skipped" in caplog.text
    assert versions.save(pm.load(tmp_path / "m.pm")) == 6


def test_two_processes_never_take_the_same_number(tmp_path):
    make_model(tmp_path / "m.pm")
    posterior, numbers = pm.load(tmp_path / "m.pm"), []

    def save(number):
        versions = Versions(tmp_path / "m.pm")
        draft = tmp_path / f"draft {number}"
        posterior.save(draft)
        versions.folder.mkdir(exist_ok=True)
        numbers.append(versions._number(draft))

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(2, 10))


def test_a_refit_now_and_then(tmp_path, monkeypatch):
    """If there are new clicks, and not again without."""
    monkeypatch.setattr(Jobs, "command", script('print(\'{"error": "no luck"}\')'))
    with client_of(tmp_path, refit_every=0.05) as client:
        time.sleep(0.3)
        jobs = client.app.service.jobs._jobs
        assert not jobs
        client.post("/users/zoe/clicks", json={"clicks": ["item 1"]})
        time.sleep(1.0)
        assert len(jobs) == 1
        client.delete("/users/zoe")  # what was removed is to be forgotten, too
        time.sleep(1.0)
        assert len(jobs) == 2
    newer = pm.load(tmp_path / "m.pm")
    newer.settings["stored_changes"] = 2
    Versions(tmp_path / "m.pm").save(newer)
    with client_of(tmp_path, refit_every=0.05) as client:  # started again: nothing is new
        time.sleep(0.5)
        assert not client.app.service.jobs._jobs


@pytest.mark.slow
def test_a_killed_service_takes_its_refit_with_it(tmp_path):
    make_model(tmp_path / "m.pm", n_draws=4000)
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:
        job = service.ask("/refit", {})[1]["job"]
        while service.ask(f"/jobs/{job}")[1]["total"] == 0:
            time.sleep(0.1)
        ours = f"/proc/{service.process.pid}/task/{service.process.pid}/children"
        with open(ours) as stream:
            (child,) = map(int, stream.read().split())
        service.kill()
        deadline = time.monotonic() + 20
        while os.path.exists(f"/proc/{child}"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert not list(tmp_path.glob("m.pm.d/*"))
