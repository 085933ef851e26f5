"""Clicks in shards: the same bits as in one piece. Real workers are in engines/test_dask.py."""

import numpy as np
import pytest

import pseudomallows as pm
from law_cases import relabel
from pseudomallows.data.parquet import Parts
from pseudomallows.laws.block_laws import ClickBlocks
from pseudomallows.laws.kendall_clicks import KendallClicks
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.registry import make_law
from pseudomallows.laws.shards import ShardedClicks, join_rows, open_parts, send_clicks

CLUSTERS = Clusters(
    np.array([[3, 1, 6, 2, 5, 4], [1, 2, 3, 4, 5, 6]], dtype=np.int32), np.array([2.0, 4.5])
)
WEIGHTS = np.array([0.4, 0.6])


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
    both = join_rows([prefs, silent])
    return pm.Preferences.from_clicks(
        {row: both.clicks_of(row).tolist() for row in range(both.n_users)},
        items=range(6),
        weights=weights,
    )


@pytest.fixture(params=["footrule", "kendall"])
def both(request):
    """The law of users in one piece and in shards."""
    return [make_law(clicks(), each, request.param) for each in (pm.Threads(1), Workers())]


def test_clicks_on_workers_are_sharded(both):
    here, there = both
    assert not isinstance(here.informative, ShardedClicks)
    assert isinstance(there.informative, ShardedClicks)
    assert type(there) is type(here)
    assert len(there.blocks) == 6  # two for each worker


def test_shards_know_the_same(both):
    here, there = both
    assert (here.n_rows, here.n_users) == (there.n_rows, there.n_users) == (40, here.n_users)
    assert (here.mean_ranks == there.mean_ranks).all()
    assert (here.row_weights == there.row_weights).all()
    assert (here.n_moves, here.count_shape) == (there.n_moves, there.count_shape)


@pytest.mark.parametrize("corrected", [True, False])
def test_every_pass_over_shards_has_the_same_bits(both, corrected):
    labels, found = (np.arange(40) % 2).astype(np.int32), []
    for law in both:
        law.anchor(CLUSTERS, labels)
        memberships, value = law.memberships(CLUSTERS, WEIGHTS, corrected)
        curves = [tally.curve(CLUSTERS.consensus[0]) for tally in law.tallies(labels, 2)]
        found.append(
            (
                law.weigh(CLUSTERS, labels).tolist(),
                law.scores(CLUSTERS, WEIGHTS).tolist(),
                law.nearest(CLUSTERS, WEIGHTS).tolist(),
                [relabel(law, CLUSTERS, WEIGHTS, labels, 7, n, corrected).tolist() for n in (1, 2)],
                (memberships.tolist(), value),
                [curve(alpha) for curve in curves for alpha in (0.0, 1.7, 60.0)],
            )
        )
    assert found[0] == found[1]
    other = relabel(both[0], CLUSTERS, WEIGHTS, labels, 8, 1, corrected).tolist()
    assert other != found[0][3][0]  # another seed


def test_some_of_the_rows_are_brought_here(both):
    here, there = both
    rows = np.arange(14, 40, 3)  # two shards are left out whole
    one, other = here.select(rows), there.select(rows)
    assert type(other) is type(one) is type(here)
    assert type(other) in (ClickBlocks, KendallClicks)
    assert (one.scores(CLUSTERS, WEIGHTS) == other.scores(CLUSTERS, WEIGHTS)).all()
    assert (one.sizes == other.sizes).all()
    some = np.array([30, 2, 30])
    order = np.arange(6)[::-1].astype(np.float64)
    assert (here.rankings_of(some, order) == there.rankings_of(some, order)).all()


def test_latent_rankings_are_not_drawn_on_workers(both):
    """They need the clicks at hand: `fit` refuses `keep_latent` before any work."""
    with pytest.raises(ValueError, match="keep_latent does not work with Dask workers"):
        pm.fit(clicks(), "mcmc", keep_latent=True, executor=Workers(), rng=1)


def test_fewer_users_than_shards_are_no_trouble():
    there = send_clicks(pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 1]]), Workers())
    assert len(there.futures) == 2


def test_joined_clicks_are_one_after_the_other():
    prefs = clicks()
    again = join_rows([prefs.take(range(5)), prefs.take([]), prefs.take(range(5, 42))])
    assert again.digest() == prefs.digest()


def test_parts_need_workers():
    for executor in (None, pm.Threads(1)):
        with pytest.raises(TypeError, match="parts are read by Dask workers: give executor="):
            open_parts(Parts(["a.parquet"]), executor)
