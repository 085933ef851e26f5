"""Where the bytes come from: a file, packed or not, a folder, a pipe or standard input."""

import codecs
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

from .._warn import warn
from ..engines.memory import as_size, available_memory
from .archive import LARGE, TIMES, is_bomb
from .atomic import check_path
from .checks import TooLargeError
from .columns import USUAL, Layout

HEAD = 1 << 16  # bytes that show the format of a file: a header and some rows
WINDOWS = "cp1252"
BLOCK = 1 << 22  # bytes of text that are read at a time: four times as many took as long
MAX_LINE = 20_000_000  # characters: a million names of items, or numbers, of 20 each
PACKERS = {rb"BZh[1-9]1AY&SY": "bzip2", rb"\xfd7zXZ": "xz", rb"\x28\xb5/\xfd": "Zstandard"}
ZIP, GZIP, PARQUET = b"PK\x03\x04", b"\x1f\x8b", b"PAR1"  # how such files begin
DAMAGED = "this is a damaged model file, cut short maybe: save the model again"


class _Unpacked(io.RawIOBase):
    """The bytes of a packed file; an error once they are far too many for it, or for the memory."""

    def __init__(self, packed: IO[bytes], source: "Source") -> None:
        self._packed, self._stream, self._source = packed, gzip.GzipFile(fileobj=packed), source
        self._n_bytes, self._next, self._free = 0, LARGE, available_memory()

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes."""
        n_bytes = self._stream.readinto(buffer)
        self._n_bytes += n_bytes
        if self._n_bytes >= self._next:
            self._check()
        return n_bytes

    def _check(self) -> None:
        self._next = self._n_bytes + LARGE
        n_packed = self._packed.tell()
        if is_bomb(self._n_bytes, n_packed):
            raise TooLargeError(
                f"{self._source.name}: {as_size(n_packed)} of this gzip file unpack to "
                f"{as_size(self._n_bytes)}, more than {TIMES} times as much, as no usual table "
                "does: if the file is right, unpack it first"
            )
        free = available_memory()
        if self._free is not None and free is not None and free < self._free / 8:
            raise TooLargeError(
                f"{self._source.name}: this does not fit into memory: {as_size(free)} are left "
                f"after {as_size(self._n_bytes)} of it"
            )


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
    layout: Layout = USUAL
    notes: list[str] = field(default_factory=list)  # what was done with the file, for people

    def error(self, line: int | None, problem: str, column: str | None = None) -> ValueError:
        """An error that says where."""
        where = self.name if line is None else f"{self.name}, {self.row_word} {line}"
        where += "" if column is None else f", column {column!r}"
        return ValueError(f"{where}: {problem}")

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the file in every error that does not."""
        try:
            yield
        except (ValueError, TypeError) as error:
            if isinstance(error, ValueError) and str(error).startswith(self.name):
                raise
            raise self.error(None, str(error)) from None

    @contextmanager
    def refuse_broken(self, what: str, *errors: type[BaseException]) -> Iterator[None]:
        """Say that a file of a format cannot be read, if one of these errors comes."""
        try:
            yield
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except errors as error:
            first = str(error).split("\n", 1)[0]
            raise self.error(None, f"this {what} cannot be read: {first}") from None

    @property
    def row_word(self) -> str:
        """What a row is called in this format."""
        return "row" if self.ending in (".xlsx", ".ods") else "line"

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
            with self.refuse_broken("gzip file", gzip.BadGzipFile, EOFError, zlib.error):
                yield io.BufferedReader(_Unpacked(stream, self))

    @property
    def content(self) -> bytes:
        """All bytes, unpacked."""
        with self.open() as stream:
            return stream.read()

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing, or some spaces only."""
        is_folder = self.path is not None and self.path.is_dir()
        return not is_folder and len(self.head) < HEAD and not self.head.strip()


def open_source(path: str | os.PathLike[str], layout: Layout = USUAL) -> Source:
    """A file, a folder of Parquet files, or standard input for "-"."""
    if check_path(path) == Path("-"):
        source = Source("standard input", "", None, sys.stdin.buffer.read(), layout=layout)
    else:
        place = Path(path)
        if place.is_dir():
            return Source(str(path), ".parquet", place, layout=layout)
        source = Source(str(path), ending_of(path), place, layout=layout)
        if not place.is_file():  # a pipe, or nothing at all
            source = replace(source, path=None, held=place.read_bytes())
    with source.open() as stream:
        source = replace(source, head=stream.read(HEAD))
    if source.head[:2] == GZIP:
        source = replace(source, is_packed=True)
        with source.open() as stream:
            source = replace(source, head=stream.read(HEAD))
    elif ending_of(path, unpacked=False) == ".gz":
        raise source.error(None, "the name ends in .gz, but this is no gzip file")
    by_content = {PARQUET: ".parquet", ZIP: ".npz"}.get(source.head[:4], ".csv")
    return source if source.ending else replace(source, ending=by_content)


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files of a folder, by name."""
    return [path for path in sorted(folder.glob("*.parquet")) if path.name[0] not in "._"]


