"""Kernels take what belongs together as one NamedTuple."""

import ast
from pathlib import Path

import pytest

import pseudomallows as pm

KERNELS = sorted((Path(pm.__file__).parent / "kernels").rglob("*.py"))
MOST = 7  # arguments that one can still tell apart by their places


def long_signatures(source):
    """Names of the functions with too many arguments."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [function.name for function in functions if len(function.args.args) > MOST]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_kernel_has_more_than_seven_arguments(path):
    assert long_signatures(path.read_text()) == []


def test_a_kernel_with_eight_arguments_is_found():
    source = "def few(a, b, c, d, e, f, g): pass\n\ndef many(a, b, c, d, e, f, g, h): pass\n"
    assert long_signatures(source) == ["many"]


# A kernel that returns a NamedTuple to Python runs the class there, where Ctrl-C may come: a crash.


def named_results(sources):
    """Names of the kernels that return a NamedTuple."""
    trees = [ast.parse(source) for source in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    found = set()
    for function in nodes:
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            results = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            calls = [each.func for each in results if isinstance(each, ast.Call)]
            if any(isinstance(call, ast.Name) and call.id in classes for call in calls):
                found.add(function.name)
    return found


def names_in(source):
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def test_no_kernel_returns_a_named_tuple_to_python():
    named = named_results([path.read_text() for path in KERNELS])
    assert "recursion_at" in named  # which kernels call
    package = Path(pm.__file__).parent
    others = [path for path in package.rglob("*.py") if "kernels" not in path.parts]
    assert not [
        (path.stem, names_in(path.read_text()) & named)
        for path in others
        if names_in(path.read_text()) & named
    ]


def test_a_kernel_that_returns_a_named_tuple_is_found():
    source = "class Pair(NamedTuple):\n    one: int\n\n@compiled\ndef make():\n    return Pair(1)\n"
    assert named_results([source]) == {"make"}
