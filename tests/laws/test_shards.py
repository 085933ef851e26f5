"""Clicks in shards: the same bits as in one piece. Real workers are in engines/test_dask.py."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.files.parquet_parts import Parts
from pseudomallows.latent.click_population import ClickPopulation
from pseudomallows.latent.registry import make_population
from pseudomallows.latent.shards import ShardedPopulation, join_clicks, open_parts, shard_clicks

CONSENSUS = np.array([3, 1, 6, 2, 5, 4], dtype=np.int32)


class Workers:
    """Workers that are not elsewhere: a future is its result."""

    is_remote, n_workers = True, 3

    def map(self, function, arguments):
        return map(function, arguments)

    def submit(self, function, *arguments):
        return function(*arguments)


def clicks(n_users=40):
    prefs = pm.simulate_clicks(n_users, 6, 3, 2, rng=1).preferences
    silent = pm.Preferences.from_clicks({"none": [], "all": range(6)}, items=range(6))
    weights = np.random.default_rng(2).integers(1, 4, n_users + 2)
    both = join_clicks([prefs, silent])
    return pm.Preferences.from_clicks(
        {row: both.clicks_of(row).tolist() for row in range(both.n_users)},
        items=range(6),
        weights=weights,
    )


@pytest.fixture
def both():
    """The users in one piece and in shards."""
    return ClickPopulation(clicks(), pm.Threads(1)), shard_clicks(clicks(), Workers())


def test_clicks_on_workers_are_sharded():
    assert isinstance(make_population(clicks(), Workers()), ShardedPopulation)


def test_shards_know_the_same(both):
    here, there = both
    assert len(there.places([])) == 6  # two for each worker
    assert (here.n_rows, here.n_users) == (there.n_rows, there.n_users) == (40, here.n_users)
    assert there.n_unknown == 40
    assert (here.mean_ranks == there.mean_ranks).all()
    assert (here.row_numbers == there.row_numbers).all()
    assert here.log_likelihood(CONSENSUS, 2.0) == there.log_likelihood(CONSENSUS, 2.0)


@pytest.mark.parametrize("number", range(3))
def test_shards_draw_the_same_bits(both, number):
    one, other = (each.draw(CONSENSUS, 2.0, 5, number) for each in both)
    assert (one.tally.counts == other.tally.counts).all()
    assert (one.consensus == other.consensus).all()


def test_some_of_the_rows_are_the_same_in_shards_and_brought_here(both):
    here, there = both
    weights = here.row_weights * (np.arange(40) % 3 == 0)
    weights[:14] = 0  # two shards are left out whole
    parts = [here.select(weights, here.row_numbers), there.select(weights, here.row_numbers)]
    parts.append(there.gather(weights))
    assert len(parts[1].places([])) < len(there.places([]))
    assert type(parts[2]) is ClickPopulation
    draws = [part.draw(CONSENSUS, 2.0, 5, 1).tally.counts.tolist() for part in parts]
    assert draws[0] == draws[1] == draws[2]
    assert draws[0] != here.draw(CONSENSUS, 2.0, 5, 1).tally.counts.tolist()


def test_fewer_users_than_shards_are_no_trouble():
    there = shard_clicks(pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 1]]), Workers())
    assert len(there.places([])) == 2


def test_joined_clicks_are_one_after_the_other():
    prefs = clicks()
    again = join_clicks([prefs.take(range(5)), prefs.take([]), prefs.take(range(5, 42))])
    assert again.digest() == prefs.digest()


def test_parts_need_workers():
    for executor in (None, pm.Threads(1)):
        with pytest.raises(TypeError, match="parts are read by Dask workers: give executor="):
            open_parts(Parts(["a.parquet"]), executor)
