"""Clicks on workers: what is made of them there is what would be made of them here."""

import functools

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import take_random
from pseudomallows.engines.executors import Threads
from pseudomallows.personal.click_shards import RemoteClicks
from pseudomallows.personal.products import AllProducts, taken_from


class Here:
    """Workers in this process."""

    is_remote = True

    def __init__(self, n_workers):
        self.n_workers = n_workers

    def submit(self, function, *arguments):
        return function(*arguments)

    def map(self, function, arguments):
        return map(function, list(arguments))


@functools.cache
def clicks(n_users=90, n_items=12):
    rng = np.random.default_rng(1)
    clicked = rng.random((n_users, n_items)) < rng.uniform(0.1, 0.6, n_items)
    weights = rng.integers(0, 4, n_users)
    return pm.Preferences.from_clicks(clicked, weights=weights)


@pytest.mark.parametrize("n_workers", [1, 2, 7])
@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_products_have_the_same_bits_however_the_users_are_cut(power, n_workers):
    prefs = clicks()
    taken = take_random(prefs, 2, np.random.default_rng(3))
    here, there = AllProducts(prefs, Threads(2)), AllProducts(prefs, Here(n_workers))
    alone = AllProducts(RemoteClicks.send(prefs, Here(n_workers)), Threads(1))
    for found in (there, alone):
        assert (found.of(power) == here.of(power)).all()
        assert (found.without(taken).of(power) == here.without(taken).of(power)).all()
    shuffled = prefs.take(np.random.default_rng(4).permutation(prefs.n_users))
    assert (AllProducts(shuffled, Threads(1)).of(power) == here.of(power)).all()


def test_what_a_user_counts_is_nearly_a_power_of_the_clicks():
    """So nearly that nobody would see it, and so that sums of it are exact."""
    prefs = clicks()
    products = AllProducts(prefs, Threads(1))
    for power in (0, 0.5, 1):
        shares = prefs.weights * np.maximum(prefs.n_clicks, 1.0) ** -power
        assert products.shares(power) == pytest.approx(shares, abs=1e-11)
        whole = np.ldexp(products.shares(power), 40)
        assert (whole == np.rint(whole)).all()
        assert whole.sum() < 2**53


def test_rows_are_brought_here_in_the_order_asked_for():
    prefs, there = clicks(), RemoteClicks.send(clicks(), Here(3))
    for rows in ([5, 80, 2, 41], np.arange(90) % 7 == 3, np.arange(0)):
        found, wanted = there.take(rows), prefs.take(rows)
        assert found.users.tolist() == wanted.users.tolist()
        for name in ("weights", "starts", "codes", "items"):
            assert (getattr(found, name) == getattr(wanted, name)).all()
    assert (there.item_counts() == prefs.item_counts()).all()
    assert (there.is_informative == prefs.is_informative).all()
    assert there.kept().n_users == 0
    assert "90 users" in repr(there)


def test_chosen_clicks_know_where_they_come_from():
    prefs, there = clicks(), RemoteClicks.send(clicks(), Here(3))
    taken = take_random(prefs, 1, np.random.default_rng(3))
    left, shown = there.choose(~taken), prefs.choose(~taken)
    assert (left.starts == shown.starts).all()
    assert (left.take(np.arange(90)).codes == shown.codes).all()
    assert (taken_from(there, left) == taken).all()
    assert taken_from(left, left) is None
    assert taken_from(left, there) is None
