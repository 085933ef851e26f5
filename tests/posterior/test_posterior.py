import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.posterior.intervals import _shortest_run


def posterior_of(draws, weights=None, items=None):
    draws = np.array(draws, dtype=np.int32)[None, :, None, :]
    n_draws, n_items = draws.shape[1], draws.shape[3]
    weights = np.full((1, n_draws), 1 / n_draws) if weights is None else np.array([weights])
    return pm.Posterior(
        consensus=draws,
        alpha=np.ones((1, n_draws, 1)),
        weights=weights,
        log_posterior=np.zeros((1, n_draws)),
        best=draws[0, 0],
        items=np.arange(n_items) if items is None else np.array(items, dtype=object),
    )


def test_cp_consensus_takes_the_likeliest_item_place_by_place():
    # Item 0 is first in 2 of 5 draws, item 1 in 2, item 2 in 1; up to place 2: 3, 4 and 3 of 5.
    draws = [[1, 2, 3], [1, 2, 3], [3, 1, 2], [2, 1, 3], [3, 2, 1]]
    # P(rank <= 1) ties between items 0 and 1: the better mean rank (8/5 against 10/5) is item 1.
    assert posterior_of(draws).point_consensus("cp").tolist() == [2, 1, 3]


def test_mean_consensus_goes_by_mean_rank():
    draws = [[1, 2, 3], [1, 2, 3], [3, 1, 2], [3, 1, 2], [3, 2, 1]]
    assert posterior_of(draws).point_consensus("mean").tolist() == [2, 1, 3]


def test_pair_probabilities_are_weighted_shares_of_draws():
    found = posterior_of([[1, 2, 3], [3, 1, 2], [2, 1, 3]], [0.5, 0.3, 0.2]).pair_probabilities()
    assert found == pytest.approx(np.array([[0.5, 0.5, 0.7], [0.5, 0.5, 1.0], [0.3, 0.0, 0.5]]))


def test_weights_count():
    draws = [[1, 2, 3], [3, 2, 1]]
    assert posterior_of(draws, [0.9, 0.1]).rank_probabilities()[0].tolist() == [0.9, 0, 0.1]
    assert posterior_of(draws, [0.1, 0.9]).point_consensus().tolist() == [3, 2, 1]


def test_intervals_are_the_shortest_runs():
    draws = [[1, 2, 3, 4]] * 90 + [[4, 2, 3, 1]] * 8 + [[3, 2, 1, 4]] * 2
    posterior = posterior_of(draws)
    assert posterior.intervals(0.9).tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert posterior.intervals(0.95).tolist() == [[1, 4], [2, 2], [3, 3], [1, 4]]
    assert posterior.intervals(1.0)[2].tolist() == [1, 3]


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=12), st.floats(0.05, 1))
def test_a_run_holds_its_probability_and_no_shorter_one_does(values, probability):
    row = np.array(values) / sum(values)
    lowest, highest = _shortest_run(row, probability)
    assert 1 <= lowest <= highest <= len(row)
    assert row[lowest - 1 : highest].sum() >= probability - 1e-8
    length = highest - lowest
    assert all(row[i : i + length].sum() < probability for i in range(len(row) - length + 1))


def test_summary_names_the_items_best_first():
    rows = posterior_of([[2, 1, 3]] * 5, items=["ale", "gin", "rum"]).summary()
    assert [row["item"] for row in rows] == ["gin", "ale", "rum"]
    assert rows[0] == {"item": "gin", "rank": 1, "lowest": 1, "highest": 1, "mean": 1.0}


def test_frame_has_one_row_an_item():
    frame = posterior_of([[2, 1, 3]] * 5).to_frame()
    assert list(frame.columns) == ["item", "rank", "lowest", "highest", "mean"]
    assert frame["item"].tolist() == [1, 0, 2]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_without_arviz_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    posterior = pm.fit(pm.Preferences.from_rankings([[1, 2, 3]]), "pseudo", alpha=1, rng=1)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pseudomallows\[arviz\]'"):
        posterior.to_arviz()


def test_arviz_gets_the_draws_with_their_names():
    arviz = pytest.importorskip("arviz")
    prefs = pm.simulate_rankings(30, 4, 2, rng=1).preferences.rename(items=list("abcd"))
    posterior = pm.fit(prefs, "mcmc", n_draws=100, rng=1)
    data = posterior.to_arviz()
    assert (data.posterior["consensus"].values == posterior.consensus).all()
    assert data.posterior["consensus"].dims == ("chain", "draw", "cluster", "item")
    assert data.posterior["consensus"].coords["item"].values.tolist() == list("abcd")
    assert (data.sample_stats["lp"].values == posterior.log_posterior).all()
    assert float(arviz.rhat(data)["alpha"].values[0]) == pytest.approx(
        posterior.diagnostics().alpha_rhat, abs=1e-6
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.point_consensus("median"), "kind must be one of 'cp', 'map', 'mean'"),
        (lambda p: p.point_consensus(cluster=1), r"cluster must be in 0\.\.0, got 1"),
        (lambda p: p.point_consensus("map", cluster=-1), r"cluster must be in 0\.\.0, got -1"),
        (lambda p: p.intervals(0), "probability must be above 0 and at most 1, got 0"),
        (lambda p: p.intervals(float("nan")), "probability must be above 0"),
    ],
)
def test_bad_questions_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(posterior_of([[1, 2, 3]]))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_arviz_gets_weighted_draws_as_often_as_their_weights_say():
    pytest.importorskip("arviz")
    prefs = pm.simulate_rankings(100, 12, 2, rng=1).preferences
    posterior = pm.fit(prefs, "balanced", 2.0, rng=1)
    found = posterior.to_arviz().posterior["consensus"].values.reshape(-1, 12)
    weighted = posterior.rank_probabilities() @ np.arange(1, 13)
    assert np.abs(found.mean(axis=0) - weighted).max() < 0.02
    assert np.abs(posterior.consensus.reshape(-1, 12).mean(axis=0) - weighted).max() > 0.05
