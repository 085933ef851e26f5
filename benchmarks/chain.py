"""The exact Markov chain at 100 and at 100,000 users: the same time a draw. Half a minute.

A draw is one sweep of 10 n proposals to swap two ranks, alpha fixed. Ours sees the n x n matrix of
costs alone; the time is that of `Chain.sweep`, the counting of ranks before the first sweep left
out and shown on its own. The rival visits every user at each proposal, as BayesMallows does, in
NumPy, though only for the two items that change. Best of `--repeats` runs, all chains in turn,
compiled code warm. The mean distances of the users to the draws of both chains must agree.

At 100,000 users the posterior is a point, and refusing hopeless proposals has a time of its own. So
the last row has as many users, and an alpha that makes its posterior as wide as that of 100.
"""

from functools import partial

import numpy as np

import pseudomallows as pm
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.chain import Chain, Moves
from pseudomallows.sampling.start import start_one
from timing import arguments, best_of, print_table, race, words

N_ITEMS, ALPHA = 50, 5.0  # of the data
N_MOVES = 10 * N_ITEMS
N_DRAWS = 200  # of ours, in each run
SETTINGS = [(100, ALPHA, 20), (100_000, ALPHA, 1), (100_000, ALPHA / 1000, 1)]  # last: rival draws


class UserChain:
    """A Metropolis chain that visits all users at each proposal."""

    def __init__(self, rankings: np.ndarray, alpha: float, consensus: np.ndarray, rng):
        self.ranks = np.ascontiguousarray(rankings.T)  # ranks[item]: one line of memory an item
        self.alpha, self.consensus, self.rng = alpha, consensus.copy(), rng

    def sweep(self, adapt: bool) -> None:
        """Make N_MOVES proposals; there is nothing to adapt."""
        pairs = self.rng.integers(0, N_ITEMS, (N_MOVES, 2))
        limits = -np.log(self.rng.random(N_MOVES)) * N_ITEMS / self.alpha
        for (i, j), limit in zip(pairs, limits, strict=True):
            a, b = self.consensus[i], self.consensus[j]
            change = self.distance(i, b) - self.distance(i, a)
            change += self.distance(j, a) - self.distance(j, b)
            if change <= limit:
                self.consensus[i], self.consensus[j] = b, a

    def distance(self, item: int, rank: int) -> int:
        """Sum over the users of the distance of one item from a rank."""
        return np.abs(self.ranks[item] - rank).sum()


class Contest:
    """Our chain and its rival on one data set."""

    def __init__(self, prefs: pm.Preferences, alpha: float, rival_draws: int, rng):
        self.prefs, self.alpha, self.rival_draws = prefs, alpha, rival_draws
        law, moves = make_law(prefs), Moves(n_moves=N_MOVES)
        self.ours = Chain(law, start_one(law, alpha, moves, "map", rng), moves, rng)
        self.rival = UserChain(prefs.rankings, alpha, self.ours.state.consensus[0], rng)

    def check(self, n_draws: int = 40) -> str:
        """Mean distance of a user to draws of ours and of the rival; they must agree.

        The first half of the draws is the warmup.
        """
        distances = np.empty((2, n_draws))
        for draw in range(n_draws):
            for row, chain in enumerate((self.ours, self.rival)):
                run(chain, self.rival_draws)
                distances[row, draw] = np.abs(self.prefs.rankings - consensus_of(chain)).sum()
        kept = distances[:, n_draws // 2 :]
        ours, rival = kept.mean(axis=1)
        error = np.hypot(*kept.std(axis=1)) / np.sqrt(n_draws / 8)  # as if one in 4 were new
        assert abs(ours - rival) <= 4 * error, f"the chains differ: {kept}"
        return f"{ours / self.prefs.n_users:.2f} / {rival / self.prefs.n_users:.2f}"


def consensus_of(chain: Chain | UserChain) -> np.ndarray:
    """Where a chain is."""
    return chain.state.consensus[0] if isinstance(chain, Chain) else chain.consensus


def run(chain: Chain | UserChain, n_sweeps: int) -> None:
    """Move a chain."""
    for _ in range(n_sweeps):
        chain.sweep(adapt=False)


def make_contests(rng: np.random.Generator) -> list[Contest]:
    """One for each setting; settings with as many users share the data."""
    sizes = sorted({n_users for n_users, _, _ in SETTINGS})
    data = {size: pm.simulate_rankings(size, N_ITEMS, ALPHA, rng=rng).preferences for size in sizes}
    return [Contest(data[n_users], alpha, few, rng) for n_users, alpha, few in SETTINGS]


def time_draws(contests: list[Contest], repeats: int) -> dict[Chain | UserChain, float]:
    """Seconds a draw of every chain, all in one race."""
    n_draws = {contest.ours: N_DRAWS for contest in contests}
    n_draws |= {contest.rival: contest.rival_draws for contest in contests}
    times = race({chain: partial(run, chain, n) for chain, n in n_draws.items()}, repeats)
    return {chain: times[chain] / n for chain, n in n_draws.items()}


def main() -> None:
    """A row for each setting."""
    options = arguments(__doc__, repeats=20, seed=1)
    contests = make_contests(np.random.default_rng(options.seed))
    checks = [contest.check() for contest in contests]
    times = time_draws(contests, options.repeats)
    rows = []
    for contest, check in zip(contests, checks, strict=True):
        count = best_of(partial(count_ranks, contest.prefs), options.repeats)
        ours, rival = times[contest.ours], times[contest.rival]
        row = [f"{contest.prefs.n_users:,}", f"{contest.alpha:g}", words(count), words(ours)]
        rows.append([*row, words(rival), f"{rival / ours:,.0f} x", check])
    print(f"n = {N_ITEMS}, {N_MOVES} proposals a draw; best of {options.repeats}")
    header = ["users", "alpha", "count once", "ours / draw", "NumPy / draw", "ratio"]
    print_table([*header, "distance a user"], rows)


def count_ranks(prefs: pm.Preferences) -> np.ndarray:
    """What a fit does once, before the first draw."""
    return make_law(prefs).tallies(None, 1)[0].known.costs


if __name__ == "__main__":
    main()
