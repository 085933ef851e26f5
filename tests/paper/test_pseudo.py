import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm
from helpers import choose, interpreted, p_value
from pseudomallows.kernels import pseudo_draws as kernels
from pseudomallows.kernels import subsets
from pseudomallows.scores import rank_divergence, share_of_ranks

RANKINGS = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]]
VISIT_ORDER = [2, 0, 3, 1]


def draws(alpha, n_draws=20_000, **options):
    return pm.PseudoMallows(RANKINGS, alpha, **options).draw(n_draws, 5, VISIT_ORDER)


def test_draws_follow_the_exact_distribution():
    assert p_value(draws(1.0), naive.pseudo_mallows(RANKINGS, 1.0, VISIT_ORDER)) > 1e-4


def test_a_slightly_wrong_alpha_is_caught():
    assert p_value(draws(1.2), naive.pseudo_mallows(RANKINGS, 1.0, VISIT_ORDER)) < 1e-6


def test_another_visit_order_is_caught():
    assert p_value(draws(1.0), naive.pseudo_mallows(RANKINGS, 1.0, [1, 3, 0, 2])) < 1e-6


def test_log_probability_follows_the_definition():
    q = pm.PseudoMallows(RANKINGS, 2.5)
    law = naive.pseudo_mallows(RANKINGS, 2.5, VISIT_ORDER)
    for ranking, probability in law.items():
        assert q.log_probability(ranking, VISIT_ORDER) == pytest.approx(math.log(probability))


def mixture(alpha):
    """The law of Algorithm 3 with sigma 0: mean over the V-set of every way to break ties."""
    means = [sum(r[i] for r in RANKINGS) for i in range(4)]  # 4, 6, 8, 12: no ties
    ranking = [sorted(means).index(m) + 1 for m in means]
    orders = [np.argsort(v) for v in naive.v_set(ranking)]
    laws = [naive.pseudo_mallows(RANKINGS, alpha, order) for order in orders]
    return {key: sum(law[key] for law in laws) / len(laws) for key in laws[0]}


def test_v_draws_follow_the_mixture_over_the_v_set():
    law = mixture(1.0)
    q = pm.PseudoMallows(RANKINGS, 1.0)
    assert p_value(q.draw(20_000, rng=2), law) > 1e-4
    for ranking, probability in law.items():
        assert q.log_probability(ranking) == pytest.approx(math.log(probability))


def test_noise_on_the_v_ranking_changes_the_law_as_its_orders_say():
    noisy = pm.PseudoMallows(RANKINGS, 1.0, sigma=2.0).draw(20_000, rng=2)
    assert p_value(noisy, mixture(1.0)) < 1e-6
    wild = pm.PseudoMallows(RANKINGS, 1.0, sigma=1e6).draw(20_000, rng=2)
    orders = [np.array(r) - 1 for r in naive.all_rankings(4)]
    laws = [naive.pseudo_mallows(RANKINGS, 1.0, order) for order in orders]
    uniform_orders = {key: sum(law[key] for law in laws) / len(laws) for key in laws[0]}
    assert p_value(wild, uniform_orders) > 1e-4


def test_auto_takes_the_noise_that_brings_draws_nearest_to_the_exact_posterior():
    for n_users, alpha, is_0 in [(100, 1.0, False), (500, 6.0, True)]:
        rankings = pm.simulate_rankings(n_users, 12, alpha, rng=1).rankings
        found = pm.PseudoMallows(rankings, alpha, sigma="auto")
        exact = found.exact_rank_probabilities()

        def gap(sigma, exact=exact, rankings=rankings, alpha=alpha):
            draws = pm.PseudoMallows(rankings, alpha, sigma).draw(4000, rng=1)
            return rank_divergence(share_of_ranks(draws), exact)

        assert (found.sigma == 0) == is_0
        gaps = [gap(sigma) for sigma in (0, 1, 2, 3, 5)]
        assert gap(found.sigma) <= 1.4 * min(gaps)
        assert is_0 or gap(found.sigma) < 0.7 * gaps[0]
        assert found.sigma == pm.PseudoMallows(rankings, alpha, sigma="auto").sigma
        same = pm.PseudoMallows(rankings, alpha, found.sigma).draw(5, rng=2)
        np.testing.assert_array_equal(found.draw(5, rng=2), same)


