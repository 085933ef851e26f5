"""One sweep from the exact posterior ends in the exact posterior, whatever the law."""

import itertools
import math

import numpy as np
import pytest

from exact_posteriors import (
    EXAMPLES,
    PRIOR,
    WEIGHT_PRIOR,
    Exact,
    Example,
    ends_of_sweeps,
    moves_of,
    state_of,
)
from pseudomallows.laws.augmented import AugmentedLaw
from pseudomallows.laws.block_laws import ClickBlocks, RankedBlocks
from pseudomallows.laws.full import FullLaw
from pseudomallows.laws.kendall_clicks import KendallClicks
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.votes import VoteLaw
from pseudomallows.sampling.chain import Chain, State, fresh_steps, new_state
from pseudomallows.sampling.priors import AlphaPrior

LAWS = {
    "buckets": FullLaw,
    "gaps and ties": RankedBlocks,
    "blocks by hamming": RankedBlocks,
    "clicks": ClickBlocks,
    "clicks by kendall": KendallClicks,
    "votes": VoteLaw,
    "pairs": AugmentedLaw,
    "pairs with errors": AugmentedLaw,
    "partial by ulam": AugmentedLaw,
}
CLUSTERED = [name for name in EXAMPLES if name != "votes"]
OTHER_PRIOR = AlphaPrior(4.0, 0.6)
MANY, FEW = 1000, 600


def p_values(name, n_clusters=1, n_starts=MANY, law=None, weights=None, **options):
    example = EXAMPLES[name]
    exact = Exact(example, n_clusters, weights)
    law = example.law(weights) if law is None else law
    return exact.p_values(ends_of_sweeps(exact, law, moves_of(example, **options), n_starts))


# One cluster


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sweep_leaves_the_posterior_as_it_is(name):
    assert type(EXAMPLES[name].law()) is LAWS.get(name, FullLaw)
    assert min(p_values(name).values()) > 1e-4


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sweep_by_another_prior_does_not(name):
    assert p_values(name, n_starts=FEW, prior=OTHER_PRIOR)["consensus and alpha"] < 1e-6


@pytest.mark.parametrize("name", ["full by footrule", "full by ulam", "buckets", "clicks"])
def test_a_sweep_with_one_more_user_does_not(name):
    law = EXAMPLES[name].law(weights=[2, 1, 1, 1])
    assert p_values(name, n_starts=FEW * 4, law=law)["consensus and alpha"] < 1e-6


@pytest.mark.parametrize("name", ["pairs", "partial by ulam"])
def test_a_sweep_by_another_distance_does_not(name):
    law = EXAMPLES[name].law(distance="hamming")
    assert p_values(name, n_starts=FEW, law=law, move=None)["consensus and alpha"] < 1e-6


@pytest.mark.parametrize("name", ["full by kendall", "buckets", "gaps and ties", "clicks"])
def test_a_row_may_stand_for_several_people(name):
    assert min(p_values(name, weights=[3, 1, 2, 1]).values()) > 1e-4


def test_another_prior_of_the_errors_is_noticed():
    """Statements that agree with the latent rankings by a theta from another posterior."""
    example = EXAMPLES["pairs with errors"]
    law = example.law()
    law.errors.prior = (3.0, 1.0)
    assert p_values("pairs with errors", n_starts=FEW, law=law)["errors"] < 1e-6


# Where the additive law is poor

POOR = {"weights": [3, 3, 3, 1], "n_starts": 1500}  # of "gaps and ties"


def test_the_correction_makes_a_poor_additive_law_exact():
    assert min(p_values("gaps and ties", **POOR).values()) > 1e-4


def test_without_the_correction_it_is_poor():
    assert p_values("gaps and ties", is_corrected=False, **POOR)["consensus and alpha"] < 1e-6


def test_the_correction_does_not_depend_on_where_the_laws_agree():
    example = EXAMPLES["gaps and ties"]
    exact, law = Exact(example), example.law()
    law.anchor = lambda *where: None  # they agree nowhere
    ends = ends_of_sweeps(exact, law, moves_of(example), MANY)
    assert min(exact.p_values(ends).values()) > 1e-4


# Clusters


@pytest.mark.parametrize("name", CLUSTERED)
def test_a_sweep_of_two_clusters_leaves_their_posterior_as_it_is(name):
    assert min(p_values(name, 2, n_starts=800).values()) > 1e-4


@pytest.mark.parametrize("name", ["full by kendall", "clicks", "clicks by kendall", "pairs"])
def test_a_sweep_of_two_clusters_by_another_prior_does_not(name):
    found = p_values(name, 2, n_starts=2 * FEW, prior=OTHER_PRIOR, weight_prior=9.0)
    assert found["consensus and alpha"] < 1e-4
    assert found["labels"] < 1e-6


def test_a_cluster_without_users_is_drawn_from_the_prior():
    """So that three clusters of two users are right, too."""
    two = Example("rankings", [[1, 2, 3], [3, 1, 2]], "footrule")
    exact, law = Exact(two, 3), two.law()
    ends = ends_of_sweeps(exact, law, moves_of(two), MANY)
    assert min(exact.p_values(ends).values()) > 1e-4


# The rest of a chain


