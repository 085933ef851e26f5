"""One cluster: its steps, and one cluster alone as a mixture of one."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.inference.chains.clusters import ExactCluster, Proposals
from pseudomallows.inference.chains.mixture import Mixture
from pseudomallows.inference.priors import log_density
from pseudomallows.latent.registry import make_population

FIRST = np.arange(1, 7, dtype=np.int32)
PRIOR = (2.0, 0.3)
NEVER = 10**9  # sweeps before a refresh


def population_of(kind):
    top = 3 if kind == "partial" else None
    ranks = pm.simulate_rankings(10, 6, 1, top=top, rng=1).preferences
    if kind == "clicks":
        ranks = pm.simulate_clicks(10, 6, 1, 2, rng=1).preferences
    return make_population(ranks, pm.Threads(1))


MAKERS = {
    "exact": lambda users, rng: ExactCluster(
        users, FIRST.copy(), 0.5, Proposals("swap", 1, 20), PRIOR, rng
    ),
    "given alpha": lambda users, rng: ExactCluster(
        users, FIRST.copy(), 0.5, Proposals("leap_and_shift", 2, 20), None, rng
    ),
}


def run(mixture, n_sweeps=15):
    """The consensus and the alpha after each sweep."""
    found = []
    for _ in range(n_sweeps):
        mixture.sweep(adapt=False)
        found.append((mixture.consensus[0].tolist(), float(mixture.alpha[0])))
    return found


@pytest.mark.parametrize(
    "kind",
    ["full", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("partial", "clicks"))],
)
@pytest.mark.parametrize("how", MAKERS)
def test_one_cluster_alone_moves_as_one_cluster_with_labels_does(how, kind):
    users = population_of(kind)
    alone = Mixture.of_one(MAKERS[how](users, np.random.default_rng(5)))
    one, rng = MAKERS[how](users, np.random.default_rng(5)), np.random.default_rng(9)
    labelled = Mixture(users, [one], np.ones(1), NEVER, 1.0, rng)
    labelled.share_out(users.row_weights[:, None])
    assert not alone.has_labels
    assert labelled.has_labels
    found = run(alone)
    assert found == run(labelled)
    assert len({tuple(consensus) for consensus, _ in found}) > 1
    other = Mixture.of_one(MAKERS[how](users, np.random.default_rng(6)))
    assert found != run(other)


@pytest.mark.parametrize("how", MAKERS)
def test_alpha_moves_only_where_it_has_a_prior(how):
    alphas = {
        alpha
        for _, alpha in run(
            Mixture.of_one(MAKERS[how](population_of("full"), np.random.default_rng(1)))
        )
    }
    assert (len(alphas) > 1) == (how == "exact")


def test_the_log_posterior_is_the_likelihood_times_the_prior():
    users = population_of("clicks")
    free, given = (MAKERS[how](users, np.random.default_rng(1)) for how in ("exact", "given alpha"))
    likelihood = users.log_likelihood(FIRST, 0.5)
    assert given.log_posterior() == likelihood
    assert free.log_posterior() == pytest.approx(likelihood + log_density(PRIOR, 0.5))
    assert (given.lowest_alpha, free.lowest_alpha > 0) == (0, True)


def test_full_rankings_are_tallied_once():
    users = population_of("full")
    mixture = Mixture.of_one(MAKERS["exact"](users, np.random.default_rng(1)))
    mixture.sweep(adapt=False)
    assert mixture.clusters[0].tally is users.known
    assert (mixture.evidence[0] == users.known.costs).all()


def test_latent_rankings_come_from_the_consensus_before_the_sweep():
    users = population_of("clicks")
    cluster = MAKERS["given alpha"](users, np.random.default_rng(1))
    Mixture.of_one(cluster).sweep(adapt=False)
    assert cluster.origin.consensus.tolist() == FIRST.tolist()
    assert (cluster.origin.alpha, cluster.origin.number) == (0.5, 1)
    again = users.draw(FIRST, 0.5, cluster.seed, 1).tally
    assert (cluster.tally.costs == again.costs).all()


def test_a_cluster_without_users_goes_anywhere():
    cluster = MAKERS["exact"](population_of("full"), np.random.default_rng(1))
    places, alphas = [], []
    for _ in range(2000):
        cluster.draw_from_prior()
        places.append(cluster.consensus)
        alphas.append(cluster.alpha)
    assert np.abs(np.mean(places, axis=0) - 3.5).max() < 0.2
    assert np.mean(alphas) == pytest.approx(PRIOR[0] / PRIOR[1], rel=0.1)
    fixed = MAKERS["given alpha"](population_of("full"), np.random.default_rng(1))
    fixed.draw_from_prior()
    assert fixed.alpha == 0.5
