"""The direction of imports, and what `import pseudomallows` may bring with it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pseudomallows

ROOT = Path(pseudomallows.__file__).parent
ROOMS = (  # a room imports rooms above it, and `kernels`
    "_start",
    "_version",
    "_warn",
    "markup",
    "rankings",
    "scores",
    "engines",
    "distances",
    "data",
    "laws",
    "posterior",
    "paper",
    "personal",
    "recommendations",
    "sampling",
    "evaluation",
    "adapters",
    "sklearn",
    "show",
    "plots",
    "web",
    "cli",
    "__main__",
)
DOORS = ("adapters", "show", "web", "cli")  # they import no kernels
OPTIONAL = {  # library: the modules that import it
    "arviz": {"posterior.posterior"},
    "distributed": {"engines.dask"},
    "fastexcel": {"data.sheets"},
    "httptools": {"web.connections"},
    "jinja2": {"show.page"},
    "lenskit": {"adapters.lenskit"},
    "matplotlib": {"plots"},
    "msgspec": {
        "web.app",
        "web.endpoints",
        "web.handlers",
        "web.openapi",
        "web.types",
        "web.stores.store",
    },
    "pydantic": {"adapters.lenskit"},
    "psycopg": {"web.stores.postgres"},
    "pyarrow": {
        "data.parquet",
        "data.write",
    },
    "shtab": {"cli.__init__"},
    "sklearn": {"sklearn"},
    "starlette": {"web.app", "web.endpoints", "web.guard", "web.handlers"},
    "xlsxwriter": {"data.write"},
    "uvicorn": {"web.connections", "web.run_service"},
}
HEAVY = {*OPTIONAL, "modin", "pandas", "dask", "narwhals", "polars"}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")
}


def is_module(name):
    return name in MODULES or f"{name}.__init__" in MODULES


def imported(module, top_level_only=False):
    """(own modules, outside libraries) that a module imports."""
    tree = ast.parse(MODULES[module].read_text())
    own, outside = set(), set()
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = module.split(".")[: -node.level]
            base = [*package, *(node.module.split(".") if node.module else [])]
            named = {".".join([*base, alias.name]) for alias in node.names}
            own |= {name if is_module(name) else ".".join(base) for name in named}
        elif isinstance(node, ast.ImportFrom):
            outside.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
    return own, outside


def room(module):
    return module.split(".")[0]


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"__init__"}))
def test_a_room_imports_rooms_above_it_only(module):
    mine, others = room(module), {room(other) for other in imported(module)[0]} - {"__init__"}
    if mine == "kernels":
        assert others <= {"kernels"}
        assert imported(module)[1] <= {"math", "numpy", "numba", "typing"}
    else:
        above = {*ROOMS[: ROOMS.index(mine) + 1], *(() if mine in DOORS else ("kernels",))}
        assert others <= above


def test_the_room_of_the_paper_stands_apart():
    """It is one method among others, and a way to estimate alpha: the trunk knows nothing of it."""
    inside = {module for module in MODULES if room(module) == "paper"}
    others = set(MODULES) - inside
    importers = {each for each in others if "paper" in {room(other) for other in imported(each)[0]}}
    assert importers == {
        "__init__",
        "sampling.alpha",
        "sampling.fit",
    }


def test_imports_have_no_circle():
    graph = {module: imported(module, top_level_only=True)[0] & set(MODULES) for module in MODULES}
    done = set()
    while graph:
        ready = {name for name, needs in graph.items() if needs - {name} <= done}
        assert ready, f"a circle among {sorted(graph)}"
        done |= ready
        graph = {name: needs for name, needs in graph.items() if name not in ready}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_an_optional_library_is_imported_where_it_is_needed_only(module):
    for library in imported(module)[1] & set(OPTIONAL):
        assert module in OPTIONAL[library]


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


def test_public_modules_can_be_imported_from():
    names = ("datasets", "diagnostics", "plots", "scores")
    script = "import pseudomallows as pm\n"
    script += "".join(f"import pseudomallows.{n} as {n}; assert {n} is pm.{n}\n" for n in names)
    subprocess.run([sys.executable, "-c", script], check=True)
