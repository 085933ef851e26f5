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
