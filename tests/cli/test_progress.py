"""The bar of long work."""

import io
import os
import pty
import subprocess

import pytest

from clihelp import command, run
from pseudomallows.cli.progress import show_progress


def test_a_terminal_sees_a_bar(here):
    pytest.importorskip("rich")
    assert run("simulate", "clicks", "--users", 200, "--out", "c.csv", "--seed", 1) == 0
    mine, its = pty.openpty()
    arguments = command("fit", "c.csv", "--out", "m.pm", "--seed", 1)
    with subprocess.Popen(arguments, stderr=its, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
    os.close(mine)
    assert process.returncode == 0
    assert b"fitting" in said
    assert b"%" in said


def test_a_pipe_sees_none(capsys):
    with show_progress("fitting") as progress:
        assert progress is None
    assert capsys.readouterr().err == ""


def test_the_bar_knows_how_far_it_is(monkeypatch):
    pytest.importorskip("rich")
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress("fitting") as progress:
        progress(1, 4)
        progress(3, 4)
    assert "fitting" in terminal.getvalue()
    assert "75%" in terminal.getvalue()
    with show_progress("fitting", quiet=True) as progress:
        assert progress is None
