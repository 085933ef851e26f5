"""Where the bytes come from: packed, damaged, of another encoding or format, from a pipe."""

import bz2
import gzip
import io
import lzma

import pytest

import pseudomallows as pm
from helpers import as_text, cells_of
from pseudomallows.cli import main
from pseudomallows.data import source

LINES = "user,item,day\n" + "ann,tea,1\nbob,mate,2\n" * 9


POTATOES = "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\n"


def test_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(POTATOES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    assert pm.read("-").n_users == 2


def test_wide_text_of_excel(put):
    assert pm.read(put(POTATOES.replace(",", "\t").encode("utf-16"))).n_users == 2


def test_gzip_and_tabs(put):
    path = put(gzip.compress(POTATOES.replace(",", "\t").encode()), "data.tsv.gz")
    assert cells_of(pm.read(path)) == cells_of(pm.read(put(POTATOES)))


def test_text_of_windows_is_read_and_said(put, capsys):
    path = put("user,item\na,b\nc,10\x80 für Böhm\n".encode("latin-1"))
    with pytest.warns(EncodingWarning, match=r"line 3: this is not utf-8 .* is read as cp1252"):
        assert pm.read(path).items.tolist() == ["10€ für Böhm", "b"]
    assert pm.read(path, encoding="cp1252").items.tolist() == ["10€ für Böhm", "b"]
    assert main(["info", str(path)]) == 0
    assert "warning: " + str(path) + ", line 3: this is not utf-8" in capsys.readouterr().err


@pytest.mark.parametrize("raw", [b"d\xe9\x81", b"d\xc3\xa9\nc,\xe9"])
def test_bytes_that_are_no_text(put, raw):
    """What cp1252 has no letter for; and UTF-8 that was damaged."""
    path = put(b"user,item\na,b\nc," + raw + b"\n")
    with pytest.raises(ValueError, match=r"line \d: this is not utf-8 text .* encoding=.latin-1"):
        pm.read(path)
    assert pm.read(path, encoding="latin-1").n_users == 2
    with pytest.raises(ValueError, match="encoding must be a known one"):
        pm.read(path, encoding="klingon")


@pytest.mark.parametrize("name", ["m.pm", "m.csv", "m", "m.npz"])
def test_a_model_is_known_for_one_whole_or_damaged(put, tmp_path, name):
    pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 3), "pseudo", alpha=1, rng=1).save(
        tmp_path / "m"
    )
    whole = (tmp_path / "m").read_bytes()
    with pytest.raises(ValueError, match=r"saved model, not data: open it with pm\.load"):
        pm.read(put(whole, name))
    for end in (60, 200, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ValueError, match="this is a damaged model file"):
            pm.read(put(whole[:end], name))
    with pytest.raises(ValueError, match="this is a damaged model file"):
        pm.read(put(whole[:100] + b"xxxxxxxx" + whole[108:], name))


BOMBS = {
    "cell.csv.gz": b"user,item\nann," + b"a" * 25_000_000,
    "rows.csv.gz": b"user,item\n" + b"a,b\n" * 6_000_000,
    "lines.soc.gz": b"\n" * 25_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused(put, name):
    path = put(gzip.compress(BOMBS[name], 9), name)
    with pytest.raises(ValueError, match=rf"{name}: .* unpack to 2\d.* MB, more than 200 times"):
        pm.read(path)


def test_a_line_without_end_is_refused(put):
    with pytest.raises(ValueError, match="line 2: it has more than 20,000,000 characters"):
        pm.read(put(b"user,item\nann," + b"a" * 22_000_000))


def test_a_parquet_file_of_another_name_is_told(put):
    path = put(b"PAR1" + bytes(60) + b"PAR1", "data.csv")
    with pytest.raises(ValueError, match=r"this is a Parquet file: let its name end in \.parquet"):
        pm.read(path)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, b"\x28\xb5\x2f\xfd".__add__])
def test_what_is_packed_otherwise_is_told(put, pack):
    with pytest.raises(ValueError, match=r"this is packed by (bzip2|xz|Zstandard): unpack it"):
        pm.read(put(pack(POTATOES.encode())))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match=r"none\.csv"):
        pm.read(tmp_path / "none.csv")


def test_a_large_file_from_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(LINES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    monkeypatch.setattr(source, "BLOCK", 50)
    assert cells_of(pm.read("-")) == {"ann": ["tea"], "bob": ["mate"]}


def test_a_broken_gzip_file_is_told_while_it_is_read(put, monkeypatch):
    monkeypatch.setattr(source, "BLOCK", 50)
    packed = gzip.compress(as_text([("user", "item"), *((n, n % 7) for n in range(9999))]))
    with pytest.raises(ValueError, match=r"x\.csv\.gz: this gzip file cannot be read"):
        pm.read(put(packed[:-2000], "x.csv.gz"))


def test_what_is_no_text_is_said_before_what_is_no_table(put):
    path = put(b"user,item\nonly one\n" + b"a,b\n" * 99999 + b"c,\x81\n")
    with pytest.raises(ValueError, match="line 100002: this is not utf-8 text"):
        pm.read(path)


def test_many_blank_lines_before_the_header(put):
    assert pm.read(put("\n" * 100_000 + POTATOES)).n_users == 2
    with pytest.raises(ValueError, match="the file is empty"):
        pm.read(put("\n" * 100_000))
