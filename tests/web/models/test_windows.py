"""The look-up tables of windows: dropped when unused, and only then."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pseudomallows as pm
from pseudomallows.web.models.model import Model
from webhelp import make_model


def test_the_tables_of_unused_windows_are_dropped(tmp_path, monkeypatch):
    """Many different k do not fill the memory, and the answers stay right."""
    posterior = make_model(tmp_path / "m.pm", method="pseudo", n_clusters=2, n_items=30)
    model = Model(posterior, 1)
    model.prepare()
    one_window = model.table_bytes()
    assert one_window > 0
    monkeypatch.setattr("pseudomallows.web.models.windows.TABLE_BYTES", 4 * one_window)
    other = pm.load(tmp_path / "m.pm")
    for k in [*range(1, 31), 3]:
        items, chances, _ = model.best(np.array([4, 7], dtype=np.int32), k)
        expected = pm.recommend(other, k, clicks={"x": ["item 4", "item 7"]})
        assert items == expected.items[0].tolist()
        assert np.array_equal(chances, expected.probabilities[0], equal_nan=True)
        assert model.table_bytes() <= 5 * one_window


def test_tables_are_not_dropped_while_they_are_read(tmp_path, monkeypatch):
    """Threads ask with many different k, and there is room for the tables of one only."""
    monkeypatch.setattr("pseudomallows.web.models.windows.TABLE_BYTES", 1)
    posterior = make_model(tmp_path / "m.pm", method="pseudo", n_clusters=2, n_items=30)
    model, codes = Model(posterior, 1), np.array([4, 7], dtype=np.int32)
    expected = {k: Model(pm.load(tmp_path / "m.pm"), 1).best(codes, k) for k in range(1, 9)}

    def ask(number):
        k = 1 + number % 8
        return model.best(codes, k) == expected[k]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))
    model.best(codes, 10)
    assert list(model._windows._used) == [10]
