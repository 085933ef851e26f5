import pytest

from pseudomallows._start import forget_stale


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner" / "__pycache__").mkdir(parents=True)
    (tmp_path / "one.py").write_text("x = 1")
    (tmp_path / "inner" / "two.py").write_text("y = 2")
    forget_stale(tmp_path)
    for name in ("two.f.nbi", "two.f.1.nbc", "two.pyc"):
        (tmp_path / "inner" / "__pycache__" / name).write_text("kept")
    return tmp_path


def kept(folder):
    return sorted(path.name for path in (folder / "inner" / "__pycache__").iterdir())


def test_kernels_are_kept_while_their_sources_are_as_they_were(folder):
    forget_stale(folder)
    assert kept(folder) == ["two.f.1.nbc", "two.f.nbi", "two.pyc"]


@pytest.mark.parametrize("change", ["edit", "add", "remove", "rename"])
def test_after_any_change_of_a_source_all_are_compiled_again(folder, change):
    one = folder / "one.py"
    if change == "edit":
        one.write_text("x = 2")
    elif change == "add":
        (folder / "three.py").write_text("")
    elif change == "remove":
        one.unlink()
    else:
        one.rename(folder / "uno.py")
    forget_stale(folder)
    assert kept(folder) == ["two.pyc"]


def test_a_mark_that_cannot_be_read_is_no_trouble(folder):
    mark = folder / "__pycache__" / "sources.crc"
    mark.unlink()
    mark.mkdir()
    forget_stale(folder)
    assert kept(folder) == ["two.f.1.nbc", "two.f.nbi", "two.pyc"]
