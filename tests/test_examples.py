"""The notebooks of examples/: they are stored with their outputs, and run from top to bottom."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
PATHS = re.compile(r"[/\\\\](?:home|root|tmp|usr|opt|var|Users|site-packages)[/\\\\]")


def cells_of(path):
    """The cells with code."""
    cells = json.loads(path.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def kinds_of(cells):
    """What each cell shows: the kinds of its outputs, in order, but no bar, which only work of more
    than two seconds has."""
    return [
        [
            (output["output_type"], sorted(output.get("data", ())))
            for output in cell["outputs"]
            if not is_bar(output)
        ]
        for cell in cells
    ]


def is_bar(output):
    """A warning stands on standard error, too, but does not begin its line anew."""
    return output.get("name") == "stderr" and "".join(output["text"]).startswith("\r")


def words_of(cells):
    """All that the cells show, but not pictures."""
    for output in (output for cell in cells for output in cell["outputs"]):
        yield from output.get("text", ())
        for kind, lines in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield from lines


def test_there_is_a_survey_a_shop_and_the_paper():
    assert {"survey", "shop", "paper"} == set(NAMES)
    for page in ("README.md", "docs/index.md"):
        assert all(f"examples/{name}.ipynb" in (ROOT / page).read_text() for name in NAMES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_is_stored_as_it_ran_and_names_no_folder_of_a_machine(path):
    cells = cells_of(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert "image/png" in str(kinds_of(cells))
    for words in [*words_of(cells), json.dumps(json.loads(path.read_text())["metadata"])]:
        assert not PATHS.search(words), words
        assert str(ROOT) not in words


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_runs_and_shows_what_it_is_stored_with(path, tmp_path):
    why = "needs nbclient and ipykernel: pip install 'pseudomallows[notebooks]'"
    nbclient = pytest.importorskip("nbclient", reason=why)
    pytest.importorskip("ipykernel", reason=why)
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=place).execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(output.output_type != "error" for cell in ran for output in cell.outputs)
    assert kinds_of(ran) == kinds_of(cells_of(path))
    assert not list(tmp_path.iterdir())  # it leaves nothing behind


@pytest.mark.slow
def test_a_cell_that_fails_is_seen():
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        nbclient.NotebookClient(notebook, kernel_name="python3").execute()
