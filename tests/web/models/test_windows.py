"""The look-up tables of windows: dropped when unused, and only then."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pseudomallows as pm
from pseudomallows.web.models import caches
from pseudomallows.web.models.caches import Windows
from pseudomallows.web.models.model import Clicked, Model
from webhelp import make_model

KENDALL = {"method": "mcmc", "distance": "kendall", "n_clusters": 2}


class FakeRecommender:
    """Tables of 100 bytes a window."""

    def __init__(self):
        self.tables = set()

    def table_bytes(self):
        return 100 * len(self.tables)

    def drop_tables(self, window):
        self.tables.discard(window)


def test_the_window_used_longest_ago_goes_first_but_never_the_first_one(monkeypatch):
    monkeypatch.setattr(caches, "TABLE_BYTES", 300)
    fake = FakeRecommender()
    kept = Windows(fake, first=10)
    fake.tables.add(10)
    for window in (1, 2, 3, 1):
        with kept.using(window):
            fake.tables.add(window)
    assert fake.tables == {10, 1, 3}  # 2 went when 1 was used again
    with kept.using(4):
        fake.tables.add(4)
        assert fake.tables == {10, 1, 3, 4}
    with kept.using(1), kept.using(5):
        fake.tables.add(5)
        assert fake.tables == {10, 1, 4, 5}  # 3 was used before 1 and 4


def test_no_window_is_dropped_while_any_thread_reads_it(monkeypatch):
    monkeypatch.setattr(caches, "TABLE_BYTES", 100)
    fake, lock, rng = FakeRecommender(), threading.Lock(), random.Random(1)
    kept, asked = Windows(fake, first=0), [rng.randrange(1, 6) for _ in range(300)]

    def read(window):
        with kept.using(window):
            with lock:
                fake.tables.add(window)
            time.sleep(0.0002)  # so that others come in between
            return window in fake.tables

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, asked))
    with kept.using(7):
        assert len(fake.tables) <= 1  # there is room for one


def test_many_different_k_do_not_fill_the_memory_and_the_answers_stay_right(tmp_path, monkeypatch):
    posterior = make_model(tmp_path / "m.pm", n_items=8, **KENDALL)
    model = Model(posterior, 1)
    model.prepare()
    one_window = model.table_bytes()
    assert one_window > 0
    monkeypatch.setattr(caches, "TABLE_BYTES", 2 * one_window)
    other = pm.load(tmp_path / "m.pm")
    for k in [*range(1, 9), 3]:
        items, probabilities, _ = model.best(Clicked(np.array([4, 7], dtype=np.int32)), k)
        expected = pm.recommend(other, k, clicks={"x": ["item 4", "item 7"]})
        assert items == expected.items[0].tolist()
        assert np.array_equal(probabilities, expected.probabilities[0], equal_nan=True)
        assert model.table_bytes() <= 3 * one_window


def test_threads_get_right_answers_with_room_for_one_window_only(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "TABLE_BYTES", 1)
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
