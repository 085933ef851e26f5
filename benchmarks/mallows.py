"""The exact footrule Mallows distribution against the same algorithm in NumPy. Five seconds.

The rival walks along the items in Python and treats all numbers of open pairs k, or all draws, at
once in NumPy: it is vectorised wherever that is natural. The second rival is what one does without
the algorithm: a Metropolis chain that swaps two ranks, 10 n proposals for each draw. Best of
`--repeats` runs, rivals in turn, compiled code warm. The answers of the rivals are checked.
"""

from collections.abc import Iterator

import numpy as np

import pseudomallows as pm
from timing import arguments, print_table, race, words

N_ITEMS, ALPHA, N_DRAWS = 200, 10.0, 1000
N_CHAIN_DRAWS = 10  # the chain makes these, and its time is scaled to N_DRAWS
SIZES = (200, 2000, 10_000)


def state_probabilities(n_items: int, rate: float) -> Iterator[tuple[np.ndarray, float]]:
    """The exact sweep: after each place, weights of k open pairs (sum 1), log of the sum."""
    k = np.arange(n_items // 2 + 2.0)
    stay, decay = 2 * k + 1, np.exp(-2 * rate * k)
    state = np.zeros(len(k) + 1)
    state[0] = 1.0
    for t in range(1, n_items + 1):
        n_states = min(t, n_items - t) + 1
        new = np.zeros(len(state))
        new[:n_states] = state[:n_states] * stay[:n_states]
        new[1:n_states] += state[: n_states - 1] * k[1:n_states]
        new[:n_states] += state[1 : n_states + 1] * k[1 : n_states + 1]
        new[:n_states] *= decay[:n_states]
        total = new[:n_states].sum()
        new[:n_states] /= total
        yield new, float(np.log(total))
        state = new


def numpy_log_partition(n_items: int, alpha: float) -> float:
    """Log of the normalising constant."""
    return sum(log_total for _, log_total in state_probabilities(n_items, alpha / n_items))


def numpy_draw(n_items: int, alpha: float, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Exact draws around 1..n: the path backwards, partners at random, all draws side by side."""
    start = np.eye(1, n_items // 2 + 3)
    states = np.concatenate(
        [start, [state for state, _ in state_probabilities(n_items, alpha / n_items)]]
    )
    ranks = np.empty((n_draws, n_items), dtype=np.int32)
    open_items, open_ranks = np.empty((2, n_draws, n_items), dtype=np.int64)
    k = np.zeros(n_draws, dtype=np.int64)  # open items, and open ranks, of each draw
    for place in range(n_items - 1, -1, -1):
        old = states[place]
        both_take, both_wait, stay = old[k - 1] * k, old[k + 1] * (k + 1), old[k] * (2 * k + 1)
        u = rng.random(n_draws) * (both_take + both_wait + stay)
        step = (u < both_wait).astype(np.int64) - (u >= both_wait + stay)
        way = rng.integers(0, 2 * k + 1)  # of those who stay: 0 together, up to k a rank, an item
        together = (step == 0) & (way == 0)
        takes_rank = (step < 0) | (step == 0) & (way > 0) & (way <= k)  # the item does, here
        takes_item = (step < 0) | (step == 0) & (way > k)  # the rank does, here
        ranks[together, place] = place + 1
        ranks[takes_rank, place] = take(open_ranks, takes_rank, k, rng) + 1
        ranks[takes_item, take(open_items, takes_item, k, rng)] = place + 1
        add(open_items, ~(together | takes_rank), k - takes_item, place)
        add(open_ranks, ~(together | takes_item), k - takes_rank, place)
        k += step
    return ranks


def take(waiting: np.ndarray, which: np.ndarray, k: np.ndarray, rng: np.random.Generator):
    """Take one of the k that wait, in each of these draws; the last fills its place."""
    draws = np.flatnonzero(which)
    slots = rng.integers(0, k[draws])
    taken = waiting[draws, slots]
    waiting[draws, slots] = waiting[draws, k[draws] - 1]
    return taken


def add(waiting: np.ndarray, which: np.ndarray, n_waiting: np.ndarray, place: int) -> None:
    """Let the one at this place wait, in each of these draws."""
    draws = np.flatnonzero(which)
    waiting[draws, n_waiting[draws]] = place


def metropolis_draw(
    n_items: int, alpha: float, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """A chain that swaps two ranks, 10 n proposals for each draw, started at the consensus."""
    ranking = list(range(n_items))  # a list: single numbers are slow in an array
    draws = np.empty((n_draws, n_items), dtype=np.int32)
    for draw in range(n_draws):
        pairs = rng.integers(0, n_items, (10 * n_items, 2)).tolist()
        limits = (-np.log(rng.random(10 * n_items)) * n_items / alpha).tolist()
        for (i, j), limit in zip(pairs, limits, strict=True):
            a, b = ranking[i], ranking[j]
            if abs(b - i) + abs(a - j) - abs(a - i) - abs(b - j) <= limit:
                ranking[i], ranking[j] = b, a
        draws[draw] = np.array(ranking) + 1
    return draws


def mean_distance(draws: np.ndarray) -> tuple[float, float]:
    """Mean distance to 1..n, and its standard error for independent draws."""
    distances = np.abs(draws - np.arange(1, draws.shape[1] + 1)).sum(axis=1)
    return float(distances.mean()), float(distances.std() / np.sqrt(len(draws)))


def compare_draws(repeats: int, rng: np.random.Generator) -> None:
    """Time N_DRAWS draws of each rival."""
    law = pm.Mallows(range(1, N_ITEMS + 1), ALPHA)
    ours, same, chain = "pseudomallows", "NumPy, same algorithm", "Python, Metropolis *"
    rivals = {
        ours: lambda: law.draw(N_DRAWS, rng),
        same: lambda: numpy_draw(N_ITEMS, ALPHA, N_DRAWS, rng),
        chain: lambda: metropolis_draw(N_ITEMS, ALPHA, N_CHAIN_DRAWS, rng),
    }
    distances = {name: mean_distance(rival()) for name, rival in rivals.items()}
    for mean, error in (distances[ours], distances[same]):
        assert abs(mean - law.expected_distance()) < 5 * error, "the draws have a wrong distance"
    times = race(rivals, repeats)
    times[chain] *= N_DRAWS / N_CHAIN_DRAWS
    rows = []
    for name, (mean, error) in distances.items():
        ratio = f"{times[name] / times[ours]:.1f} x"
        rows.append([name, words(times[name]), ratio, f"{mean:.0f} ± {error:.0f}"])
    print(f"{N_DRAWS} draws, n = {N_ITEMS}, alpha = {ALPHA:g}; best of {repeats}")
    print_table(["draws", "time", "ratio", "mean distance"], rows)
    print(f"Exact mean distance {law.expected_distance():.1f}.")
    print(f"* correlated draws; time scaled up from {N_CHAIN_DRAWS} draws without warmup.\n")


def compare_partitions(repeats: int) -> None:
    """Time log_partition, which ours computes along with the expected distance."""
    rows, calls = [], iter(np.linspace(1, 1.001, 10_000))  # never the same alpha: no answer is kept
    for n_items in SIZES:
        consensus = np.arange(1, n_items + 1)
        ours, theirs = (
            pm.Mallows(consensus, ALPHA).log_partition,
            numpy_log_partition(n_items, ALPHA),
        )
        rivals = {
            "ours": lambda: pm.Mallows(consensus, ALPHA * next(calls)).log_partition,  # noqa: B023
            "NumPy": lambda: numpy_log_partition(n_items, ALPHA),  # noqa: B023
        }
        assert abs(ours / theirs - 1) < 1e-9, f"log partitions differ: {ours}, {theirs}"
        times = race(rivals, 1 if n_items == max(SIZES) else repeats)
        ratio = f"{times['NumPy'] / times['ours']:.1f} x"
        rows.append([str(n_items), f"{ours:.6f}", *map(words, times.values()), ratio])
    print(f"log_partition, alpha = {ALPHA:g}; best of {repeats} (largest n: one run)")
    print_table(["n", "value", "pseudomallows", "NumPy", "ratio"], rows)


def main() -> None:
    """Draws, then partition functions."""
    options = arguments(__doc__, repeats=5, seed=1)
    compare_draws(options.repeats, np.random.default_rng(options.seed))
    compare_partitions(options.repeats)


if __name__ == "__main__":
    main()
