"""Replicas on flatter posteriors, their exchanges, and the evidence that they give."""

import numpy as np
import pytest
from scipy import stats

import pseudomallows as pm
from exact_posteriors import EXAMPLES, PRIOR, Exact, Example, moves_of, state_of
from pseudomallows.laws.law import Clusters
from pseudomallows.sampling.chain import new_state
from pseudomallows.sampling.temper import TemperedChain, log_evidence, powers

BETAS = np.array([1.0, 0.6, 0.25, 0.0])
FIVE = [[1, 2, 3, 4, 5], [2, 1, 3, 5, 4], [1, 3, 2, 4, 5], [5, 1, 2, 4, 3]]
TOPS = [[1, 2, 0, 0, 0], [0, 1, 1, 0, 0], [2, 0, 1, 0, 0], [1, 2, 3, 4, 5]]


def ends(name, n_starts, betas_of_exchanges=None, seed=2):
    """Each replica begins in its own posterior; where is it after one sweep?"""
    example, rng = EXAMPLES[name], np.random.default_rng(seed)
    law, moves = example.law(), moves_of(example)
    posteriors = [Exact(example, beta=beta) for beta in BETAS]
    starts = [
        [state_of(law, start, moves) for start in each.starts(n_starts, rng)] for each in posteriors
    ]
    chain = TemperedChain(law, starts[0][0], moves, rng, BETAS)
    if betas_of_exchanges is not None:
        chain.betas = betas_of_exchanges
    found = []
    for states in zip(*starts, strict=True):
        for replica, state in zip(chain.replicas, states, strict=True):
            replica.go_to(state)
        chain.sweep(adapt=False)
        found.append([replica.state for replica in chain.replicas])
    return [
        exact.p_values(
            {
                "consensus": np.array([states[k].consensus[0] for states in found]),
                "alpha": np.array([states[k].alpha[0] for states in found]),
            }
        )["consensus and alpha"]
        for k, exact in enumerate(posteriors)
    ]


@pytest.mark.parametrize("name", ["full by footrule", "buckets", "gaps and ties", "votes"])
def test_every_replica_keeps_its_own_posterior(name):
    assert min(ends(name, 600)) > 1e-4


def test_wrong_exchanges_are_caught():
    found = ends("full by footrule", 600, np.array([1.0, 0.95, 0.9, 0.85]))
    assert min(found) < 1e-6


def chain_of(example, rng, betas=None):
    law, moves = example.law(), moves_of(example, n_moves=30)
    first = np.arange(1, example.n_items + 1, dtype=np.int32)[None]
    state = new_state(law, Clusters(first, np.ones(1)), np.ones(1), None, moves)
    law.anchor(state.clusters, None)
    betas = powers(law, moves, rng) if betas is None else betas
    return TemperedChain(law, state, moves, rng, betas)


def test_replicas_exchange_states_and_keep_their_own_steps():
    chain = chain_of(EXAMPLES["full by kendall"], np.random.default_rng(1))
    for _ in range(20):
        chain.sweep(adapt=True)
    steps = [replica.state.log_steps[0] for replica in chain.replicas]
    places = []
    for _ in range(50):
        chain.sweep(adapt=False)
        places.append([replica.state.alpha[0] for replica in chain.replicas])
    assert [replica.state.log_steps[0] for replica in chain.replicas] == steps
    assert len(set(steps[:-1])) == len(steps) - 1
    assert np.shape(chain.log_likelihoods) == (50, len(steps))


def test_powers_fall_until_the_likelihood_hardly_matters():
    example = EXAMPLES["full by footrule"]
    few = powers(example.law(), moves_of(example), np.random.default_rng(1))
    many = powers(example.law(weights=[100] * 4), moves_of(example), np.random.default_rng(1))
    assert (np.diff(few) < 0).all()
    assert few[0] == many[0] == 1
    assert few[-1] == many[-1] == 0
    assert len(many) > len(few) + 3


# The evidence


@pytest.mark.parametrize(
    "example",
    [
        EXAMPLES["full by footrule"],
        EXAMPLES["gaps and ties"],
        Example("rankings", FIVE, "kendall"),
        Example("rankings", FIVE, "hamming"),
        Example("rankings", TOPS, "footrule"),
    ],
    ids=lambda example: f"{example.n_items} items by {example.distance}",
)
def test_the_evidence_is_that_of_enumeration(example):
    values, betas = [], powers(example.law(), moves_of(example), np.random.default_rng(1))
    for rng in np.random.default_rng(3).spawn(5):
        chain = chain_of(example, rng, betas)
        for sweep in range(120):
            chain.sweep(adapt=sweep < 20)
        values.append(np.array(chain.log_likelihoods))
    value, error = log_evidence(betas, values)
    away = (value - Exact(example).evidence()) / error
    assert 2 * stats.t(len(values) - 1).sf(abs(away)) > 1e-3
    assert error < 0.15


def test_the_evidence_of_one_chain_has_no_error():
    assert log_evidence(np.array([1.0, 0.0]), [np.array([[0.0, -1.0], [0.0, -1.0]])]) == (-1.0, 0.0)


def test_a_fit_states_the_evidence():
    prefs = pm.Preferences.from_rankings(FIVE)
    options = {"n_draws": 150, "alpha_prior": tuple(PRIOR), "rng": 1, "distance": "kendall"}
    found = pm.fit(prefs, "mcmc", temperatures=4, **options).settings["tempered"]
    exact = Exact(Example("rankings", FIVE, "kendall")).evidence()
    assert len(found["powers"]) == 4
    assert found["log_evidence"] == pytest.approx(exact, abs=6 * found["log_evidence_error"])
    assert 0 < found["log_evidence_error"] < 0.2
    assert found["log_evidence"] != pytest.approx(exact + 1, abs=6 * found["log_evidence_error"])
