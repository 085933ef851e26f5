"""A user who was removed does not come back, and is in no file that the service keeps."""

import shutil
import socket
import stat
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.web.jobs import uploads
from pseudomallows.web.jobs.child import refit as refit_now
from pseudomallows.web.models.versions import Versions
from pseudomallows.web.stores.open import open_store
from webhelp import Process, client_in, make_model, wait_for_job, wait_until

NAME = "Zebediah"
ASKED = f"/users/{NAME}/recommendations"
CLICKS = {"clicks": ["item 1", "item 2"]}
OPTIONS = ({"method": "pseudo", "n_clusters": 2}, {"method": "personal", "with_consensus": True})


def files_with_the_name(folder):
    """Files below a folder that hold the name; a model by its users."""
    models = [path.name for path in folder.rglob("*.pm") if NAME in pm.load(path).users.tolist()]
    # by another process: to close a file of SQLite here would let go of its locks
    words = ["grep", "-rlF", NAME, "--exclude=*.pm", str(folder)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return sorted([*models, *(Path(line).name for line in said.splitlines())])


def refit(client):
    job = wait_for_job(client, client.post("/refit").json()["job"])
    assert job["state"] == "done", job


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A folder with a model, whose service has learned of the user, been told to remove the user,
    and learned again; and the version that knew the user."""
    path = tmp_path_factory.mktemp("learned")
    make_model(path / "m.pm", method="pseudo")
    text = f"user,item\n{NAME},item 3\nann,item 3\n".encode()
    with client_in(path) as client:
        assert client.post(f"/users/{NAME}/clicks", json=CLICKS).status_code == 200
        assert client.post("/upload?refit=false", content=text).status_code == 202
        refit(client)
        assert files_with_the_name(path) == ["000002.pm", "s.sqlite-wal"]
        old = (path / "m.pm.d" / "000002.pm").read_bytes()
        assert client.delete(f"/users/{NAME}").json()["clicks"] == 3
        assert files_with_the_name(path) == ["000002.pm"]  # until the next refit
        assert client.get(ASKED).status_code == 200
        refit(client)
        assert client.get(ASKED).status_code == 404
        wait_until(lambda: files_with_the_name(path) == [])
    return path, old


@pytest.fixture
def folder(learned, tmp_path):
    return Path(shutil.copytree(learned[0], tmp_path / "copy"))


def test_no_file_has_the_name_of_a_removed_user(folder):
    assert files_with_the_name(folder) == []
    with client_in(folder) as client:
        assert client.get("/model").json()["model"] == 3
        assert client.get(ASKED).status_code == 404


@pytest.mark.parametrize("harm", ["damaged", "removed"])
def test_no_older_version_brings_a_removed_user_back(folder, harm):
    newest = folder / "m.pm.d" / "000003.pm"
    newest.write_bytes(b"x") if harm == "damaged" else newest.unlink()
    with client_in(folder) as client:
        assert client.get(ASKED).status_code == 404
        assert client.get("/model").json()["model"] == 1
        assert client.get("/users/ann/recommendations").status_code == 200  # from the store


def test_a_version_left_by_a_kill_is_not_served_and_is_removed(learned, folder):
    """The service was killed before it removed the version that knows the user."""
    versions = folder / "m.pm.d"
    (versions / "000002.pm").write_bytes(learned[1])
    new = (versions / "000003.pm").read_bytes()
    (versions / "000003.pm").write_bytes(b"x")
    with client_in(folder) as client:
        assert (client.get("/model").json()["model"], client.get(ASKED).status_code) == (1, 404)
    (versions / "000003.pm").write_bytes(new)
    with client_in(folder) as client:
        assert client.get("/model").json()["model"] == 3
        wait_until(lambda: files_with_the_name(folder) == [])


@pytest.mark.parametrize("options", OPTIONS)
def test_a_refit_that_has_read_a_removed_user_is_served_without_the_user(tmp_path, options):
    """So deletes that come often do not keep refits from ending."""
    make_model(tmp_path / "m.pm", **options)
    with client_in(tmp_path) as client:
        for user in (NAME, "user 1", "ann"):
            assert client.post(f"/users/{user}/clicks", json=CLICKS).status_code == 200
        job = client.post("/refit").json()["job"]
        wait_until(lambda: client.get(f"/jobs/{job}").json()["how"] is not None)  # it has read
        for user in (NAME, "user 1"):
            assert client.delete(f"/users/{user}").status_code == 200
        assert wait_for_job(client, job)["state"] == "done"
        assert client.get(ASKED).status_code == 404
        assert client.get("/users/ann/recommendations").status_code == 200
        about = client.get("/model").json()
        assert (about["model"], about["n_users"]) == (2, 61)
        wait_until(lambda: files_with_the_name(tmp_path) == [])
        first, second = (pm.load(tmp_path / name) for name in ("m.pm", "m.pm.d/000002.pm"))
        assert second.users.tolist() == [*first.users.tolist(), "ann"]
        assert second.clicks.take(np.arange(60)).digest() == first.clicks.digest()
        refit(client)  # which has learned from nothing that was removed
        assert client.get("/model").json()["n_users"] == 61
    assert files_with_the_name(tmp_path) == []


def test_a_version_made_before_a_removal_is_served_without_the_user(tmp_path):
    """The user is removed after the refit has looked for removed users, before it is served."""
    first = make_model(tmp_path / "m.pm", method="pseudo")
    versions, store = Versions(tmp_path / "m.pm"), open_store(str(tmp_path / "s.sqlite"))
    store.add([(NAME, "item 1"), ("ann", "item 2")])
    with client_in(tmp_path) as client:
        made = refit_now(first, {"store": str(tmp_path / "s.sqlite")}, first.clicks)
        assert client.delete(f"/users/{NAME}").status_code == 200
        assert versions.save(made) == 2
        wait_until(lambda: client.get("/model").json()["model"] == 3)
        assert client.get(ASKED).status_code == 404
        assert client.get("/model").json()["n_users"] == 61
        wait_until(lambda: files_with_the_name(tmp_path) == [])
    store.close()


@pytest.mark.parametrize("small", [10**6, 0], ids=["here", "in a process"])
def test_an_upload_under_way_does_not_bring_a_removed_user_back(tmp_path, monkeypatch, small):
    """The user is removed while the file is read, and again while it is stored."""
    monkeypatch.setattr(uploads, "SMALL", small)
    monkeypatch.setattr(uploads, "CLEAN_SECONDS", 0.2)
    monkeypatch.setattr(uploads, "PART", 1)
    rows = "".join(f"{user},item {n % 12}\n" for n in range(36) for user in (NAME, f"user x{n}"))
    with client_in(tmp_path) as client:
        parts, done = (f"user,item\n{rows}".encode(), b"bob,item 2\n"), []

        def send():
            def body():
                yield parts[0]
                assert client.delete(f"/users/{NAME}").status_code == 404  # nothing stored yet
                yield parts[1]

            done.append(client.post("/upload?refit=false", content=body()).json())

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(30)
        assert done[0]["users"] == 38
        assert client.get(ASKED).status_code == 404
        assert client.get("/users/bob/recommendations").status_code == 200
        assert client.get("/uploads").json()["uploads"][0]["users"] == 37
        wait_until(lambda: files_with_the_name(tmp_path) == [])


def test_the_upload_of_another_service_is_given_up(address, tmp_path):
    """It cannot know that a user was removed; the client sends the file again."""
    with client_in(tmp_path, address) as client:
        store = client.app.service.store.blocking
        assert client.post(f"/users/{NAME}/clicks", json=CLICKS).status_code == 200
        upload = store.begin_upload(1, 1)
        store.add_part(upload, [(NAME, "item 3")])
        assert client.delete(f"/users/{NAME}").json()["clicks"] == 2
        with pytest.raises(Exception, match="given up, and nothing of it was stored"):
            store.finish_upload(upload)
        assert client.get("/healthz").status_code == 200
        assert client.get(ASKED).status_code == 404


def test_files_of_uploads_are_private_and_gone_after_a_kill(tmp_path):
    make_model(tmp_path / "m.pm")
    (tmp_path / "s.sqlite.uploads").mkdir()
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:
        head = b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(head + b"user,item\n" + f"{NAME},item 1\n".encode() * 1000)
            wait_until(lambda: [*tmp_path.glob("s.sqlite.uploads/*.csv")])
            wait_until(lambda: next(tmp_path.glob("s.sqlite.uploads/*.csv")).stat().st_size)
            with client_in(tmp_path):  # another service of the same store lets it be
                (file,) = tmp_path.glob("s.sqlite.uploads/*.csv")
            service.kill()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with client_in(tmp_path):
        assert files_with_the_name(tmp_path) == []


def test_what_the_service_writes_is_for_its_owner_alone(tmp_path):
    with client_in(tmp_path) as client:
        assert client.post("/users/ann/clicks", json=CLICKS).status_code == 200
        refit(client)
        for name in ("s.sqlite", "s.sqlite-wal", "s.sqlite-shm", "m.pm.d/000002.pm"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


def test_a_failed_refit_names_no_folder_of_the_server(tmp_path):
    with client_in(tmp_path) as client:
        assert client.post("/users/ann/clicks", json=CLICKS).status_code == 200
        (tmp_path / "m.pm.d").write_text("not a folder")
        for harm in (lambda: None, lambda: (tmp_path / "m.pm").write_bytes(b"x")):
            harm()
            job = wait_for_job(client, client.post("/refit").json()["job"])
            assert job["state"] == "failed"
            assert job["error"]
            assert str(tmp_path) not in job["error"]
