"""The code blocks of each page run as one doctest, in a folder of its own."""

import pytest

import pseudomallows as pm
from hooks import NOT_YET

collect_ignore = ["conftest.py"]  # nothing to test, and tests/ has a module of this name


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def pytest_collection_modifyitems(items):
    """Leave out the pages that use what is to come."""
    missing = [f"pm.{name}(" for name in NOT_YET if not hasattr(pm, name)]
    for item in items:
        if item.path.suffix == ".md" and item.path.is_relative_to(item.config.rootpath / "docs"):
            page = item.path.read_text()
            for name in missing:
                if name in page:
                    item.add_marker(pytest.mark.skip(reason=f"no {name}) yet"))
