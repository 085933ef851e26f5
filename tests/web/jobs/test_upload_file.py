"""The file of an upload: read, checked, stored in parts."""

import pytest

from pseudomallows.web.errors import ServiceError
from pseudomallows.web.jobs import uploads
from pseudomallows.web.jobs.uploads import UploadLimits, read_upload, store_parts
from pseudomallows.web.stores.open import open_store
from webhelp import pairs_in

LIMITS = UploadLimits(rows=4, users=2, items=1)


def read(folder, text, known=("tea", "rum")):
    path = folder / "upload.csv"
    path.write_text(text)
    return read_upload(path, LIMITS, known)


def test_a_file_within_the_limits_is_read(tmp_path):
    clicks = read(tmp_path, "user,item\nann,tea\nann,gin\nbob,rum\nbob,rum\n")
    assert clicks.counts() == (2, 3, 3)
    assert (sorted(clicks.users), sorted(clicks.items)) == (["ann", "bob"], ["gin", "rum", "tea"])
    assert clicks.warnings == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("ann,tea\n" * 5, "at most 4 rows, and this has 5: .*--upload-rows 5"),
        ("ann,tea\nbob,tea\neve,rum\n", "at most 2 users, and this has 3: .*--upload-users 3"),
        ("ann,gin\nann,ale\n", "at most 1 items that the model .*has 2: .*--upload-items 2"),
    ],
)
def test_a_file_beyond_a_limit_is_refused_with_the_option_that_allows_it(tmp_path, rows, words):
    with pytest.raises(ServiceError, match=words) as error:
        read(tmp_path, f"user,item\n{rows}")
    assert error.value.status == 413


def test_what_is_no_clicks_is_refused(tmp_path):
    with pytest.raises(ServiceError, match=r"must hold clicks .* not comparisons"):
        read(tmp_path, "user,better,worse\nann,tea,rum\n")
    with pytest.raises(ServiceError, match=r"must hold clicks .* not rankings"):
        read(tmp_path, "user,tea,rum,gin\nann,1,2,3\n")


@pytest.mark.parametrize("name", ["clicked", "purchased"])
def test_rows_that_are_no_clicks_are_not_stored(tmp_path, name):
    words = f"the file: column '{name}' says that some rows are no clicks: leave these rows out"
    with pytest.raises(ServiceError, match=words):
        read(tmp_path, f"user,item,{name}\nann,tea,1\nann,rum,0\n")
    clicks = read(tmp_path, f"user,item,{name}\nann,tea,1\nann,rum,1\n")
    assert clicks.counts() == (1, 2, 2)
    assert clicks.warnings == []


def test_a_parquet_file_is_not_told_to_try_an_encoding(tmp_path):
    (tmp_path / "upload.csv").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    with pytest.raises(ServiceError, match=r"this is a Parquet file: .*, or save the data as CSV"):
        read_upload(tmp_path / "upload.csv", LIMITS, ())


def test_the_path_of_the_service_is_not_told(tmp_path):
    with pytest.raises(ServiceError, match="the file") as error:
        read(tmp_path, "user,item\nx\n")
    assert str(tmp_path) not in error.value.words


def test_all_parts_are_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "PART", 2)
    clicks = read(tmp_path, "user,item\nann,tea\nann,rum\nbob,tea\n")
    store, sizes = open_store(str(tmp_path / "s.sqlite")), []
    add = store.add_part
    store.add_part = lambda upload, pairs, *more: (
        sizes.append(len(pairs)) or add(upload, pairs, *more)
    )
    upload = store.begin_upload(*clicks.counts()[:2])
    store_parts(store, upload, clicks)
    store.finish_upload(upload)
    assert sizes == [2, 1]
    assert sorted(pairs_in(store)) == [("ann", "rum"), ("ann", "tea"), ("bob", "tea")]
    store.close()
