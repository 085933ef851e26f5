"""The service: versions that take over, refits now and then."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import pseudomallows as pm
from pseudomallows.web import service as service_module
from pseudomallows.web.jobs.refits import Refits
from pseudomallows.web.models.versions import Versions
from pseudomallows.web.stores.sqlite import SqliteStore
from webhelp import client_in, make_model, script, wait_for_job, wait_until


@pytest.mark.slow
def test_requests_go_on_while_a_refit_takes_over(tmp_path):
    """New users and items of an upload are known afterwards; no request fails meanwhile."""
    statuses, stop = [], threading.Event()
    with client_in(tmp_path) as client:

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
            done = wait_for_job(client, job["job"])
            assert done["state"] == "done", done
            assert done["done"] == done["total"] > 0
            assert done["how"] == "fit"  # for there are new items
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
    with client_in(tmp_path) as client:  # it comes back with the newest
        assert client.get("/model").json()["model"] == 2


def test_a_refit_after_new_clicks_goes_on(tmp_path):
    """And says so, in the answer of the job and of the model."""
    with client_in(tmp_path) as client:
        assert client.get("/model").json()["updates"] == 0
        for number in (1, 2):
            client.post("/users/zoe/clicks", json={"clicks": [f"item {number}"]})
            done = wait_for_job(client, client.post("/refit").json()["job"])
            assert (done["state"], done["how"]) == ("done", "update")
            found = client.get("/model").json()
            assert (found["model"], found["updates"]) == (number + 1, number)
            assert found["n_users"] == 61
        done = wait_for_job(client, client.post("/refit", json={"clusters": 2}).json()["job"])
        assert (done["state"], done["how"]) == ("done", "fit")
        assert client.get("/model").json()["updates"] == 0


def test_a_version_of_another_process_is_taken_into_use(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "WATCH_SECONDS", 0.1)
    with client_in(tmp_path) as client:
        versions = Versions(tmp_path / "m.pm")
        assert versions.save(pm.load(tmp_path / "m.pm")) == 2
        wait_until(lambda: client.get("/model").json()["model"] == 2)


def test_a_refit_now_and_then(tmp_path, monkeypatch):
    """If there are new clicks, and not again without."""
    monkeypatch.setattr(Refits, "command", script('print(\'{"error": "no luck"}\')'))
    rounds, count = [], SqliteStore.counts

    def counts(store):
        rounds.append(None)
        return count(store)

    def wait_for_rounds(number=4):
        """Until it was asked so often whether there is anything new; the last is still going on."""
        before = len(rounds)
        wait_until(lambda: len(rounds) > before + number)

    monkeypatch.setattr(SqliteStore, "counts", counts)
    with client_in(tmp_path, refit_every=0.05) as client:
        jobs = client.app.service.refits.jobs
        wait_for_rounds()
        assert not jobs
        client.post("/users/zoe/clicks", json={"clicks": ["item 1"]})
        wait_for_job(client, first_of(jobs, 0))
        wait_for_rounds()
        assert len(jobs) == 1
        client.delete("/users/zoe")  # what was removed is to be forgotten, too
        wait_for_job(client, first_of(jobs, 1))
        wait_for_rounds()
        assert len(jobs) == 2
    newer = pm.load(tmp_path / "m.pm")
    newer.settings["stored_changes"] = 2
    Versions(tmp_path / "m.pm").save(newer)
    with client_in(tmp_path, refit_every=0.05) as client:  # started again: nothing is new
        wait_for_rounds()
        assert not client.app.service.refits.jobs


def first_of(jobs, place):
    """The name of a job, once it is there."""
    wait_until(lambda: len(jobs) > place)
    return list(jobs)[place]


def test_the_consensus_of_a_personal_fit_is_learnt_beside_the_requests(tmp_path, monkeypatch):
    """And not for what only says that there is one: it may take minutes."""
    make_model(tmp_path / "m.pm", "personal", n_users=200, n_items=8, with_consensus=True)
    with client_in(tmp_path) as client:
        fit = client.app.service.model.posterior
        assert isinstance(fit, pm.PersonalFit)
        learn, begun, go = pm.PersonalFit.learn_population, threading.Event(), threading.Event()

        def learn_slowly(self):
            begun.set()
            assert go.wait(30)
            return learn(self)

        monkeypatch.setattr(pm.PersonalFit, "learn_population", learn_slowly)
        assert client.get("/model").json()["n_clusters"] == 1
        assert not begun.is_set()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.get, "/consensus")
            assert begun.wait(30)
            for path in ("/healthz", "/model", "/items"):
                assert client.get(path).status_code == 200
            assert client.post("/recommend", json={"clicks": ["item 1"]}).status_code == 200
            go.set()
            assert len(answer.result().json()["items"]) == 8
