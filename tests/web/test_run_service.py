"""The service as people run it: options, the token, the process."""

import json
import os
import resource
import signal
import subprocess
import sys

import pseudomallows as pm
from pseudomallows import cli
from pseudomallows.web import run_service as run
from pseudomallows.web.run_service import find_token
from webhelp import TOKEN, Process, recommend_bytes, talk


def test_a_public_address_needs_a_token(model, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("PSEUDOMALLOWS_TOKEN", raising=False)
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert cli.main(["serve", str(model), "--host", "0.0.0.0", *store]) == 1
    assert "a token is needed" in capsys.readouterr().err
    (tmp_path / "token").write_text("short")
    assert cli.main(["serve", str(model), "--token-file", str(tmp_path / "token"), *store]) == 1
    assert "16 or more" in capsys.readouterr().err
    assert cli.main(["serve", str(model), "--refit-every", "0", *store]) == 1
    assert cli.main(["serve", str(tmp_path / "none.pm"), *store]) == 1
    assert not (tmp_path / "s.sqlite").exists()


def test_where_the_token_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PSEUDOMALLOWS_TOKEN", TOKEN)
    assert find_token(None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN} 2\n")
    assert find_token(str(tmp_path / "token")) == f"{TOKEN} 2"
    monkeypatch.delenv("PSEUDOMALLOWS_TOKEN")
    assert find_token(None) is None


def test_proxies_are_addresses(model, tmp_path, capsys):
    for wrong in ("*", "proxy.example", "10.0.0.0/33", ""):
        words = ["serve", str(model), "--store", str(tmp_path / "s"), "--trusted-proxies", wrong]
        assert cli.main(words) == 1
        assert "--trusted-proxies must be addresses" in capsys.readouterr().err
    assert cli.main([*words[:4], "--max-connections-per-client", "0"]) == 1
    assert "must be 1 or more" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_few_files_mean_few_connections(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 700))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    assert run.room_for_connections() == 450
    assert asked == [(700, 700)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4096, 4096))
    assert run.room_for_connections() == 1000
    assert len(asked) == 1


# As a process


def test_ctrl_c_is_a_clean_end(model, tmp_path):
    with Process(model, tmp_path / "s.sqlite", env={"PSEUDOMALLOWS_TOKEN": TOKEN}) as service:
        assert service.ask("/refit", {})[0] == 401
        status, _ = service.ask(
            "/users/a/clicks", {"clicks": ["item 1"]}, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        assert status == 200
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(timeout=20) == 130
        assert "Traceback" not in service.log.read_text()
        assert TOKEN not in service.log.read_text()
        assert "open http://" in service.log.read_text()
    assert os.path.exists(tmp_path / "s.sqlite")


def test_a_port_in_use_is_one_clear_line(client, model, tmp_path):
    words = ["serve", str(model), "--port", str(client.port), "--store", str(tmp_path / "s")]
    done = subprocess.run(
        [sys.executable, "-m", "pseudomallows", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"port {client.port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_without_web_libraries_says_what_to_install(model, tmp_path):
    text = (
        "import sys; sys.modules['uvicorn'] = None; from pseudomallows.cli import main; "
        f"sys.exit(main(['serve', {str(model)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'pseudomallows[web]'" in done.stderr


def test_the_answers_of_a_process_are_those_of_the_library(model, tmp_path):
    posterior = pm.load(model)
    with Process(model, tmp_path / "s.sqlite", "--rate", "1000") as service:
        said = talk(service.port, recommend_bytes(b'{"clicks":["item 1","item 4"],"k":5}'))
        answer = json.loads(said.partition(b"\r\n\r\n")[2])
        expected = pm.recommend(posterior, 5, clicks={"x": ["item 1", "item 4"]}).to_rows()
        assert [(r["item"], repr(r["probability"])) for r in answer["recommendations"]] == [
            (r["item"], repr(r["probability"])) for r in expected
        ]
