"""The pages: their commands run, their reference is whole, and nothing comes from outside.

Their Python code runs too, as doctests: see docs/conftest.py.
"""

import os
import re
import shlex
import subprocess
import sys
from argparse import _SubParsersAction
from pathlib import Path

import pytest

import pseudomallows as pm
from pseudomallows.cli import main, make_parser

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']?(?:https?:|//)""")


def commands_of(page):
    """The command lines of a page's console blocks, in order; a line may go on after a backslash.

    The lines that start with `$ ` are commands; the others are what they print.
    """
    blocks = CONSOLE.findall((DOCS / page).read_text())
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip().removeprefix("$ ") for line in lines if line.strip().startswith("$ ")]


def known_commands():
    """Commands of the program."""
    actions = make_parser()._actions
    (commands,) = (action for action in actions if isinstance(action, _SubParsersAction))
    return set(commands.choices)


def run(line):
    """The exit code of a command line, without a new process, which would take a second."""
    program, *words = shlex.split(line)
    assert program == "pseudomallows", f"a console block is for our command, got {line!r}"
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)])
def test_the_commands_of_a_page_run_in_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line in commands_of(page):
        assert run(line) == 0, f"{line}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("words", ["consensus none.pm", "demo --seed none", "strange"])
def test_a_command_that_fails_is_seen(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(f"pseudomallows {words}") != 0


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^::: pm\.(\w+)", pages, re.MULTILINE))
    assert set(pm.__all__) - {"__version__"} <= listed


def test_every_warning_is_explained():
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    known = {name for text in sources for name in re.findall(r"^class (\w+Warning)\(", text, re.M)}
    explained = re.findall(r"^### (\w+)$", (DOCS / "warnings.md").read_text(), re.MULTILINE)
    assert known - {"FitWarning"} == set(explained)  # which all of them are


def test_every_page_has_one_title():
    for page in PAGES:
        text = CONSOLE.sub("", (DOCS / page).read_text())
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages, built as `make docs` builds them."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_built_page_loads_nothing_from_outside(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)  # and one for what is not found
    for path in pages:
        assert not LOADED.search(path.read_text()), path


def test_search_needs_no_server(site):
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = ")
    page = (site / "start" / "clicks.html").read_text()
    assert '<script src="../assets/iframe-worker.js">' in page


def test_a_click_on_a_picture_shows_it_large(site):
    page = (site / "paper" / "medians.html").read_text()
    assert '<script src="../assets/zoom.js">' in page
    assert (site / "assets" / "zoom.js").is_file()


def test_formulas_and_commands_reach_the_built_pages(site):
    model = (site / "model" / "mallows.html").read_text()
    assert model.count("<math") > 10
    assert "$$" not in model
    commands = (site / "reference" / "commands.html").read_text()
    for name in known_commands():
        assert f"pseudomallows {name}" in commands, name


def test_an_unknown_formula_is_refused():
    sys.path.insert(0, str(DOCS))
    import hooks

    with pytest.raises(ValueError, match="strange"):
        hooks.formula(r"\strange x")


def test_calibration_figures_of_real_data_stand_in_one_place():
    """A page that states one has it from the page of measurements, or it will contradict it."""
    stated = re.compile(r"(?:calibration error|ECE)[^.|\n]*?(0\.\d+)")
    measured = (DOCS / "measurements.md").read_text()
    for page in [ROOT / "README.md", *(DOCS / name for name in PAGES)]:
        if page.name == "measurements.md" or page.parent.name == "paper":
            continue
        for line in page.read_text().splitlines():
            for figure in stated.findall("" if line.startswith("Evaluation(") else line):
                assert figure in measured, f"{page.name}: {line}"
