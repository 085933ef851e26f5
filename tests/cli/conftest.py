"""Files for the commands to read, made once."""

import shutil

import pytest

from clihelp import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Clicks and a model of them, made once by the command."""
    folder = tmp_path_factory.mktemp("made")
    simulated = ["--users", 60, "--items", 8, "--out", folder / "c.csv", "--seed", 1]
    assert run("simulate", "clicks", *simulated) == 0
    fitted = ["--out", folder / "m.pm", "--method", "mcmc", "--alpha", 5, "--seed", 1]
    assert run("fit", folder / "c.csv", *fitted) == 0
    return folder


@pytest.fixture
def clicks(made, here):
    """Clicks in the folder to work in."""
    shutil.copy(made / "c.csv", here)
    return "c.csv"


@pytest.fixture
def model(made, clicks):
    """A model in the folder to work in, and its clicks."""
    shutil.copy(made / "m.pm", ".")
    return "m.pm"
