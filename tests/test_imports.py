"""The direction of imports, and what `import pseudomallows` may bring with it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pseudomallows

ROOT = Path(pseudomallows.__file__).parent
DOORS = {"cli", "__main__"}
OPTIONAL = {  # library: who may import it
    "matplotlib": {"plots", "cli"},
    "arviz": {"posterior"},
    "pandas": {"frames"},
    "pyarrow": {"arrow"},
    "starlette": {"app", "guard", "openapi"},
    "uvicorn": {"connections", "serve"},
    "msgspec": {"app", "openapi", "served", "types"},
    "psycopg": {"postgres"},
    "distributed": {"engine"},
}
HEAVY = {
    "matplotlib",
    "polars",
    "pandas",
    "dask",
    "distributed",
    "starlette",
    "uvicorn",
    "msgspec",
    "psycopg",
    "arviz",
    "pyarrow",
    "rich",
}
FILES = sorted(ROOT.rglob("*.py"))


def imported(path, top_level_only=False):
    """(own modules, outside libraries) that a file imports."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    own, outside = set(), set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            own |= {node.module.split(".")[0]} if node.module else {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            outside.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
    return own, outside


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parent.name == "kernels"], ids=lambda p: p.name
)
def test_kernels_import_numpy_numba_and_each_other_only(path):
    tree = ast.parse(path.read_text())
    levels = {node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert levels <= {0, 1}
    assert imported(path)[1] <= {"numpy", "numba"}


@pytest.mark.parametrize("path", [p for p in FILES if p.parent == ROOT], ids=lambda p: p.name)
def test_public_modules_do_not_import_the_doors(path):
    if path.stem not in DOORS:
        assert not imported(path)[0] & DOORS


def test_imports_have_no_circle():
    graph = {p.stem: imported(p, top_level_only=True)[0] for p in FILES if p.parent == ROOT}
    done = {"kernels"}
    while graph:
        ready = [name for name, needs in graph.items() if needs <= done]
        assert ready, f"a circle among {sorted(graph)}"
        done |= set(ready)
        for name in ready:
            del graph[name]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_only_the_command_imports_the_service(path):
    if path.parent == ROOT and path.stem != "commands":
        assert "web" not in imported(path)[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_an_optional_library_is_imported_where_it_is_needed_only(path):
    for library, modules in OPTIONAL.items():
        if library in imported(path)[1]:
            assert path.stem in modules


def test_import_is_light():
    script = "import pseudomallows, sys; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} & HEAVY


def test_every_public_name_is_there_and_documented():
    for name in pseudomallows.__all__:
        assert getattr(pseudomallows, name) is not None
        if not name.startswith("__"):
            assert getattr(pseudomallows, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pseudomallows.nothing  # noqa: B018
