"""The look-up tables of windows: dropped when unused, and only then."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pseudomallows as pm
from pseudomallows.web.models import model as model_module
from pseudomallows.web.models.model import WINDOW, Clicked, Model
from webhelp import make_model

KENDALL = {"method": "mcmc", "distance": "kendall", "n_clusters": 2}


def test_the_window_of_most_requests_keeps_its_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "TABLE_BYTES", 1)
    model = Model(make_model(tmp_path / "m.pm", n_items=12, **KENDALL), 1)
    model.prepare()
    prepared, someone = model.table_bytes(), Clicked(np.array([4, 7], dtype=np.int32))
    for k in (1, 2, 3):
        model.best(someone, k)
        assert model.table_bytes() > prepared
    model.best(someone, WINDOW)
    assert model.table_bytes() == prepared


def test_many_different_k_do_not_fill_the_memory_and_the_answers_stay_right(tmp_path, monkeypatch):
    posterior = make_model(tmp_path / "m.pm", n_items=8, **KENDALL)
    model = Model(posterior, 1)
    model.prepare()
    one_window = model.table_bytes()
    assert one_window > 0
    monkeypatch.setattr(model_module, "TABLE_BYTES", 2 * one_window)
    other = pm.load(tmp_path / "m.pm")
    for k in [*range(1, 9), 3]:
        items, probabilities, _ = model.best(Clicked(np.array([4, 7], dtype=np.int32)), k)
        expected = pm.recommend(other, k, clicks={"x": ["item 4", "item 7"]})
        assert items == expected.items[0].tolist()
        assert np.array_equal(probabilities, expected.probabilities[0], equal_nan=True)
        assert model.table_bytes() <= 3 * one_window


def test_threads_get_right_answers_with_room_for_one_window_only(tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "TABLE_BYTES", 1)
    posterior = make_model(tmp_path / "m.pm", n_items=8, **KENDALL)
    model, codes = Model(posterior, 1), np.array([4, 7], dtype=np.int32)
    expected = {
        k: Model(pm.load(tmp_path / "m.pm"), 1).best(Clicked(codes), k) for k in range(1, 5)
    }

    def ask(number):
        k = 1 + number % 4
        return model.best(Clicked(codes), k) == expected[k]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))
    alone = Model(pm.load(tmp_path / "m.pm"), 1)
    for each in (model, alone):
        each.best(Clicked(codes), 10)
    assert model.table_bytes() == alone.table_bytes()
