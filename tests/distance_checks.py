"""What the tests of every distance share: the definition and enumeration, size by size."""

import math

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, p_value
from pseudomallows import distances
from pseudomallows.distances.distance import alpha_for_distance

ALPHAS = (0.0, 1e-7, 0.7, 3.0, 20.0)


def center(n_items):
    return tuple(range(1, n_items + 1))


class DistanceChecks:
    """The tests; a subclass says of which `distance`, and of how many items by enumeration."""

    distance = None
    sizes = (1, 2, 4, 5, 6)
    draw_alphas = (1.5, 1.9)  # and one whose draws must be seen to be others
    tolerance = 1e-11
    n_items = 9  # at the ends of the scale of alpha

    def law(self, n_items, alpha):
        return naive.mallows(center(n_items), alpha, self.distance.name)

    def test_it_is_found_by_its_name(self):
        assert distances.get(self.distance.name) is self.distance

    def test_the_distance_between_rankings_follows_the_definition(self):
        between, exact = self.distance.between, naive.DISTANCES[self.distance.name]
        for n_items in (1, 3, 5):
            rankings = naive.all_rankings(n_items)
            other = rankings[len(rankings) // 2]
            assert between(rankings, other).tolist() == [exact(r, other) for r in rankings]
            assert between(other, rankings).tolist() == [exact(r, other) for r in rankings]
            rows = between(rankings, rankings[::-1]).tolist()
            assert rows == [exact(*pair) for pair in zip(rankings, rankings[::-1], strict=True)]
            assert between(other, other) == 0

    def test_the_log_partition_equals_enumeration(self):
        for n_items in self.sizes:
            for alpha in ALPHAS:
                exact = naive.log_partition(n_items, alpha, self.distance.name)
                found = self.distance.log_partition(n_items, alpha)
                assert found == pytest.approx(exact, abs=self.tolerance), (n_items, alpha)

    def test_the_expected_distance_equals_enumeration(self):
        between = naive.DISTANCES[self.distance.name]
        for n_items in self.sizes:
            for alpha in ALPHAS:
                law = self.law(n_items, alpha)
                exact = math.fsum(p * between(r, center(n_items)) for r, p in law.items())
                found = self.distance.expected(n_items, alpha)
                assert found == pytest.approx(exact, abs=self.tolerance), (n_items, alpha)

    def test_rank_probabilities_and_expected_ranks_equal_enumeration(self):
        for n_items in self.sizes:
            for alpha in ALPHAS:
                exact = np.array(naive.marginals(self.law(n_items, alpha)))
                found = self.distance.rank_probabilities(n_items, alpha)
                assert found == pytest.approx(exact, abs=self.tolerance), (n_items, alpha)
                means = self.distance.expected_ranks(n_items, alpha)
                exact_means = exact @ np.arange(1, n_items + 1)
                assert means == pytest.approx(exact_means, abs=self.tolerance), (n_items, alpha)

    @pytest.mark.parametrize("n_items", [4, 5])
    def test_draws_follow_the_exact_law(self, n_items):
        alpha, other = self.draw_alphas
        draws = self.distance.draw(n_items, alpha, 20_000, seed=5)
        assert p_value(draws, self.law(n_items, alpha)) > 1e-4
        wrong = self.distance.draw(n_items, other, 20_000, seed=5)
        assert p_value(wrong, self.law(n_items, alpha)) < 1e-6

    def test_draws_without_concentration_are_uniform(self):
        draws = self.distance.draw(3, 0.0, 6000, seed=2)
        assert p_value(draws, self.law(3, 0.0)) > 1e-4

    def test_the_same_seed_gives_the_same_draws(self):
        one, same, other = (self.distance.draw(6, 1.0, 50, seed) for seed in (3, 3, 4))
        assert (one == same).all()
        assert (one != other).any()
        assert one.dtype == np.int32

    def test_without_concentration_all_rankings_are_alike(self):
        n_items = self.n_items
        wanted = math.lgamma(n_items + 1)
        assert self.distance.log_partition(n_items, 0.0) == pytest.approx(wanted, rel=1e-9)
        equal = np.full((n_items, n_items), 1 / n_items)
        assert self.distance.rank_probabilities(n_items, 0.0) == pytest.approx(equal)

    def test_with_the_largest_alpha_there_is_one_ranking(self):
        n_items = self.n_items
        assert self.distance.log_partition(n_items, 1e9) == pytest.approx(0, abs=1e-12)
        assert self.distance.expected(n_items, 1e9) == pytest.approx(0, abs=1e-12)
        assert self.distance.draw(n_items, 1e9, 3, seed=1).tolist() == [list(center(n_items))] * 3
        certain = np.eye(n_items)
        assert self.distance.rank_probabilities(n_items, 1e9) == pytest.approx(certain, abs=1e-12)

    def test_the_alpha_of_a_mean_distance_is_found_again(self):
        for alpha in (0.3, 2.0, 8.0):
            mean = self.distance.expected(7, alpha)
            assert alpha_for_distance(self.distance, 7, mean) == pytest.approx(alpha, rel=1e-6)


class PriceChecks:
    """Tests of a distance that adds up over items."""

    def test_a_price_is_what_one_item_adds_to_the_distance(self):
        rankings, prices = naive.all_rankings(4), self.distance.prices(4)
        for ranking in rankings:
            total = sum(prices[a - 1, b - 1] for a, b in zip(ranking, rankings[7], strict=True))
            assert total == naive.DISTANCES[self.distance.name](ranking, rankings[7])

    def test_costs_are_counts_times_prices(self):
        for n_items in (1, 2, 5, 30):
            counts = np.random.default_rng(n_items).integers(0, 10**6, (n_items, n_items))
            costs = self.distance.costs(counts)
            assert (costs == counts @ self.distance.prices(n_items)).all()
            assert costs.dtype == np.int64

    def test_it_adds_up(self):
        assert distances.adds_up(self.distance)
        assert distances.get_price(self.distance.name) is self.distance


class LargeChecks:
    """Tests of ten thousand items, or of 400 uncompiled."""

    def test_many_items_are_no_trouble(self):
        n_items = 10_000 if IS_COMPILED else 400
        assert self.distance.log_partition(n_items, 0.0) == pytest.approx(math.lgamma(n_items + 1))
        assert self.distance.log_partition(n_items, 1e9) == pytest.approx(0, abs=1e-9)
        for alpha in (0.01, 1.0, 100.0, 30_000.0):
            draws = self.distance.draw(n_items, alpha, 30, seed=1)
            away = self.distance.between(draws, np.arange(1, n_items + 1))
            error = max(float(away.std()), 0.5) / math.sqrt(30)
            assert abs(away.mean() - self.distance.expected(n_items, alpha)) < 5 * error, alpha
            assert (np.sort(draws, axis=1) == np.arange(1, n_items + 1)).all()

    def test_the_expected_distance_is_the_slope_of_the_log_partition(self):
        for n_items, alpha in ((200, 5.0), (2000, 40.0), (10_000, 3.0), (10_000, 20_000.0)):
            step = 1e-3 * alpha
            high, low = (self.distance.log_partition(n_items, alpha + s) for s in (step, -step))
            slope = -(high - low) / (2 * step) * n_items
            assert self.distance.expected(n_items, alpha) == pytest.approx(slope, rel=1e-4)
