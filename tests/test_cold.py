"""A new installation: no kernel is compiled yet, and each command is a process of its own."""

import ast
from pathlib import Path

import pytest

import pseudomallows

KERNELS = sorted((Path(pseudomallows.__file__).parent / "kernels").glob("*.py"))


def generators_of(source):
    """Names of the compiled functions that yield."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [
        function.name
        for function in functions
        if any("njit" in ast.unparse(decorator) for decorator in function.decorator_list)
        and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    ]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_no_kernel_is_a_generator(path):
    """Numba cannot compile a new caller of a generator that it loaded from its cache."""
    assert generators_of(path.read_text()) == []


def test_a_generator_is_found():
    source = "@njit(cache=True)\ndef f(n):\n    for i in range(n):\n        yield i\n"
    assert generators_of(source) == ["f"]
