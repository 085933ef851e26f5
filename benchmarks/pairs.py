"""Comparisons: effective draws a second against a plain sampler, and the time of a sweep.

`python benchmarks/pairs.py [FILE]`: FILE has comparisons of a few people, such as those of the
beaches of Vitelli et al. (2018); without it, 60 people compare 26 pairs of 15 items each. Then
10,000 people compare 30 pairs of 50 items each. The rival is the chain of textbooks (leap-and-shift
on the consensus, one item moved within its bounds for each person) in plain Python with NumPy.
"""

import resource
import sys
import time
import warnings

import numpy as np

import pseudomallows as pm
from pseudomallows.distances import FOOTRULE
from pseudomallows.posterior.diagnostics import effective_size


def simulate(n_users, n_items, n_pairs, alpha, rng):
    """Comparisons without errors, of pairs at random."""
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng=rng)
    one = rng.integers(n_items, size=(n_users, n_pairs))
    other = (one + rng.integers(1, n_items, size=one.shape)) % n_items
    ranks = [np.take_along_axis(rankings, items, axis=1) for items in (one, other)]
    is_better = ranks[0] < ranks[1]
    users = np.repeat(np.arange(n_users), n_pairs)
    better, worse = np.where(is_better, one, other), np.where(is_better, other, one)
    columns = {"user": users, "better": better.ravel(), "worse": worse.ravel()}
    return pm.Preferences.from_pairs(columns, items=range(n_items))


def plain_chain(prefs, n_sweeps, rng):
    """The textbook's chain; yields the consensus after each sweep."""
    n_items, n_users = prefs.n_items, prefs.n_users
    before = np.zeros((n_users, n_items, n_items), dtype=bool)
    for user in range(n_users):
        before[(user, *prefs.pairs_of(user))] = True
    for middle in range(n_items):  # transitive closure
        before |= before[:, :, middle, None] & before[:, None, middle, :]
    consensus = np.empty(n_items, int)
    consensus[np.argsort(before.sum((0, 1)) - before.sum((0, 2)))] = np.arange(1, n_items + 1)
    latent, alpha = np.empty((n_users, n_items), int), 1.0
    for user in range(n_users):
        order = np.lexsort((consensus, before[user].sum(axis=0)))
        latent[user, order] = np.arange(1, n_items + 1)
    for _ in range(n_sweeps):
        for user in range(n_users):
            ranks, item = latent[user], rng.integers(n_items)
            low = max(ranks[before[user, :, item]], default=0) + 1
            high = min(ranks[before[user, item]], default=n_items + 1) - 1
            there = rng.integers(low, high + 1)
            moved = move(ranks, item, there)
            change = np.abs(moved - consensus).sum() - np.abs(ranks - consensus).sum()
            if np.log(1 - rng.random()) < -alpha / n_items * change:
                latent[user] = moved
        item = rng.integers(n_items)
        moved = move(consensus, item, (consensus[item] - 1 + rng.choice([-1, 1])) % n_items + 1)
        change = np.abs(latent - moved).sum() - np.abs(latent - consensus).sum()
        if np.log(1 - rng.random()) < -alpha / n_items * change:
            consensus = moved
        proposal = alpha * np.exp(0.1 * rng.standard_normal())
        away = np.abs(latent - consensus).sum()
        ratio = -(proposal - alpha) / n_items * away + np.log(proposal / alpha)
        ratio -= n_users * (
            FOOTRULE.log_partition(n_items, proposal) - FOOTRULE.log_partition(n_items, alpha)
        )
        if np.log(1 - rng.random()) < ratio - 0.001 * (proposal - alpha):
            alpha = proposal
        yield consensus


def move(ranks, item, there):
    """The item leaps to another rank; those between shift by one."""
    here, moved = ranks[item], ranks.copy()
    moved[(ranks > here) & (ranks <= there)] -= 1
    moved[(ranks < here) & (ranks >= there)] += 1
    moved[item] = there
    return moved


def main():
    """Print a table."""
    warnings.simplefilter("ignore", pm.ConvergenceWarning)
    rng = np.random.default_rng(1)
    small = pm.read(sys.argv[1]) if len(sys.argv) > 1 else simulate(60, 15, 26, 5.0, rng)
    pm.fit(small, "mcmc", n_draws=2, rng=1)  # compiles
    print(small)
    for errors in ("none", "bernoulli"):
        if errors == "none" and small.is_contradictory:
            continue
        started, wall = time.process_time(), time.perf_counter()
        found = pm.fit(small, "mcmc", errors=errors, n_draws=300, rng=2)
        seconds, waited = time.process_time() - started, time.perf_counter() - wall
        checks = found.diagnostics()
        rate = checks.least_effective_size / seconds
        print(
            f"  errors={errors}: {seconds:.1f} CPU s ({waited:.1f} s), R-hat "
            f"{checks.worst_rhat:.3f}, effective size {checks.least_effective_size:.0f} at the "
            f"worst item: {rate:.1f} a CPU second, 200 in {200 / rate:.1f} s"
        )
        if errors == "none":
            started = time.process_time()
            draws = np.stack(list(plain_chain(small, 4000, rng)))[1000:, None]
            seconds = time.process_time() - started
            size = float(np.min(effective_size(np.moveaxis(draws, 1, 0))))
            print(f"  plain: {seconds:.1f} CPU s, {size:.0f}: {size / seconds:.2f} a CPU second; ")
            print(f"  ratio {rate / (size / seconds):.0f}")
    large = simulate(10_000, 50, 30, 20.0, rng)
    how = {"n_draws": 5, "n_chains": 1, "thin": 1, "rng": 1}
    for name in ("footrule", "kendall"):
        seconds = []
        for warmup in (5, 45):
            started, wall = time.process_time(), time.perf_counter()
            pm.fit(large, "mcmc", distance=name, warmup=warmup, **how)
            seconds.append((time.process_time() - started, time.perf_counter() - wall))
        cpu, waited = (np.subtract(*seconds[::-1]) / 40).tolist()
        print(f"{large}, {name}: a sweep {1000 * cpu:.0f} ms of CPU, {1000 * waited:.0f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