def test_orders_of_ones_own_give_the_mixture_over_them():
    def sampler(n_draws, rng):
        return np.where(rng.random((n_draws, 1)) < 0.3, [3, 1, 0, 2], VISIT_ORDER)

    laws = [naive.pseudo_mallows(RANKINGS, 1.0, order) for order in ([3, 1, 0, 2], VISIT_ORDER)]
    law = {key: 0.3 * laws[0][key] + 0.7 * laws[1][key] for key in laws[0]}
    q = pm.PseudoMallows(RANKINGS, 1.0)
    assert p_value(q.draw(20_000, rng=3, visit_order=sampler), law) > 1e-4
    assert p_value(q.draw(20_000, rng=3, visit_order=VISIT_ORDER), law) < 1e-6
    orders = sampler(50, np.random.default_rng(1))
    for draw, order in zip(q.draw_weighted(50, 1, orders).rankings, orders, strict=True):
        assert np.isfinite(q.log_probability(draw, order))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([[0, 1, 2, 3]], "an order for each draw, .2, 4., got .1, 4."),
        ([[0, 1, 2, 3], [0, 1, 2, 2]], r"visit_order\[1\] must hold each of the items 0..3 once"),
        (lambda n_draws, rng: np.zeros((n_draws, 4), int), "2 of 2 have this problem"),
    ],
)
def test_wrong_orders_are_refused(order, words):
    with pytest.raises(ValueError, match=words):
        pm.PseudoMallows(RANKINGS, 1.0).draw(2, rng=1, visit_order=order)


@pytest.mark.parametrize(("sigma", "error"), [("best", ValueError), (None, TypeError)])
def test_a_wrong_sigma_is_refused(sigma, error):
    with pytest.raises(error, match="sigma"):
        pm.PseudoMallows(RANKINGS, 1.0, sigma=sigma)


def test_ties_in_mean_rank_are_broken_at_random():
    tied = [[1, 2, 3, 4], [4, 3, 2, 1]]
    q = pm.PseudoMallows(tied, 0.8)
    orders = [np.argsort(v) for r in naive.all_rankings(4) for v in naive.v_set(r)]
    laws = [naive.pseudo_mallows(tied, 0.8, order) for order in orders]
    law = {key: sum(law[key] for law in laws) / len(laws) for key in laws[0]}
    assert p_value(q.draw(20_000, rng=3), law) > 1e-4
    for ranking, probability in law.items():
        assert q.log_probability(ranking) == pytest.approx(math.log(probability))


@pytest.mark.kernel
@pytest.mark.parametrize("balanced", [False, True])
def test_elbo_and_marginals_by_subsets_equal_enumeration(balanced):
    q = pm.PseudoMallows(RANKINGS, 1.5, balanced=balanced)
    law = {r: math.exp(q.log_probability(r, VISIT_ORDER)) for r in naive.all_rankings(4)}
    assert np.abs(q.rank_probabilities(VISIT_ORDER) - naive.marginals(law)).max() < 1e-12
    evidence = q.evidence(VISIT_ORDER)
    assert evidence.log_evidence == pytest.approx(naive.log_evidence(RANKINGS, 1.5))
    exact = naive.posterior(RANKINGS, 1.5)
    divergence = math.fsum(p * math.log(p / exact[r]) for r, p in law.items())
    assert evidence.divergence == pytest.approx(divergence, abs=1e-10)
    assert np.abs(q.exact_rank_probabilities() - naive.marginals(exact)).max() < 1e-12


def test_elbo_is_equation_12():
    elbo = pm.PseudoMallows(RANKINGS, 1.5).elbo(VISIT_ORDER)
    assert elbo == pytest.approx(naive.elbo(RANKINGS, 1.5, VISIT_ORDER))
    assert abs(elbo - naive.elbo(RANKINGS, 1.6, VISIT_ORDER)) > 1e-3


def test_elbo_and_evidence_by_draws_agree_with_the_exact_ones():
    q = pm.PseudoMallows(pm.Mallows(np.arange(1, 11), 2).draw(5, rng=1), 2)
    order = np.random.default_rng(1).permutation(10)
    exact, drawn = q.evidence(order), q.evidence(order, n_draws=50_000, rng=1)
    assert abs(drawn.elbo - exact.elbo) < 4 * drawn.error
    assert drawn.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
    assert exact.divergence > 0.1
    assert drawn.divergence == pytest.approx(exact.divergence, abs=0.1)


@pytest.mark.parametrize(("n_users", "alpha"), [(100, 1), (100, 2), (20, 3)])
def test_the_evidence_of_balanced_draws_is_that_of_sums_over_all_rankings(n_users, alpha):
    rankings = pm.Mallows(np.arange(1, 17), alpha).draw(n_users, rng=2)
    drawn = pm.PseudoMallows(rankings, alpha, balanced=True).evidence(n_draws=4000, rng=1)
    error = 1 / math.sqrt(drawn.effective_size)
    assert error < 0.03
    exact, wrong = (
        pm.PseudoMallows(rankings, value).evidence(np.arange(16)).log_evidence
        for value in (alpha, 1.01 * alpha)
    )
    assert abs(drawn.log_evidence - exact) < 4 * error < abs(drawn.log_evidence - wrong)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("alpha", "typical"), [(2, 0.2), (4, 1e-4), (6, 1e-9)])
