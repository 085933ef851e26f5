"""Numbered versions of a model."""

import logging
import threading

import pseudomallows as pm
from pseudomallows.web.models.versions import Versions
from webhelp import client_in, make_model


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
    with caplog.at_level(logging.WARNING, "pseudomallows"), client_in(tmp_path) as client:
        assert client.get("/model").json()["model"] == 3
    assert "version 5 is skipped" in caplog.text
    assert "version 4 is skipped" in caplog.text
    assert versions.save(pm.load(tmp_path / "m.pm")) == 6


def test_two_processes_never_take_the_same_number(tmp_path):
    make_model(tmp_path / "m.pm")
    posterior, numbers = pm.load(tmp_path / "m.pm"), []

    def save():
        numbers.append(Versions(tmp_path / "m.pm").save(posterior))

    threads = [threading.Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(2, 10))
