"""The wheel and the source archive install into an empty environment, and work there."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pseudomallows as pm

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
SMOKE = """
import pathlib, sys
import pseudomallows as pm
assert pathlib.Path(pm.__file__).is_relative_to(sys.prefix), pm.__file__
prefs = pm.Preferences.from_orderings([["tea", "rum", "ale"], ["tea", "ale", "rum"]] * 9)
posterior = pm.fit(prefs, "mcmc", n_draws=200, rng=1)
assert posterior.point_consensus(names=True)[0] == "tea"
assert pm.datasets.online_retail(n_items=20).n_items == 20
pm.report(posterior, "report.html")
"""


def run(*words, cwd=None, **settings):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    how = {"cwd": cwd, "env": environment | settings, "capture_output": True, "text": True}
    done = subprocess.run([str(word) for word in words], **how)
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    return done.stdout


def find_python(version):
    """A Python of this version that runs, or a skip."""
    found = [shutil.which(f"python{version}")]
    found += sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for path in filter(None, [sys.executable, *found]):
        words = [str(path), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == version:
            return path
    pytest.skip(f"there is no Python {version} here")


def make_environment(folder, python):
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def test_changelog_and_citation_are_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"^## (\S+) \((\d.+)\)$", changelog, re.MULTILINE).groups()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version == pm.__version__
    assert f"\nversion: {version}\ndate-released: {date}\n" in citation


def test_other_files_are_of_this_version_too():
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    assert zenodo["version"] == pm.__version__
    assert f'version = "{pm.__version__}"' in recipe
    needs = re.search(r"run: \[(.+)\]", recipe).group(1).replace(" >=", ">=").split(", ")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert needs == [f"python{project['requires-python']}", *project["dependencies"]]


def test_the_image_of_the_service_runs_as_a_user_and_says_whether_it_is_well():
    """By its lines, as there is no builder here."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    words = {line.split()[0]: line for line in lines if line[:1].isalpha()}
    assert words["USER"] != "USER root"
    assert "/healthz" in words["HEALTHCHECK"]
    assert '"serve"' in words["ENTRYPOINT"]
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    shown = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert all((ROOT / name).exists() and f"!{name}" in shown for name in copied)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the archive."""
    folder = tmp_path_factory.mktemp("built")
    python = make_environment(folder / "tools", sys.executable)
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    return folder / "dist"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"), [("*.tar.gz", "3.11"), *(("*.whl", version) for version in PYTHONS)]
)
def test_it_installs_and_works_in_an_empty_environment(kind, version, built, tmp_path):
    python = make_environment(tmp_path / "empty", find_python(version))
    (archive,) = built.glob(kind)
    run(python, "-m", "pip", "install", "--quiet", f"{archive}[cli,report]")
    run(python, "-W", "error::SyntaxWarning", "-c", SMOKE, cwd=tmp_path)
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    command = python.parent / "pseudomallows"
    words = ("simulate", "clicks", "--users", 60, "--items", 8, "--out", "c.csv", "--seed", 1)
    quick = {"NUMBA_DISABLE_JIT": "1"}  # so few clicks are not worth compiling for
    run(command, *words, cwd=tmp_path, **quick)
    words = ("--method", "personal", "--out", "m.pm", "--seed", 1)
    run(command, "fit", "c.csv", *words, cwd=tmp_path, **quick)
    assert run(command, "recommend", "m.pm", "--k", 2, cwd=tmp_path, **quick).count("\n") > 60


@pytest.mark.slow
def test_the_archive_has_what_the_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    names = run("tar", "tzf", archive)
    for wanted in (
        "tests/naive.py",
        "Makefile",
        "constraints.txt",
        "CITATION.cff",
        "docs/index.md",
        "examples/shop.ipynb",
    ):
        assert f"/{wanted}\n" in names
    assert "__pycache__" not in names