def test_the_error_of_the_elbo_is_honest_for_nearly_degenerate_laws(alpha, typical, balanced):
    errors = []
    for seed in range(40):
        rankings = pm.Mallows([1, 2, 3, 4], alpha).draw(30, rng=seed)
        q = pm.PseudoMallows(rankings, alpha, balanced=balanced)
        order = np.random.default_rng(seed).permutation(4)
        exact, drawn = q.evidence(order), q.evidence(order, n_draws=1000, rng=seed)
        assert abs(drawn.elbo - exact.elbo) < 3 * drawn.error
        errors.append(drawn.error)
    assert np.median(errors) < typical  # nor is it a bound that says nothing


def test_without_an_order_the_elbo_is_the_mean_over_the_orders():
    q = pm.PseudoMallows(RANKINGS, 1.5)
    means = [sum(r[i] for r in RANKINGS) for i in range(4)]
    ranking = [sorted(means).index(m) + 1 for m in means]
    exact = np.mean([q.elbo(np.argsort(v)) for v in naive.v_set(ranking)])
    found = q.evidence(n_draws=40_000, rng=1)
    assert abs(found.elbo - exact) < 4 * found.error


def test_draws_carry_their_weights():
    q = pm.PseudoMallows(RANKINGS, 1.0, balanced=True)
    found = q.draw_weighted(50_000, rng=1)
    exact = np.array(naive.marginals(naive.posterior(RANKINGS, 1.0)))
    weighted = pm.scores.share_of_ranks(found.rankings, found.weights)
    plain = pm.scores.share_of_ranks(found.rankings)
    assert np.abs(weighted - exact).max() < 0.01
    assert np.abs(plain - exact).max() > np.abs(weighted - exact).max()
    assert 0 < found.effective_size < 50_000
    assert math.log(np.exp(found.log_weights).mean()) == pytest.approx(
        naive.log_evidence(RANKINGS, 1.0), abs=0.01
    )


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_balanced_draws_have_foresight(alpha):
    q = pm.PseudoMallows(RANKINGS, alpha, balanced=True)
    law = naive.item_by_item(q.balanced_marginals().tolist(), VISIT_ORDER, True)
    for ranking, probability in law.items():
        assert q.log_probability(ranking, VISIT_ORDER) == pytest.approx(math.log(probability))


@pytest.mark.parametrize(("alpha", "passes"), [(1.0, True), (1.2, False)])
def test_draws_with_foresight_follow_their_law(alpha, passes):
    weights = pm.PseudoMallows(RANKINGS, 1.0, balanced=True).balanced_marginals().tolist()
    found = p_value(draws(alpha, balanced=True), naive.item_by_item(weights, VISIT_ORDER, True))
    assert found > 1e-4 if passes else found < 1e-6


def test_draws_of_the_balanced_weights_alone_are_caught():
    weights = pm.PseudoMallows(RANKINGS, 1.0, balanced=True).balanced_marginals().tolist()
    alone = naive.item_by_item(weights, VISIT_ORDER, foresees=False)
    assert p_value(draws(1.0, balanced=True), alone) < 1e-6


@pytest.mark.parametrize(("n_users", "n_items", "alpha"), [(500, 50, 5), (200, 200, 20)])
def test_weights_hold_for_hundreds_of_items(n_users, n_items, alpha):
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng=1)
    found = pm.PseudoMallows(rankings, alpha, balanced=True).draw_weighted(4000, rng=1)
    assert found.effective_size > 80  # without foresight 213 and 1.0, with it 3,487 and 123


def test_no_draw_has_a_huge_weight_where_the_posterior_is_wide():
    sizes = []
    for seed in range(12):
        rankings = pm.simulate_rankings(100, 20, alpha=1, rng=seed).rankings
        law = pm.PseudoMallows(rankings, 1.0, balanced=True)
        sizes.append(law.draw_weighted(4000, seed).effective_size)
    assert min(sizes) > 1800  # 2,205; if foresight looks at cells above 0.01 alone, 484


def test_balanced_draws_visit_the_items_in_uniform_order():
    q = pm.PseudoMallows(RANKINGS, 1.0, balanced=True)
    law = {r: math.exp(q.log_probability(r)) for r in naive.all_rankings(4)}
    assert sum(law.values()) == pytest.approx(1)
    assert p_value(q.draw(20_000, rng=3), law) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "passes"), [(1.0, True), (1.6, False)])
def test_redraws_leave_the_exact_posterior_as_it_is(alpha, passes):
    law = naive.posterior(RANKINGS, 1.0)
    rng = np.random.default_rng(1)
    starts = choose(law, 20_000, rng).astype(np.int32)
    q = pm.PseudoMallows(RANKINGS, alpha, balanced=True)
    found = p_value([q.redraw(start, 3, rng) for start in starts], law)
    assert found > 1e-4 if passes else found < 1e-6


