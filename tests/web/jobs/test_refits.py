"""Refits: progress, cancelling, and what happens when they fail."""

import os
import signal

import pytest

from pseudomallows.web.jobs.refits import Refits
from webhelp import LONG, client_in, script, wait_for_job, wait_until


def test_progress_one_at_a_time_and_cancel(tmp_path, monkeypatch):
    monkeypatch.setattr(Refits, "command", LONG)
    with client_in(tmp_path) as client:
        job = client.post("/refit", json={}).json()["job"]
        wait_until(lambda: client.get(f"/jobs/{job}").json()["done"] == 3)
        for path, body in (("/refit", b"{}"), ("/upload", b"user,item\na,item 1\n")):
            answer = client.post(path, content=body)
            assert answer.status_code == 409
            assert "is running" in answer.json()["error"]
        pid = client.app.service.refits.get(job).process.pid
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
    monkeypatch.setattr(Refits, "command", script(text))
    with client_in(tmp_path) as client:
        before = client.post("/recommend", json={"clicks": ["item 1"]}).json()
        job = client.post("/refit").json()["job"]
        answer = wait_for_job(client, job)
        assert answer["state"] == "failed"
        assert words in answer["error"]
        assert client.post("/recommend", json={"clicks": ["item 1"]}).json() == before
        assert client.get("/model").json()["model"] == 1
        monkeypatch.setattr(Refits, "command", LONG)
        assert client.post("/refit").status_code == 202  # and another can be started


def test_a_killed_refit_leaves_the_old_model(tmp_path, monkeypatch):
    monkeypatch.setattr(Refits, "command", LONG)
    with client_in(tmp_path) as client:
        job = client.post("/refit").json()["job"]
        os.kill(client.app.service.refits.get(job).process.pid, signal.SIGKILL)
        answer = wait_for_job(client, job)
        assert (answer["state"], "by signal 9" in answer["error"]) == ("failed", True)
        assert client.get("/model").json()["model"] == 1


def test_the_end_of_the_service_ends_its_refit(tmp_path, monkeypatch):
    monkeypatch.setattr(Refits, "command", LONG)
    with client_in(tmp_path) as client:
        job = client.post("/refit").json()["job"]
        pid = client.app.service.refits.get(job).process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
