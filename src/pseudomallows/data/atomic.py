"""Writing: whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

PRIVATE = partial(os.open, mode=0o600)


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file beside `path` that takes its place once all is written.

    A device, a pipe or an open file such as /dev/stdout is written to directly: it must stay what
    it is. Of a symbolic link, the file it leads to is replaced, and the link stays.
    """
    target = check_target(path)
    if is_stream(target):
        descriptor = _open_file(target)
        with (
            _named_if_full(target),
            open(target if descriptor is None else os.dup(descriptor), "wb") as stream,
        ):
            yield stream
        return
    target = Path(os.path.realpath(target))
    name = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:  # the name is known before the file is there, so that a signal leaves none behind
        with _named_if_full(target), open(name, "xb", opener=PRIVATE) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


@contextmanager
def _named_if_full(target: Path) -> Iterator[None]:
    """Name the file for which there is no room: the system does not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(error.errno, error.strerror, str(target)) from None
        raise


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is no file of its own: a device, a pipe, /dev/stdout."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) or _open_file(path) is not None


def _open_file(path: str | os.PathLike[str]) -> int | None:
    """The number of the open file of this process that a path such as /dev/stdout stands for."""
    place = os.path.abspath(path)
    for _ in range(40):  # links
        folder, name = os.path.split(place)
        if name.isdecimal() and os.path.realpath(folder) == os.path.realpath("/dev/fd"):
            return int(name)
        if not os.path.islink(place):
            break
        place = os.path.join(folder, os.readlink(place))
    return None


def check_path(path: Any, name: str = "path") -> Path:
    """The path, or say what is wrong with it."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path):
        raise TypeError(f"{name} must be the path of a file, got {path!r}")
    return Path(path)


def check_target(path: str | os.PathLike[str], name: str = "path") -> Path:
    """The path, or an error if no file can be written there: before work, not after it."""
    target = check_path(path, name)
    folder = Path(os.path.realpath(target)).parent if target.is_symlink() else target.parent
    if target.is_dir() or not folder.is_dir():
        what = "it is a folder" if target.is_dir() else f"there is no folder {folder}"
        raise FileNotFoundError(f"cannot write {target}: {what}")
    return target


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made if it is not there."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write into {folder}: it is a file, and must be a folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
