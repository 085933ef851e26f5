"""Replicas on flatter posteriors, their exchanges, and the evidence that they give."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from exact_posteriors import EXAMPLES, LOGS, PRIOR, Exact, Example, moves_of, state_of
from pseudomallows.laws.law import Clusters
from pseudomallows.sampling.chain import new_state
from pseudomallows.sampling.temper import Ladder, TemperedChain, log_evidence, make_ladder

BETAS = np.array([1.0, 0.6, 0.25, 0.0])
ALPHA = float(np.exp(LOGS[280]))  # of the replicas: 2.7
FIVE = [[1, 2, 3, 4, 5], [2, 1, 3, 5, 4], [1, 3, 2, 4, 5], [5, 1, 2, 4, 3]]
TOPS = [[1, 2, 0, 0, 0], [0, 1, 1, 0, 0], [2, 0, 1, 0, 0], [1, 2, 3, 4, 5]]


class AtOneAlpha(Exact):
    """The posterior given the alpha of the replicas."""

    def _list(self):
        self.prior = np.where(LOGS[280] == LOGS, self.prior, 0.0)
        super()._list()


def ends(name, n_starts, betas_of_exchanges=None, seed=2):
    """The chain and each replica begin in their own posteriors; where are they after one sweep?"""
    example, rng = EXAMPLES[name], np.random.default_rng(seed)
    law, moves = example.law(), moves_of(example)
    posteriors = [Exact(example), *(AtOneAlpha(example, beta=beta) for beta in BETAS)]
    starts = [
        [state_of(law, start, moves) for start in each.starts(n_starts, rng)] for each in posteriors
    ]
    law.anchor(starts[0][0].clusters, None)
    chain = TemperedChain(law, starts[0][0], moves, rng, Ladder(BETAS, ALPHA))
    if betas_of_exchanges is not None:
        chain.betas = betas_of_exchanges
    consensuses, alphas = [], np.full((n_starts, len(posteriors)), ALPHA)
    for number, states in enumerate(zip(*starts, strict=True)):
        chain.go_to(states[0])
        chain.replicas = [chain.replica_at(state.consensus[0]) for state in states[1:]]
        chain.sweep(adapt=False)
        alphas[number, 0] = chain.state.alpha[0]
        consensuses.append([chain.state.consensus[0], *(each.consensus for each in chain.replicas)])
    found = np.array(consensuses)
    return [
        exact.p_values({"consensus": found[:, k], "alpha": alphas[:, k]})["consensus and alpha"]
        for k, exact in enumerate(posteriors)
    ]


@pytest.mark.parametrize("name", ["full by footrule", "buckets", "gaps and ties", "votes"])
def test_every_replica_keeps_its_own_posterior(name):
    assert min(ends(name, 600)) > 1e-4


def test_wrong_exchanges_are_caught():
    found = ends("full by footrule", 600, [1.0, 0.95, 0.9, 0.85])
    assert min(found) < 1e-6


def ladder_of(example, law=None):
    law = example.law() if law is None else law
    return make_ladder(law, None, moves_of(example), None, np.random.default_rng(1))


def chain_of(example, rng, ladder=None):
    law, moves = example.law(), moves_of(example, n_moves=30)
    first = np.arange(1, example.n_items + 1, dtype=np.int32)[None]
    state = new_state(law, Clusters(first, np.ones(1)), np.ones(1), None, moves)
    law.anchor(state.clusters, None)
    return TemperedChain(law, state, moves, rng, ladder_of(example) if ladder is None else ladder)


def test_replicas_exchange_consensuses_and_keep_their_alpha():
    chain = chain_of(EXAMPLES["full by kendall"], np.random.default_rng(1))
    n_replicas, orders = len(chain.replicas), []
    for sweep in range(70):
        chain.sweep(adapt=sweep < 20)
        orders.append([replica.consensus.tolist() for replica in chain.replicas])
    assert chain.alpha == ladder_of(EXAMPLES["full by kendall"]).alpha
    assert chain.state.alpha[0] != chain.alpha
    assert np.shape(chain.trace) == (50, 3 + n_replicas)
    assert len({tuple(each[0]) for each in orders}) > 1


def test_powers_fall_until_the_likelihood_hardly_matters():
    example = EXAMPLES["full by footrule"]
    few, many = (ladder_of(example, law).betas for law in (None, example.law(weights=[100] * 4)))
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
    ladder, traces = ladder_of(example), []
    for rng in np.random.default_rng(3).spawn(5):
        chain = chain_of(example, rng, ladder)
        for sweep in range(220):
            chain.sweep(adapt=sweep < 20)
        traces.append(np.array(chain.trace))
    value, error = log_evidence(ladder.betas, traces, PRIOR)
    assert abs(value - Exact(example).evidence()) < 3.5 * error
    assert error < 0.1


CYCLES = Example("rankings", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], "kendall")
CAMPS = Example("rankings", [[1, 2, 3, 4], [2, 3, 4, 1]], "hamming")


@pytest.mark.parametrize(("example", "weights"), [(CYCLES, [6, 8, 7]), (CAMPS, [6, 6])])
def test_the_stated_error_is_that_of_the_evidence(example, weights):
    exact, prefs = Exact(example, weights=weights).evidence(), example.preferences(weights)
    options = {"n_draws": 100, "thin": 3, "warmup": 50, "alpha_prior": tuple(PRIOR)}
    scores = []
    for seed in range(12):
        how = options | {"distance": example.distance, "temperatures": 6, "rng": seed}
        found = pm.fit(prefs, "mcmc", **how)
        scores.append((found.log_evidence - exact) / found.log_evidence_error)
    assert np.abs(scores).max() < 4
    assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 1.7  # neither too small nor too large


def test_the_evidence_at_one_alpha_is_a_ratio_of_two_sums():
    trace = np.array([[1.0, -1.0, -1.0, -1.0, -1.0]] * 30)
    assert log_evidence(np.array([1.0, 0.0]), [trace], None) == pytest.approx((-1.0, 0.0))


def test_a_fit_states_the_evidence():
    prefs = pm.Preferences.from_rankings(FIVE)
    options = {"n_draws": 150, "alpha_prior": tuple(PRIOR), "rng": 1, "distance": "kendall"}
    found = pm.fit(prefs, "mcmc", temperatures=4, **options).settings["tempered"]
    exact = Exact(Example("rankings", FIVE, "kendall")).evidence()
    assert len(found["powers"]) == 4
    assert found["log_evidence"] == pytest.approx(exact, abs=6 * found["log_evidence_error"])
    assert 0 < found["log_evidence_error"] < 0.2
    assert found["log_evidence"] != pytest.approx(exact + 1, abs=6 * found["log_evidence_error"])


def test_the_evidence_agrees_with_that_of_balanced_draws_and_with_a_sum():
    posterior = pm.fit(pm.Preferences.from_rankings(FIVE), "mcmc", 2.0, temperatures=4, rng=1)
    balanced = pm.PseudoMallows(FIVE, 2.0, balanced=True).evidence(n_draws=20_000, rng=1)
    exact = naive.log_evidence(FIVE, 2.0)  # without the constants of model and prior
    constant = len(FIVE) * pm.Mallows(range(1, 6), 2.0).log_partition + math.log(math.factorial(5))
    away = posterior.log_evidence + constant - exact
    assert abs(away) < 4 * posterior.log_evidence_error < 0.2
    assert abs(balanced.log_evidence - exact) < 0.05
