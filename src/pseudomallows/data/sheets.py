"""Spreadsheets, .xlsx and .ods: the first sheet, as text. fastexcel reads them."""

import io
import xml.etree.ElementTree as ET
import zipfile
from contextlib import suppress
from typing import IO

from ..engines.memory import as_size
from .archive import WrongFileError, is_bomb, open_archive
from .checks import TooLargeError, check_memory
from .source import Source, refuse_model
from .table import Table
from .text import file_table, header_of

ENDINGS = (".xlsx", ".ods")
CELL = 200  # bytes that a cell takes while the sheet is read, text included


def sheet_table(source: Source, kind: str | None) -> Table:
    """The first sheet; rows and columns without any cell are left out.

    If there are several sheets, a note says which was read.
    """
    try:
        import fastexcel
    except ModuleNotFoundError as error:  # pragma: no cover
        raise ModuleNotFoundError(
            f"{source.name}: spreadsheets need fastexcel: pip install 'pseudomallows[excel]', or "
            "save the sheet as CSV",
            name=error.name,
        ) from None
    import polars as pl

    content = source.content
    refuse_model(source, content)
    _check_size(source, content)
    with source.refuse_broken("spreadsheet", BaseException):  # panics of compiled code, too
        book = fastexcel.read_excel(content)
        sheet = book.load_sheet(0, header_row=None, skip_rows=0, dtypes="string")
        frame = sheet.to_polars()
    if len(book.sheet_names) > 1:
        source.notes.append(f"sheet {sheet.name!r}, the first of {len(book.sheet_names)}")
    frame = frame.with_columns(pl.all().fill_null("").str.strip_chars())
    frame = frame[[column.name for column in frame if (column != "").any()]]
    numbers = [number for number, row in enumerate(frame.iter_rows(), 1) if any(row)]
    frame = frame[[number - 1 for number in numbers]]
    some = [(numbers[at], list(row)) for at, row in enumerate(frame.head(10).rows())]
    header, is_bare = header_of(source, some, kind)
    first = 0 if is_bare else 1
    return file_table(source, header, lambda: [(frame[first:], numbers[first:])])


def _check_size(source: Source, content: bytes) -> None:
    """Refuse an archive that is damaged, or that unpacks to far more than a sheet of its size; and
    cells so far apart that the rectangle around them does not fit into memory."""
    extents = []
    try:
        with open_archive(io.BytesIO(content)), zipfile.ZipFile(io.BytesIO(content)) as opened:
            n_bytes = sum(info.file_size for info in opened.infolist())
            is_too_large = is_bomb(n_bytes, len(content))
            if not is_too_large and (wrong := opened.testzip()) is not None:
                raise WrongFileError(f"is damaged: {wrong}")
            for name in [] if is_too_large else opened.namelist():
                with suppress(ET.ParseError), opened.open(name) as member:
                    extents.append(_extent(member))
    except WrongFileError as error:
        raise source.error(None, f"this spreadsheet cannot be read: the file {error}") from None
    if is_too_large:
        raise TooLargeError(
            f"{source.name}: {as_size(len(content))} of this spreadsheet unpack to "
            f"{as_size(n_bytes)}: save the sheet as CSV"
        )
    for n_rows, n_columns in extents:
        words = f"cells down to row {n_rows:,} and up to column {n_columns:,}"
        advice = ": delete what is far from the table"
        check_memory(CELL * n_rows * n_columns, f"{source.name}: {words}", advice)


def _extent(stream: IO[bytes]) -> tuple[int, int]:
    """The last row and the last column with something in it, of a sheet of XML of either format."""
    row = column = last_in_row = n_rows = n_columns = 0
    for event, element in ET.iterparse(stream, ["start", "end"]):
        name = element.tag.rpartition("}")[2]
        given = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        if event == "start":
            if name in ("row", "table-row"):
                row, column, last_in_row = int(given.get("r", row + 1)), 0, 0
            elif name == "table":
                row = 0
        elif name == "c":
            row, column = _place_of(given["r"]) if "r" in given else (row, column + 1)
            if len(element):
                n_rows, last_in_row = max(n_rows, row), max(last_in_row, column)
        elif name in ("table-cell", "covered-table-cell"):
            column += int(given.get("number-columns-repeated", 1))
            last_in_row = column if "value-type" in given else last_in_row
        elif name in ("row", "table-row"):
            row += int(given.get("number-rows-repeated", 1)) - 1
            n_columns = max(n_columns, last_in_row)
            n_rows = max(n_rows, row) if last_in_row else n_rows
        if event == "end":
            element.clear()
    return n_rows, n_columns


def _place_of(cell: str) -> tuple[int, int]:
    """The numbers of the row and the column of a cell.

    >>> _place_of("AB7")
    (7, 28)
    """
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - 64
    return int(cell[len(letters) :]), column