def chain_of(name, seed=1, **options):
    example = EXAMPLES[name]
    law, moves = example.law(), moves_of(example, **options)
    consensus = np.arange(1, example.n_items + 1, dtype=np.int32)[None]
    state = new_state(law, Clusters(consensus, np.ones(1)), np.ones(1), None, moves)
    return Chain(law, state, moves, np.random.default_rng(seed))


@pytest.mark.parametrize("name", EXAMPLES)
def test_one_long_run_reaches_every_ranking(name):
    chain, seen = chain_of(name), set()
    n_rankings = math.factorial(EXAMPLES[name].n_items)
    for _ in range(3000):
        chain.sweep(adapt=False)
        seen.add(tuple(chain.state.consensus[0].tolist()))
        if len(seen) == n_rankings:
            break
    assert len(seen) == n_rankings


@pytest.mark.parametrize("name", ["full by footrule", "clicks", "pairs with errors"])
def test_a_state_is_all_that_moves(name):
    """A chain that takes the state of another, its numbers and its generator goes the same way."""
    one, other = chain_of(name), chain_of(name)
    for _ in range(5):
        one.sweep(adapt=True)
    other.go_to(State(*(each.copy() for each in one.state)))
    other.n_sweeps, other.rng = one.n_sweeps, np.random.default_rng()
    other.rng.bit_generator.state = one.rng.bit_generator.state
    for _ in range(5):
        one.sweep(adapt=True)
        other.sweep(adapt=True)
    for mine, theirs in zip(one.state, other.state, strict=True):
        assert np.array_equal(mine, theirs)


def test_an_alpha_that_is_given_stays():
    chain = chain_of("gaps and ties", prior=None)
    for _ in range(20):
        chain.sweep(adapt=True)
    assert chain.state.alpha.tolist() == [1.0]


def test_steps_are_adapted_during_the_warmup_only():
    chain = chain_of("gaps and ties", n_moves=None)
    chain.sweep(adapt=True)
    adapted = chain.state
    assert adapted.log_steps[0] != math.log(0.1)
    assert adapted.log_moves[0] != math.log(400)
    chain.sweep(adapt=False)
    assert chain.state.log_steps == adapted.log_steps
    assert chain.state.log_moves == adapted.log_moves
    fresh = fresh_steps(chain.state, chain.law, chain.moves)
    assert fresh.log_steps[0] == pytest.approx(math.log(0.1))


def test_the_log_likelihood_and_memberships_are_those_of_the_definition():
    for name in CLUSTERED:
        example = EXAMPLES[name]
        if isinstance(law := example.law(), AugmentedLaw):
            continue
        exact, rng = Exact(example), np.random.default_rng(1)
        start = next(Exact(example, 2).starts(1, rng))
        places = [exact.rankings.tolist().index(each.tolist()) for each in start[0]]
        moves = moves_of(example)
        chain = Chain(law, state_of(law, start, moves), moves, rng)
        cells = np.full(2, 250)
        alpha = np.exp(np.arange(math.log(0.01), math.log(120.0), 0.02))[cells]
        chain.go_to(chain.state._replace(alpha=alpha))
        likelihoods = np.exp(exact.logs[0][:, places, cells]) * start[2]
        memberships, log_likelihood = chain.memberships
        assert log_likelihood == pytest.approx(np.log(likelihoods.sum(axis=1)).sum())
        assert memberships == pytest.approx(
            likelihoods / likelihoods.sum(axis=1, keepdims=True), abs=1e-6
        )
        labels = start[3]
        mine = np.log(likelihoods / start[2])[np.arange(4), labels]
        assert chain.exact == pytest.approx(np.bincount(labels, mine, 2), abs=1e-6)


def test_the_density_of_a_draw_has_the_priors():
    chain = chain_of("full by kendall")
    assert chain.log_prior() == pytest.approx(PRIOR.log_density(1.0))
    weights = np.array([0.3, 0.7])
    state = chain.state._replace(
        alpha=np.array([2.0, 3.0]),
        weights=weights,
        consensus=np.tile(chain.state.consensus, (2, 1)),
    )
    chain.go_to(state)
    wanted = PRIOR.log_density(2.0) + PRIOR.log_density(3.0)
    wanted += (WEIGHT_PRIOR - 1) * np.log(weights).sum()
    assert chain.log_prior() == pytest.approx(wanted)


def test_an_empty_cluster_begins_anew_in_the_warmup():
    """Nobody would ever join a cluster that is far away from all."""
    example = EXAMPLES["full by footrule"]
    law, moves = example.law(), moves_of(example)
    centers = np.array([[1, 2, 3, 4], [4, 3, 2, 1]], dtype=np.int32)
    labels, weights = np.zeros(4, dtype=np.int32), np.array([1.0, 0.0])
    state = new_state(law, Clusters(centers, np.array([9.0, 500.0])), weights, labels, moves)
    chain, seen = Chain(law, state, moves, np.random.default_rng(1)), set()
    for _ in range(10):
        chain.sweep(adapt=True)
        seen |= set(chain.state.labels.tolist())
    assert seen == {0, 1}


def test_all_proposals_leave_the_posterior_as_it_is():
    for move, leap in itertools.product(["swap", "leap_and_shift"], [1, 2]):
        found = p_values("full by kendall", n_starts=FEW, move=move, leap=leap)
        assert min(found.values()) > 1e-4
