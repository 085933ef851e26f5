"""The figures of `tools/house.py`, on a house of three modules."""

import ast
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "house.py"
if not SCRIPT.exists():
    pytest.skip("not a checkout", allow_module_level=True)
house = SimpleNamespace(**runpy.run_path(str(SCRIPT)))

ROOF = '''"""On two lines,
of a docstring."""

from .walls import wall
from ..garden import tree

HEIGHT, WIDTH = 2.5, 10 * 2**3
COLOUR = "red"


def roof():
    """One line."""
    # a comment
    return wall(HEIGHT)  # a comment on a line of code
'''


def test_code_lines_are_without_docstrings_comments_and_blanks():
    assert house.code_lines(ROOF, ast.parse(ROOF)) == 6


def test_constants_are_the_numbers_under_names_in_capitals():
    assert house.constants(ast.parse(ROOF)) == 2


def test_imports_are_those_of_the_package_and_layers_the_longest_chain():
    texts = {
        "town": "from . import garden",
        "town.garden": "import numpy",
        "town.house": "from .roof import roof",
        "town.house.roof": ROOF,
        "town.house.walls": "def late():\n    from .roof import roof",
    }
    packages = ("town", "town.house")
    paths = {n: Path("__init__.py" if n in packages else f"{n}.py") for n in texts}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    graph = {name: house.imports(name, paths, trees) for name in texts}
    assert graph["town.house.roof"] == {"town.house.walls", "town.garden"}
    assert graph["town.house.walls"] == set()
    assert house.layers(graph) == 3


def test_private_attributes_are_counted_and_double_underscores_are_not():
    assert house.private_uses('x._y + x.z.__doc__\nmonkeypatch.setattr(x, "_w", 1)') == 2
    assert house.private_uses("self._y + state._replace(x=1)") == 0
