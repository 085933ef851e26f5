"""Spreadsheets: made by xlsxwriter, or by hand as a few files of XML in a zip archive."""

import datetime as dt
import io
import zipfile

import pytest

import pseudomallows as pm
from helpers import cells_of

pytest.importorskip("fastexcel")

OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"
ROWS = [["user", "tea", "ale", "gin"], ["ann", 1, 2, 3], ["bob", 3, None, 1]]


def write_xlsx(path, *sheets):
    """Each sheet a list of rows; None is no cell."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(str(path)) as book:
        date = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        for number, rows in enumerate(sheets, 1):
            sheet = book.add_worksheet(f"Sheet {number}")
            for line, row in enumerate(rows):
                for column, value in enumerate(row):
                    how = [date] if isinstance(value, dt.datetime) else []
                    if value is not None:
                        sheet.write(line, column, value, *how)
    return path


def ods_cell(value, repeated=1):
    if value is None:
        return f'<table:table-cell table:number-columns-repeated="{repeated}"/>'
    kind = "string" if isinstance(value, str) else "float"
    given = "" if kind == "string" else f' office:value="{value}"'
    return (
        f'<table:table-cell office:value-type="{kind}"{given} '
        f'table:number-columns-repeated="{repeated}"><text:p>{value}</text:p></table:table-cell>'
    )


def write_ods(path, rows, extra=""):
    lines = "".join(
        f"<table:table-row>{''.join(map(ods_cell, row))}</table:table-row>" for row in rows
    )
    names = "".join(f' xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "table", "text"))
    content = (
        f'<?xml version="1.0"?><office:document-content{names}><office:body><office:spreadsheet>'
        f'<table:table table:name="Answers">{lines}{extra}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    return path


def rewrite(path, change):
    """The same archive with its members changed."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, change(name, content))
    return path


@pytest.fixture(params=["xlsx", "ods"])
def sheet(request, tmp_path):
    write = write_xlsx if request.param == "xlsx" else write_ods
    return lambda rows: write(tmp_path / f"answers.{request.param}", rows)


def test_a_sheet_of_ranks(sheet):
    found = pm.read(sheet(ROWS))
    assert cells_of(found) == {
        "ann": {"tea": 1, "ale": 2, "gin": 3},
        "bob": {"tea": 3, "ale": 2, "gin": 1},
    }


def test_sheets_of_every_kind(sheet):
    log = [["user", "item"], [7, "tea"], [8, "ale"], [8, "tea"]]
    assert cells_of(pm.read(sheet(log))) == {"7": ["tea"], "8": ["ale", "tea"]}
    places = [["user", "1st", "2nd"], ["ann", "tea", "ale"], ["bob", "ale", None]]
    assert pm.read(sheet(places)).rankings.tolist() == [[2, 1], [1, 2]]
    assert pm.read(sheet([["better", "worse"], ["tea", "ale"]])).is_vote
    marked = [["user", "tea", "ale"], ["ann", 1, None], ["bob", 0, 1]]
    assert pm.read(sheet(marked)).kind == "clicks"
    assert pm.read(sheet(log[1:]), header=False, columns=["user", "item"]).n_users == 2


def test_dates_are_times(tmp_path):
    rows = [["user", "item", "time"], ["a", "x", dt.datetime(2024, 5, 31, 9)]]
    found = pm.read(write_xlsx(tmp_path / "log.xlsx", [*rows, ["b", "y", dt.datetime(2024, 6, 1)]]))
    assert (found.times[1] - found.times[0]) / 3600 == 15


def test_empty_rows_and_columns_are_passed_over_and_rows_keep_their_numbers(sheet):
    wide = [[None], [None, "user", None, "tea", "ale"], [None, "ann", None, 1, 2]]
    assert pm.read(sheet(wide)).items.tolist() == ["tea", "ale"]
    with pytest.raises(ValueError, match=r"answers\.\w+, row 5, column 'ale': wanted a number"):
        pm.read(sheet([*wide, [None], [None, "bob", None, 2, "x"]]))
    log = [["user", "item"], ["a", "x"], [None, None], ["a", None], ["a", "y"]]
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 3 rows .* the first at row 4"):
        pm.read(sheet(log))


