"""A posterior of many items answers without a table of items and ranks."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.posterior import diagnostics, posterior


def made(n_items, n_draws=8, n_chains=2, seed=1):
    rng = np.random.default_rng(seed)
    near = np.arange(n_items) + rng.normal(0, 3, (n_chains, n_draws, 1, n_items))
    draws = (np.argsort(np.argsort(near, axis=-1), axis=-1) + 1).astype(np.int32)
    shape = (n_chains, n_draws)
    return pm.Posterior(
        consensus=draws,
        alpha=rng.gamma(5, size=(*shape, 1)),
        weights=np.full(shape, 1 / (n_chains * n_draws)),
        log_posterior=np.zeros(shape),
        best=draws[0, 0],
        items=np.arange(n_items),
        settings={"method": "mcmc", "distance": "kendall"},
    )


def test_answers_are_those_of_the_table():
    found = made(40)
    table, ranks = found.rank_probabilities(), np.arange(1, 41)
    assert found.mean_ranks() == pytest.approx(table @ ranks)
    assert found.shares_of_ranks(np.arange(5), 9) == pytest.approx(table[:5, :9])
    for (low, high), row in zip(found.intervals(0.8), table, strict=True):
        assert row[low - 1 : high].sum() > 0.8 - 1e-9
        shorter = np.convolve(row, np.ones(high - low), "valid") if high > low else np.zeros(1)
        assert shorter.max() < 0.8 - 1e-9
    left, by_place = list(range(40)), np.argsort(found.point_consensus("cp"))
    for place, item in enumerate(by_place.tolist()):
        sums = table[left, : place + 1].sum(axis=1)
        assert table[item, : place + 1].sum() == pytest.approx(sums.max())
        left.remove(item)
    assert found.summary(probability=0.8, first=3) == found.summary(probability=0.8)[:3]


def test_a_table_of_too_many_items_is_refused_with_what_to_ask():
    found = made(10**6, n_draws=4, n_chains=1)
    with pytest.raises(ValueError, match=r"of 1,000,000 items need 8 TB .*: ask for interv"):
        found.rank_probabilities()
    found = made(20_001, n_draws=4, n_chains=1)
    assert found.intervals().shape == (20_001, 2)
    assert sorted(found.point_consensus().tolist()) == list(range(1, 20_002))
    assert found.summary(first=2)[0]["rank"] == 1


def test_diagnostics_in_blocks_are_those_of_all_at_once(monkeypatch):
    found = made(30)
    whole = found.diagnostics()
    monkeypatch.setattr(diagnostics, "BLOCK_OF_ITEMS", 7)
    parts = found.diagnostics()
    assert (parts.rank_rhat == whole.rank_rhat).all()
    assert (parts.rank_effective_size == whole.rank_effective_size).all()


def test_of_many_items_some_are_enough_to_judge_by(monkeypatch):
    found = made(30, n_draws=60)
    monkeypatch.setattr(posterior, "DENSE_ITEMS", 10)
    assert len(found.diagnostics(some=True).rank_rhat) == 10
    assert len(found.diagnostics().rank_rhat) == 30
