"""Writing: a file is there whole, or as it was before."""

import os

import pytest

from pseudomallows.data.atomic import check_target, is_stream, make_folder, write_whole


def test_a_file_appears_once_it_is_whole(tmp_path):
    target = tmp_path / "x"
    with write_whole(target) as stream:
        stream.write(b"half")
        assert not target.exists()
        stream.write(b" and half")
    assert target.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["x"]


def test_after_an_error_the_old_file_stays(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError), write_whole(target) as stream:  # noqa: PT012
        stream.write(b"half")
        raise RuntimeError
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "link").symlink_to("x")
    with write_whole(tmp_path / "link") as stream:
        stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"new"


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="it is a folder"):
        check_target(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_target(tmp_path / "none" / "x")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="it is a file, and must be a folder"):
        make_folder(tmp_path / "file")
    assert make_folder(tmp_path / "a" / "b").is_dir()


def test_devices_are_streams_and_files_are_not(tmp_path):
    (tmp_path / "file").touch()
    assert is_stream(os.devnull)
    assert not is_stream(tmp_path / "file")
    assert not is_stream(tmp_path / "none")