def test_of_several_sheets_the_first_is_read_and_named(tmp_path):
    path = write_xlsx(tmp_path / "two.xlsx", ROWS, [["x"]])
    from pseudomallows.data.read import read_as

    assert "read as rankings (sheet 'Sheet 1', the first of 2): Rankings(2" in read_as(path)[1]


def test_what_is_empty_or_unclear_is_told(sheet):
    with pytest.raises(ValueError, match=r"answers\.\w+: the file is empty"):
        pm.read(sheet([]))
    with pytest.raises(ValueError, match="row 1: cannot tell from the header"):
        pm.read(sheet([["Survey of 2024"], ["who", "what"], ["ann", "tea"]]))
    with pytest.raises(ValueError, match="sep is for tables of text"):
        pm.read(sheet(ROWS), sep=";")


def test_a_sheet_of_another_name_is_told(sheet, tmp_path):
    sheet(ROWS).rename(tmp_path / "answers.csv")
    with pytest.raises(ValueError, match=r"let its name end in \.xlsx or \.ods"):
        pm.read(tmp_path / "answers.csv")


@pytest.mark.parametrize("ending", [".xlsx", ".ods"])
@pytest.mark.parametrize("content", [b"junk", b"PK\x03\x04", b"\x1f\x8b\x08"])
def test_what_is_no_sheet_is_refused(put, content, ending):
    with pytest.raises(ValueError, match=f"data{ending}"):
        pm.read(put(content, "data" + ending))


def test_a_sheet_that_is_cut_or_damaged_is_refused(sheet):
    path = sheet(ROWS)
    whole = path.read_bytes()
    for end in range(30, len(whole), len(whole) // 20):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="this spreadsheet cannot be read"):
            pm.read(path)
    expected = cells_of(pm.read(sheet(ROWS)))
    for place in range(0, len(whole), 29):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = cells_of(pm.read(path))
        except ValueError as error:
            found = str(error)
        assert found == expected or str(path) in found


def test_cells_far_apart_are_refused_before_there_is_room_for_them(tmp_path):
    path = write_xlsx(tmp_path / "far.xlsx", ROWS)
    far = b'<c r="XFD1048576"><v>1</v></c></row></sheetData>'
    rewrite(path, lambda name, text: text.replace(b"</row></sheetData>", far))
    with pytest.raises(
        ValueError, match=r"far\.xlsx: cells down to row .* up to column 16,384 need .* memory"
    ):
        pm.read(path)
    cells = ods_cell(1, 16_000)
    many = f'<table:table-row table:number-rows-repeated="900000">{cells}</table:table-row>'
    with pytest.raises(ValueError, match="down to row 900,003 and up to column 16,000"):
        pm.read(write_ods(tmp_path / "far.ods", ROWS, many))
    empty = many.replace(cells, ods_cell(None, 16_000))  # as LibreOffice writes it
    assert pm.read(write_ods(tmp_path / "near.ods", ROWS, empty)).n_users == 2


def test_a_sheet_that_unpacks_to_much_is_refused(tmp_path):
    path = write_xlsx(tmp_path / "bomb.xlsx", ROWS)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/other.xml", b" " * 30_000_000)
    with pytest.raises(ValueError, match=r"bomb\.xlsx: .* unpack to 3\d"):
        pm.read(path)


def test_a_sheet_from_standard_input_is_told(sheet, monkeypatch):
    class Standard:
        buffer = io.BytesIO(sheet(ROWS).read_bytes())

    monkeypatch.setattr("sys.stdin", Standard)
    with pytest.raises(ValueError, match="standard input"):
        pm.read("-")
