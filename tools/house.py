"""How large the house is: lines, modules, layers of imports, what a default fit walks through.

    python tools/house.py [--against OTHER_CHECKOUT] [--ci SECONDS ...]

Prints one row a figure for the tree that this script stands in, and with `--against` a column for
the other checkout before it. Figures to steer by, not limits: denser code would meet them too.
"""

import argparse
import ast
import collections
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Runs in a process of its own, without compilation, so that each kernel is a function like others.
RUN = """
import dataclasses, inspect, json, sys, threading, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
import pseudomallows as pm
ROOT = str(Path(pm.__file__).parent)

def walk(prefs):
    seen = set()
    def look(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name[0] != "<":
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))
    sys.setprofile(look)
    threading.setprofile(look)
    pm.fit(prefs, rng=1, progress=False)
    sys.setprofile(None)
    threading.setprofile(None)
    return [len(seen), len({file for file, _, _ in seen})]

rankings = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]] * 4)
figures = {
    "clicks": walk(pm.simulate_clicks(60, 8, 4, 3, rng=1).preferences),
    "rankings": walk(pm.Preferences.from_rankings(rankings)),
    "public": len(pm.__all__),
}
kinds = inspect.Parameter.VAR_KEYWORD
options = {name for name, p in inspect.signature(pm.fit).parameters.items() if p.kind != kinds}
for name, module in list(sys.modules.items()):
    if name.startswith("pseudomallows"):
        for each in vars(module).values():
            if isinstance(each, type) and dataclasses.is_dataclass(each):
                options |= {f.name for f in dataclasses.fields(each) if "words" in f.metadata}
print(json.dumps(figures | {"options": len(options)}))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="a tree of before")
    words = "seconds of CI; with --against: before, after"
    parser.add_argument("--ci", type=float, nargs="+", metavar="SECONDS", help=words)
    args = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    trees = [here] if args.against is None else [args.against.resolve(), here]
    columns = [measure(tree) for tree in trees]
    for column, seconds in zip(columns, args.ci or [], strict=bool(args.ci)):
        column["seconds of CI"] = seconds
    heads = ["", "here"] if args.against is None else ["", "before", "after"]
    rows = [[name, *(_text(column[name]) for column in columns)] for name in columns[0]]
    width = max(len(row[0]) for row in rows)
    for name, *figures in [heads, *rows]:
        print(name.ljust(width), *(figure.rjust(14) for figure in figures))


def _text(figure: float | str) -> str:
    """As it is printed."""
    return figure if isinstance(figure, str) else f"{figure:,g}" if figure % 1 else f"{figure:,.0f}"


def measure(tree: Path) -> dict[str, float | str]:
    """{what: figure} of a checkout."""
    modules = {_dotted(path, tree): path for path in sorted((tree / "src").rglob("*.py"))}
    texts = {name: path.read_text() for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    tests = [path.read_text() for path in (tree / "tests").rglob("*.py")]
    files = collections.Counter(p.name for p in modules.values() if p.name != "__init__.py")
    classes = collections.Counter(
        node.name for t in trees.values() for node in ast.walk(t) if isinstance(node, ast.ClassDef)
    )
    run = _run(tree)
    return {
        "lines": sum(text.count("\n") for text in texts.values()),
        "code lines (no docstrings, comments, blanks)": sum(
            code_lines(text, trees[name]) for name, text in texts.items()
        ),
        "modules": len(modules),
        "layers of imports": layers({name: imports(name, modules, trees) for name in modules}),
        "functions in a default fit of clicks": run["clicks"][0],
        "files in a default fit of clicks": run["clicks"][1],
        "functions in a default fit of rankings": run["rankings"][0],
        "files in a default fit of rankings": run["rankings"][1],
        "numeric constants of modules": sum(constants(t) for t in trees.values()),
        "public names": run["public"],
        "options of fit": run["options"],
        "file names that stand for two or more": sum(n > 1 for n in files.values()),
        "class names that stand for two or more": sum(n > 1 for n in classes.values()),
        "pairs of repeated code": _duplicates(tree),
        "lines of tests": sum(text.count("\n") for text in tests),
        "uses of private attributes in tests": sum(private_uses(text) for text in tests),
        "seconds of CI": "not measured",
    }


def _dotted(path: Path, tree: Path) -> str:
    """The name of a module; that of its folder for an `__init__`."""
    name = ".".join(path.relative_to(tree / "src").with_suffix("").parts)
    return name.removesuffix(".__init__")


def code_lines(text: str, tree: ast.Module) -> int:
    """Lines that are not blank, a comment or part of a docstring."""
    lines = text.splitlines()
    skipped = {n for n, line in enumerate(lines, 1) if not line.strip() or line.strip()[0] == "#"}
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            skipped |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines) - len(skipped)


def imports(name: str, modules: dict[str, Path], trees: dict[str, ast.Module]) -> set[str]:
    """The modules of the package that a module imports at its top level."""
    is_package = modules[name].name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    imported = set()
    for node in trees[name].body:
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package.split(".")[: package.count(".") + 2 - node.level]
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            imported |= {each if each in modules else base for each in names}
    # a package that a module stands in is imported before it, whoever asks: no layer of its own
    return {each for each in imported if each in modules and not f"{name}.".startswith(f"{each}.")}


def layers(graph: dict[str, set[str]]) -> int:
    """The longest chain of eager imports."""

    @functools.cache
    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in graph[name]), default=0)

    return max((depth(name) for name in graph if "." in name), default=0)


def constants(tree: ast.Module) -> int:
    """Numbers under a name in capitals at the top level of a module."""
    n = 0
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Tuple):
            target = node.targets[0]
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            if isinstance(first, ast.Name) and first.id.strip("_").isupper():
                n += sum(_is_number(value) for value in values)
    return n


def _is_number(node: ast.expr) -> bool:
    """Is it a number, or a sum, a product or a power of numbers?"""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def private_uses(text: str) -> int:
    """How often a test reaches for `x._y`, or patches a name that begins so; not what a test class
    keeps to itself, nor what named tuples, Jupyter and `os` call so for all to use."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)]
    nodes = [n for n in nodes if not (isinstance(n.value, ast.Name) and n.value.id == "self")]
    is_private = re.compile(r"_(?!_|replace$|repr_html_$|exit$)").match
    patched = re.findall(r"setattr\(.*\"_[^_]", text)
    return sum(bool(is_private(n.attr)) for n in nodes) + len(patched)


def _duplicates(tree: Path) -> float | str:
    """Pairs of places in the source that repeat each other, if the command is there."""
    if shutil.which("duplicates") is None:
        return "not measured"
    command = ["duplicates", "--repo", str(tree / "src"), "--most", "1", "--seconds", "300"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count = re.search(r"([\d,]+) pairs?\b", answer)
    return float(count[1].replace(",", "")) if count else 0.0


def _run(tree: Path) -> dict[str, list[int]]:
    """What only a running package says."""
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
