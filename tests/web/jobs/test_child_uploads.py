"""The process that takes in a large file."""

import sys
import threading
import time

import pytest

from pseudomallows.web.jobs import uploads
from pseudomallows.web.stores.open import open_store
from webhelp import Process, client_in, make_model, rows_of_clicks


def test_a_process_that_ends_early_leaves_nothing_of_its_upload(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "SMALL", 0)
    cut = (
        'import sys, os; print(\'{"counts": [1, 1, 1], "warnings": []}\', flush=True); '
        "input(); input(); os.abort()"
    )
    for text in ("raise SystemExit(1)", cut):
        monkeypatch.setattr(uploads.Uploads, "command", (sys.executable, "-c", text))
        with client_in(tmp_path) as client:
            answer = client.post("/upload?refit=false", content="user,item\na,item 1\n")
            assert (answer.status_code, "cut short" in answer.text) == (503, True)
            assert client.get("/uploads").json() == {"uploads": []}


def test_what_no_memory_holds_is_refused(tmp_path, monkeypatch):
    """A process that reads a file has its limit; the service goes on."""
    monkeypatch.setattr(uploads, "SMALL", 0)
    text = "from pseudomallows.web.jobs import child; child.MEMORY = 10**7; child.main('upload')"
    monkeypatch.setattr(uploads.Uploads, "command", (sys.executable, "-c", text))
    rows = "\n".join(f"u{n},item 1" for n in range(200_000))
    with client_in(tmp_path) as client:
        answer = client.post("/upload?refit=false", content=f"user,item\n{rows}")
        assert answer.status_code == 413
        assert "0.01 GB of memory" in answer.json()["error"]
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "n_rows", [60_000, pytest.param(4_100_000, marks=pytest.mark.slow)], ids=["short", "100 MB"]
)
def test_the_service_goes_on_while_a_large_upload_is_taken_in(tmp_path, n_rows):
    content = rows_of_clicks(n_rows)[:100_000_000].rpartition(b"\n")[0] + b"\n"
    make_model(tmp_path / "m.pm")
    times, posted, stop = [], [], threading.Event()
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:

        def look():
            while not stop.is_set():
                started = time.monotonic()
                assert service.ask("/healthz") == (200, {"status": "ok"})
                times.append(time.monotonic() - started)
                time.sleep(0.02)

        def post():
            while not stop.is_set():
                user = f"poster{len(posted)}"
                assert service.ask(f"/users/{user}/clicks", {"clicks": ["item 1"]})[0] == 200
                posted.append(time.monotonic())

        threads = [threading.Thread(target=work) for work in (look, post)]
        for thread in threads:
            thread.start()
        try:
            status, answer = service.ask("/upload?refit=false", content, timeout=900)
            ended = time.monotonic()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert (status, answer["clicks"]) == (202, content.count(b"\n") - 1)
    assert max(times) < 1.0
    assert sum(when < ended for when in posted) > 5
    store = open_store(str(tmp_path / "s.sqlite"))
    assert store.n_clicks() == answer["clicks"] + len(posted)
    store.close()
