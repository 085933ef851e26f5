"""Times in files: every reader gives the same."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data import source, split

FORMS = {
    "numbers": ["881250949", " 891717742", "878887116.5", ""],
    "dates": ["2024-05-31", "2024-05-31 09:00:00", "", "2023-01-01T00:00Z"],
    "slashes": ["12/1/2010 8:26", "12/13/2010 8:26", "1/2/2011 9:00", "12/1/2010 8:25"],
}


def table(times, name="timestamp"):
    rows = zip(["ann", "bob", "ann", "bob"], ["tea", "mate", "mate", "mate"], times, strict=True)
    return "\n".join(["user,item," + name, *map(",".join, rows)]) + "\n"


@pytest.mark.parametrize("form", FORMS)
def test_text_parquet_and_frames_give_the_same_times(tmp_path, monkeypatch, form):
    pd = pytest.importorskip("pandas")
    file = tmp_path / "log.csv"
    file.write_text(table(FORMS[form]))
    slow = pm.read(file)
    monkeypatch.setattr(source, "BLOCK", 50)
    fast = pm.read(file)
    frame = pd.read_csv(file, dtype=str)
    frame.to_parquet(tmp_path / "log.parquet")
    others = [fast, pm.Preferences.from_clicks(frame), pm.read(tmp_path / "log.parquet")]
    assert slow.times is not None
    for other in others:
        np.testing.assert_array_equal(other.times, slow.times)
        assert other.codes.tolist() == slow.codes.tolist() == [0, 1, 0]


def test_columns_of_dates_and_numbers_in_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["tea", "tea", "ale"]})
    dates = pd.to_datetime(["2024-05-31", None, "2023-01-01 09:00"], format="ISO8601")
    for times in (dates, dates.tz_localize("UTC"), dates.date):
        frame.assign(date=times).to_parquet(tmp_path / "log.parquet")
        found = pm.read(tmp_path / "log.parquet").times  # ann: tea; bob: ale, tea
        assert found[0] == np.datetime64("2024-05-31", "s").astype(float)
        assert np.isnan(found[2])
    frame.assign(time=[3, 2, 1]).to_parquet(tmp_path / "log.parquet")
    assert pm.read(tmp_path / "log.parquet").times.tolist() == [3, 1, 2]
    frame.assign(date=[[1], [2], [3]]).to_parquet(tmp_path / "log.parquet")
    with pytest.warns(pm.data.ColumnWarning, match="'date' is not read as times"):
        assert pm.read(tmp_path / "log.parquet").times is None


@pytest.mark.parametrize("block", [50, 1 << 20])
def test_a_file_of_mixed_times_is_refused_with_its_line(tmp_path, monkeypatch, block):
    monkeypatch.setattr(source, "BLOCK", block)
    file = tmp_path / "log.csv"
    file.write_text(table(["881250949", "", "2024-05-31", "1"]))
    with pytest.raises(ValueError, match=r"log\.csv, line 4, column 'timestamp': wanted a number"):
        pm.read(file)
    file.write_text(table(["9:00", "9:01", "9:02", ""]))
    with pytest.warns(pm.data.ColumnWarning, match="'timestamp' is not read as times: '9:00'"):
        assert pm.read(file).times is None


def test_arrays_and_parts_keep_times(tmp_path):
    clicks, times = np.array([[1, 1, 0], [0, 1, 1]]), np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "log.npz", clicks=clicks, times=times)
    prefs = pm.read(tmp_path / "log.npz")
    assert prefs.times.tolist() == [0, 1, 4, 5]
    split(prefs, tmp_path / "parts", 2)
    assert pm.read(tmp_path / "parts").times.tolist() == [0, 1, 4, 5]
