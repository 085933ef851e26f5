"""The code blocks of each page run as one doctest, in a folder of its own."""

import operator
import re

import pytest

import pseudomallows as pm


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def pytest_collection_modifyitems(items):
    """Leave out pages that use what the package does not have yet."""
    for item in items:
        if item.path.suffix == ".md" and item.path.is_relative_to(item.config.rootpath / "docs"):
            missing = [name for name in _used(item.path.read_text()) if not _is_there(name)]
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"no pm.{missing[0]} yet"))


def _used(page):
    """Names of the package that the code of a page calls."""
    code = re.findall(r"^(?:>>>|\.\.\.) .*$", page, re.MULTILINE)
    return re.findall(r"\bpm\.((?:datasets\.)?\w+)\(", "\n".join(code))


def _is_there(name):
    try:
        operator.attrgetter(name)(pm)
    except AttributeError:
        return False
    return True
