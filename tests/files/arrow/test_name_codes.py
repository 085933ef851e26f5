"""Names of users and items that Arrow trims and joins."""

import numpy as np
import pytest

from pseudomallows.files.source import open_source

pa = pytest.importorskip("pyarrow")
names = pytest.importorskip("pseudomallows.files.arrow.name_codes")
text = pytest.importorskip("pseudomallows.files.arrow.text")


def test_spaces_are_those_of_python():
    letters = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
    trimmed = pa.compute.utf8_trim_whitespace(pa.array(letters)).to_pylist()
    assert trimmed == [letter.strip() for letter in letters]


@pytest.mark.parametrize("waiting", [0, 5, 1000])
def test_names_of_many_blocks_are_joined(tmp_path, monkeypatch, waiting):
    monkeypatch.setattr(names, "WAITING", waiting)
    monkeypatch.setattr(text, "BLOCK", 200)
    rng = np.random.default_rng(1)
    rows = [(f"u{a}", f" i{b} ") for a, b in rng.integers(0, 40, (500, 2)).tolist()]
    path = tmp_path / "x.csv"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in rows))
    owners, codes, users, items = text.read_csv_pairs(open_source(path)).take()
    read = zip(users[owners].tolist(), items[codes].tolist(), strict=True)
    assert list(read) == [(user, item.strip()) for user, item in rows]
    assert users.tolist() == sorted({user for user, _ in rows})
