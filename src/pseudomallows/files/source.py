"""Where the bytes come from: a file, packed or not, a folder, a pipe or standard input."""

import gzip
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from ..preferences.inputs.layout import USUAL, Layout

HEAD = 1 << 16  # bytes that tell the format of a file
PACKERS = {rb"BZh[1-9]1AY&SY": "bzip2", rb"\xfd7zXZ": "xz", rb"\x28\xb5/\xfd": "Zstandard"}
ZIP, GZIP, PARQUET = b"PK\x03\x04", b"\x1f\x8b", b"PAR1"  # how such files begin
DAMAGED = "this is a damaged model file, cut short maybe: save the model again"


@dataclass(frozen=True)
class Source:
    """A file to read from, or a folder, with the name for errors and the ending of its format.

    What can be read once only, such as standard input, is `held`, and has no path.
    """

    name: str
    ending: str
    path: Path | None
    held: bytes = b""
    is_packed: bool = False
    head: bytes = b""  # the first bytes, unpacked
    items: list[Any] | None = None  # that are wanted, in this order
    may_be_one_item: bool = False
    layout: Layout = USUAL
    notes: list[str] = field(default_factory=list)  # what was done with the file, for people

    def error(self, line: int | None, problem: str, column: str | None = None) -> ValueError:
        """An error that says where."""
        where = f"{self.name}" if line is None else f"{self.name}, line {line}"
        where += "" if column is None else f", column {column!r}"
        return ValueError(f"{where}: {problem}")

    def names(self, names: list[str], line: int | None = 1) -> list[str]:
        """The names of the columns of a table, those that the caller has named by what they are."""
        try:
            return [str(name) for name in self.layout.names(names)]
        except ValueError as error:
            raise self.error(line, str(error)) from None

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes as a stream, unpacked."""
        stream = io.BytesIO(self.held) if self.path is None else self.path.open("rb")
        with stream:
            if not self.is_packed:
                yield stream
                return
            try:
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield unpacked  # type: ignore[misc]
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise self.error(None, f"this gzip file is broken: {error}") from None

    @property
    def content(self) -> bytes:
        """All bytes, unpacked."""
        with self.open() as stream:
            return stream.read()

    @property
    def size(self) -> int:
        """How many bytes there are, packed or not."""
        return len(self.held) if self.path is None else self.path.stat().st_size

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing, or some spaces only."""
        is_folder = self.path is not None and self.path.is_dir()
        return not is_folder and len(self.head) < HEAD and not self.head.strip()


def open_source(path: str | os.PathLike[str], items: list[Any] | None = None) -> Source:
    """A file, a folder of Parquet files, or standard input for "-"."""
    if str(path) == "-":
        source = Source("standard input", "", None, sys.stdin.buffer.read(), items=items)
    else:
        place = Path(path)
        if place.is_dir():
            return Source(str(path), ".parquet", place, items=items)
        source = Source(str(path), ending_of(path), place, items=items)
        if not place.is_file():  # a pipe, or nothing at all
            source = replace(source, path=None, held=place.read_bytes())
    source = _with_head(source)
    if not source.is_packed and ending_of(path, unpacked=False) == ".gz":
        raise source.error(None, "the name ends in .gz, but this is no gzip file")
    return source if source.ending else replace(source, ending=_ending_by_content(source))


def _with_head(source: Source) -> Source:
    """The source with its first bytes, unpacked if they are those of gzip."""
    with source.open() as stream:
        head = stream.read(HEAD)
    if head[:2] != GZIP:
        return replace(source, head=head)
    source = replace(source, is_packed=True)
    with source.open() as stream:
        return replace(source, head=stream.read(HEAD))


def _ending_by_content(source: Source) -> str:
    return {PARQUET: ".parquet", ZIP: ".npz"}.get(source.head[:4], ".csv")


def ending_of(path: str | os.PathLike[str], unpacked: bool = True) -> str:
    """The ending of a name in lower case, without .gz."""
    name = Path(path).name.lower()
    if unpacked:
        name = name.removesuffix(".gz")
    return Path(name).suffix


# Text


@contextmanager
def open_text(source: Source, encoding: str | None) -> Iterator[Iterator[str]]:
    """The lines of a file of text, each with its end.

    What is wrong with the text as such is said first, wherever in the file it is.
    """
    _refuse_other_formats(source)
    try:
        with (
            source.open() as stream,
            io.TextIOWrapper(stream, encoding or _encoding(source), newline="") as text,
        ):
            yield _lines(text)
    except (ValueError, LookupError):
        decode(source, encoding)
        raise


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    for number, line in enumerate(text):
        if "\0" in line:
            raise ValueError("there is a zero byte")
        yield line if number else line.removeprefix("\ufeff")


def decode(source: Source, encoding: str | None) -> str:
    """The text of a file, or an error that says what is wrong with it."""
    _refuse_other_formats(source)
    content = source.content
    try:
        text = content.decode(encoding or _encoding(source)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        _refuse_by_ending(source)
        line = content.count(b"\n", 0, error.start) + 1
        raise source.error(
            line,
            f"this is not {error.encoding} text (byte {content[error.start]:#04x}): save the file "
            'as UTF-8, or say which encoding it has, for instance encoding="latin-1"',
        ) from None
    except LookupError:
        raise ValueError(f"encoding must be a known one, got {encoding!r}") from None
    if "\0" in text:
        _refuse_by_ending(source)
        line = text.count("\n", 0, text.index("\0")) + 1
        raise source.error(line, "there is a zero byte: this is no text, or of another encoding")
    return text


def _encoding(source: Source) -> str:
    return "utf-16" if source.head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _refuse_other_formats(source: Source) -> None:
    """Refuse, by its first bytes, what is packed, and no text."""
    if source.head[:4] == ZIP:
        refuse_model(source, source.content)
        _refuse_by_ending(source)
        raise source.error(None, "this is a zip file, a spreadsheet maybe: save the data as CSV")
    for mark, packer in PACKERS.items():
        if re.match(mark, source.head):
            raise source.error(None, f"this is packed by {packer}: unpack it, or use gzip")


def refuse_model(source: Source, content: bytes) -> None:
    """Refuse a saved model, whole or damaged: `header.json` is its first member."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if "header.json" not in archive.namelist():
                return
            is_whole = archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError):
        if b"header.json" not in content[:60]:
            return
        is_whole = False
    if is_whole:
        raise source.error(None, "this is a saved model, not data: open it with pm.load")
    raise source.error(None, DAMAGED)


def _refuse_by_ending(source: Source) -> None:
    """Say of what is no text, and is named as models are, that it is a damaged model."""
    if source.ending == ".pm":
        raise source.error(None, DAMAGED)
