"""The code blocks of each page run as one doctest, in a folder of its own."""

import pytest

collect_ignore = ["conftest.py"]  # nothing to test, and tests/ has a module of this name


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
