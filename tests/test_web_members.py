"""Memberships of one user, quickly: the same bits as those of the library."""

import numpy as np
import pytest

import pseudomallows as pm
from helpers import interpreted
from pseudomallows.kernels.matching import walk_weights
from pseudomallows.kernels.members import member_log_likelihoods
from pseudomallows.recommend import recommender_of
from pseudomallows.web.members import Members
from pseudomallows.web.served import ONE, Served
from webhelp import make_model


@pytest.mark.kernel
@pytest.mark.parametrize("codes", [[], [3], [0, 2, 4], [0, 1, 2, 3, 4]])
def test_likelihoods_are_those_of_the_definition(codes):
    rng = np.random.default_rng(1)
    centers = np.array([rng.permutation(5) + 1 for _ in range(3)], dtype=np.int32)
    alphas, laws = np.array([2.0, 7.0]), np.array([0, 1, 1])
    prefs = pm.Preferences.from_clicks([[code in codes for code in range(5)]])
    lines = [walk_weights(alpha / 5, 5) for alpha in alphas]
    walks = (np.array([x[0] for x in lines]), lines[0][1], np.array([x[2] for x in lines]))
    constants = np.array([pm.Mallows(centers[0], alpha).log_partition for alpha in alphas])
    given = (np.array(codes, dtype=np.int32), centers, laws, alphas / 5, constants, walks)
    values = np.empty(3)
    for kernel in (member_log_likelihoods, interpreted(member_log_likelihoods)):
        kernel(*given, values)
        for g in range(3):
            exact = pm.click_log_likelihood(prefs, centers[g], alphas[laws[g]])[0]
            assert values[g] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("more", [{}, {"method": "mcmc", "n_chains": 2}])
def test_memberships_are_equal_to_the_bit(tmp_path, more):
    posterior = make_model(tmp_path / "m.pm", **({"method": "pseudo"} | more), n_clusters=3)
    served, recommender = Served(posterior, 1), recommender_of(posterior)
    members, rng = Members(recommender), np.random.default_rng(1)
    for size in range(posterior.n_items + 1):
        codes = np.sort(rng.permutation(posterior.n_items)[:size]).astype(np.int32)
        expected = recommender.memberships_of(served._one(codes), ONE)
        assert np.array_equal(members.of(codes), expected)