def test_row_weights_count_as_repeated_rows():
    weighted = pm.PseudoMallows([RANKINGS[0], RANKINGS[1]], 2, weights=[3, 2])
    repeated = pm.PseudoMallows([RANKINGS[0]] * 3 + [RANKINGS[1]] * 2, 2)
    assert (weighted.draw(100, rng=1) == repeated.draw(100, rng=1)).all()


@pytest.mark.parametrize("n_items", range(2, 8))
def test_v_rankings_are_those_of_the_definition(n_items):
    ranking = np.random.default_rng(n_items).permutation(n_items) + 1
    found = pm.v_rankings(ranking)
    assert len(found) == 2 ** (n_items // 2)
    assert set(map(tuple, found.tolist())) == naive.v_set(ranking.tolist())


@pytest.mark.parametrize("n_items", [5, 6])
def test_v_rankings_are_drawn_with_equal_probability(n_items):
    ranking = np.random.default_rng(n_items).permutation(n_items) + 1
    rng = np.random.default_rng(1)
    drawn = [pm.draw_v_ranking(ranking, rng) for _ in range(2000)]
    all_of_them = naive.v_set(ranking.tolist())
    assert p_value(drawn, dict.fromkeys(all_of_them, 1 / len(all_of_them))) > 1e-4


@pytest.mark.kernel
@pytest.mark.parametrize("has_foresight", [False, True])
def test_compiled_and_interpreted_kernels_are_equal(has_foresight):
    log_weights = -np.random.default_rng(1).random((6, 6)) * 5
    cells = kernels.cells_of(log_weights, has_foresight)
    orders = np.array([np.random.default_rng(i).permutation(6) for i in range(20)])
    results = []
    for draw in (kernels.draw_consensuses, interpreted(kernels.draw_consensuses)):
        consensus, logs = np.empty((20, 6), dtype=np.int32), np.empty(20)
        draw(3, 0, cells, orders, False, consensus, logs)
        results.append((consensus, logs))
    assert (results[0][0] == results[1][0]).all()
    # the compiler may sum and take logarithms in another last bit
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-13)
    (drawn, logs), values = results[0], np.empty(20)
    interpreted(kernels.draw_consensuses)(3, 0, cells, orders, True, drawn, values)
    assert values == pytest.approx(logs)


@pytest.mark.kernel
@pytest.mark.parametrize("has_foresight", [False, True])
def test_draws_have_the_same_bits_in_any_blocks(has_foresight):
    cells = kernels.cells_of(-5 * np.random.default_rng(1).random((6, 6)), has_foresight)
    orders = np.array([np.random.default_rng(i).permutation(6) for i in range(20)])
    results = []
    for ends in ([0, 20], [0, 7, 8, 20]):
        drawn, logs = np.empty((20, 6), dtype=np.int32), np.empty(20)
        for first, end in itertools.pairwise(ends):
            where = orders[first:end], False, drawn[first:end], logs[first:end]
            kernels.draw_consensuses(3, first, cells, *where)
        results.append((drawn, logs))
    assert (results[0][0] == results[1][0]).all()
    # the compiler may sum and take logarithms in another last bit
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-13)


@pytest.mark.kernel
def test_weights_that_underflow_are_no_trouble():
    sharp = np.array([[0.0, -2500.0, -3000.0], [0.0, -2000.0, -2500.0], [0.0, -900.0, -1000.0]])
    consensus, logs = np.empty((1, 3), dtype=np.int32), np.empty(1)
    cells, orders = kernels.cells_of(sharp, False), np.array([[0, 1, 2]])
    kernels.draw_consensuses(1, 0, cells, orders, False, consensus, logs)
    assert consensus.tolist() == [[1, 2, 3]]
    marginals = np.empty((3, 3))
    assert subsets.posterior_by_subsets(sharp, marginals) == pytest.approx(-3000, abs=1e-6)
    assert np.isfinite(marginals).all()
    elbo = subsets.pseudo_by_subsets(
        sharp, np.arange(3), False, 0.0, subsets.room_for_sets(3), marginals
    )
    assert elbo == pytest.approx(-3000)


@given(st.integers(2, 6), st.integers(0, 1000))
def test_any_visit_order_gives_a_law_that_sums_to_one(n_items, seed):
    rng = np.random.default_rng(seed)
    rankings = [rng.permutation(n_items) + 1 for _ in range(3)]
    q = pm.PseudoMallows(rankings, float(rng.random() * 10))
    order = rng.permutation(n_items)
    total = sum(math.exp(q.log_probability(r, order)) for r in naive.all_rankings(n_items))
    assert total == pytest.approx(1)
    assert q.rank_probabilities(order).sum(axis=0) == pytest.approx(np.ones(n_items))
