"""Tables of text: comma-separated files, in and out, with line numbers for errors."""

import csv
import gzip
import io
import itertools
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from .atomic import write_whole

DELIMITERS = ",;\t|"
MAX_CELL = 1_000_000  # characters; one that is longer is an open quote
END = "end of the file"  # a last line of our own: if it comes out as it went in, no quote is open
PACKERS = {rb"BZh[1-9]1AY&SY": "bzip2", rb"\xfd7zXZ": "xz", rb"\x28\xb5/\xfd": "Zstandard"}
DAMAGED = "this is a damaged model file, cut short maybe: save the model again"
Row = tuple[int, list[str]]


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
    items: list[Any] | None = None  # that are wanted, in this order
    may_be_one_item: bool = False

    def error(self, line: int | None, problem: str, column: str | None = None) -> ValueError:
        """An error that says where."""
        where = f"{self.name}" if line is None else f"{self.name}, line {line}"
        where += "" if column is None else f", column {column!r}"
        return ValueError(f"{where}: {problem}")

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

    def is_blank(self) -> bool:
        """Whether there is nothing but spaces."""
        if self.path is not None and self.path.is_dir():
            return False
        with self.open() as stream:
            return not any(block.strip() for block in iter(lambda: stream.read(1 << 16), b""))


def open_source(path: str | os.PathLike[str], items: list[Any] | None = None) -> Source:
    """A file, a folder of Parquet files, or standard input for "-"."""
    if str(path) == "-":
        name, ending, held = "standard input", "", sys.stdin.buffer.read()
        place: Path | None = None
    else:
        name, ending, held = str(path), ending_of(path), b""
        place = Path(path)
        if place.is_dir():
            return Source(name, ".parquet", place, items=items)
        if not place.is_file():  # a pipe, or nothing at all
            held, place = place.read_bytes(), None
    is_packed = _first_bytes(place, held) == b"\x1f\x8b"
    if not is_packed and ending_of(path, unpacked=False) == ".gz":
        raise ValueError(f"{name}: the name ends in .gz, but this is no gzip file")
    source = Source(name, ending, place, held, is_packed, items)
    return source if ending else replace(source, ending=_ending_by_content(source))


def _first_bytes(path: Path | None, held: bytes) -> bytes:
    if path is None:
        return held[:2]
    with path.open("rb") as stream:
        return stream.read(2)


def ending_of(path: str | os.PathLike[str], unpacked: bool = True) -> str:
    """The ending of a name in lower case, without .gz."""
    name = Path(path).name.lower()
    if unpacked:
        name = name.removesuffix(".gz")
    return Path(name).suffix


def _ending_by_content(source: Source) -> str:
    with source.open() as stream:
        first = stream.read(4)
    if first == b"PAR1":
        return ".parquet"
    return ".npz" if first == b"PK\x03\x04" else ".csv"


def decode(source: Source, encoding: str | None) -> str:
    """The text of a file."""
    content = source.content
    if content[:4] == b"PK\x03\x04":
        refuse_model(source, content)
        _refuse_by_ending(source)
        raise source.error(None, "this is a zip file, a spreadsheet maybe: save the data as CSV")
    for mark, packer in PACKERS.items():
        if re.match(mark, content):
            raise source.error(None, f"this is packed by {packer}: unpack it, or use gzip")
    if encoding is None:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        encoding = "utf-16" if wide else "utf-8-sig"
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
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


def find_delimiter(source: Source, text: str) -> str:
    """The character between cells: by the ending, else the most frequent in the first line that has
    one, of the first ten."""
    if source.ending in (".tsv", ".tab"):
        return "\t"
    for line in itertools.islice(io.StringIO(text[:100_000]), 10):
        bare = re.sub(r'"[^"]*"', "", line)
        if any(mark in bare for mark in DELIMITERS):
            return max(DELIMITERS, key=bare.count)
    return ","


def read_rows(source: Source, text: str, delimiter: str) -> Iterator[Row]:
    """Line number and stripped cells of each line that is not blank."""
    csv.field_size_limit(MAX_CELL)
    lines = itertools.chain(io.StringIO(text, newline=""), ["\n", END])
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    line, last = 1, (0, [""])
    try:
        for cells in reader:
            if any(last[1]):
                yield last
            last = line, [cell.strip() for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise source.error(line, f"this is no table: {error} (is a quote not closed?)") from None
    if last[1] != [END]:
        raise source.error(last[0], "a quote is opened, but not closed")


@contextmanager
def open_target(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears once it is whole, gzip by its ending; standard output for "-"."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with write_whole(path) as stream:
        if ending_of(path, unpacked=False) != ".gz":
            yield stream
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def write_rows(stream: IO[bytes], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> None:
    """Write lines of cells as UTF-8."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    text.flush()
    text.detach()