def ending_of(path: str | os.PathLike[str], unpacked: bool = True) -> str:
    """The ending of a name in lower case, without .gz."""
    name = Path(path).name.lower()
    if unpacked:
        name = name.removesuffix(".gz")
    return Path(name).suffix


# Text


def text_blocks(source: Source, encoding: str) -> Iterator[bytes]:
    """The text of a file as UTF-8, in blocks of whole lines, each of them with an end of its own.

    The encoding is one that :func:`check_encoding` has given.
    """
    decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
    rest, mark = b"", b"\xef\xbb\xbf"
    with source.open() as stream:
        while block := stream.read(BLOCK):
            text = rest + (block if decoder is None else decoder.decode(block).encode())
            text, mark = text.removeprefix(mark), b""
            held = b"\r" * text.endswith(b"\r")  # may be half of an end
            if b"\r" in text:
                text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            end = text.rfind(b"\n") + 1
            rest = text[end:] + held
            if end:
                yield text[:end]
    if rest:
        yield rest.removesuffix(b"\r") + b"\n"


def decode(source: Source, encoding: str | None) -> str:
    """The text of a file, or an error that says what is wrong with it."""
    return source.content.decode(check_encoding(source, encoding)).removeprefix("\ufeff")


def check_encoding(source: Source, given: str | None) -> str:
    """The encoding by which all of a file is text: the given one, UTF-16 if the file begins so, or
    UTF-8; if the file is none of these, that of Windows, with a warning."""
    _refuse_other_formats(source)
    is_utf16 = source.head[:2] in (b"\xff\xfe", b"\xfe\xff")
    encoding = given or ("utf-16" if is_utf16 else "utf-8")
    no_text = _find_no_text(source, encoding)
    if no_text is None:
        return encoding
    if source.ending == ".pm":
        raise source.error(None, DAMAGED)
    line, problem, is_plain_before = no_text
    may_be_windows = given is None and not is_utf16 and is_plain_before
    if may_be_windows and _find_no_text(source, WINDOWS) is None:
        message = f"it is read as {WINDOWS}, the encoding of Windows; if it has another, give it"
        message = str(source.error(line, f"{problem}: {message} as encoding (--encoding)"))
        warn(EncodingWarning(message))
        return WINDOWS
    advice = 'save the file as UTF-8, or say which encoding it has, for instance encoding="latin-1"'
    raise source.error(line, f"{problem}: {advice}")


def _find_no_text(source: Source, encoding: str) -> tuple[int, str, bool] | None:
    """The first line of a file that is no text of an encoding, why, and whether all before it has
    the same letters in every encoding; None if all of it is text."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except LookupError:
        raise ValueError(f"encoding must be a known one, got {encoding!r}") from None
    decoder = codecs.getincrementaldecoder(encoding)()
    line, length, is_plain, block = 1, 0, True, b"-"
    with source.open() as stream:
        while block:
            block = stream.read(1 << 20)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                before = error.object[: error.start]
                problem = (
                    f"this is not {error.encoding} text (byte {error.object[error.start]:#04x})"
                )
                return line + before.count(b"\n"), problem, is_plain and before.isascii()
            if "\0" in text:
                problem = "there is a zero byte, so this is no text, or of another encoding"
                return line + text.count("\n", 0, text.index("\0")), problem, False
            is_plain = is_plain and text.isascii()
            line += text.count("\n")
            end = max(text.rfind("\n"), text.rfind("\r"))
            length = len(text) - end - 1 + (length if end < 0 else 0)
            if length > MAX_LINE:
                problem = f"it has more than {MAX_LINE:,} characters: is this a table?"
                raise TooLargeError(str(source.error(line, problem)))
    return None


def _refuse_other_formats(source: Source) -> None:
    """Refuse, by its first bytes, what is packed, and no text."""
    if source.head[:4] == ZIP:
        refuse_model(source, source.content)
        if source.ending == ".pm":
            raise source.error(None, DAMAGED)
        raise source.error(
            None,
            "this is a zip file: let its name end in .xlsx or .ods if it is a spreadsheet, or "
            "save the data as CSV",
        )
    if source.head[:4] == PARQUET and b"\0" in source.head:
        raise source.error(
            None, "this is a Parquet file: let its name end in .parquet, or save the data as CSV"
        )
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
