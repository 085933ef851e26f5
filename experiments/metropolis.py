"""The paper's opponent: latent rankings of clicks that a chain keeps and changes by swaps."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

import pseudomallows as pm
from pseudomallows.distances import FOOTRULE
from pseudomallows.distances.tallies import Proposals, RankTally
from pseudomallows.kernels.click_rows import ClickRows, clicks_of
from pseudomallows.kernels.moves import accepts
from pseudomallows.kernels.streams import CHAIN, Streams, below, start_stream, start_user
from pseudomallows.laws.law import click_rankings
from pseudomallows.rankings import rank_randomly


class MetropolisChain:
    """Users of weight 1; alpha is known, and the consensus begins anywhere.

    A step is one swap in the latent ranking of each user, then one leap-and-shift of the consensus
    given all of these. At first clicked items come before the others, both in the order of the
    consensus.
    """

    def __init__(self, clicks: pm.Clicks, alpha: float, rng: np.random.Generator):
        n_items = clicks.n_items
        self.consensus = rank_randomly(np.zeros(n_items), rng)
        self.latent = click_rankings(clicks, self.consensus.astype(np.float64))
        self._clicks = ClickRows(clicks.starts, clicks.codes)
        self._rate, self._leap = alpha / n_items, max(1, n_items // 5)
        self._seed, self.n_steps = int(rng.integers(2**63)), 0

    def run(self, n_steps: int) -> None:
        """So many steps."""
        for _ in range(n_steps):
            self.n_steps += 1
            self._step()

    def _step(self) -> None:
        n_users, n_items = self.latent.shape
        everyone, ones = np.arange(n_users), np.ones(n_users, dtype=np.int64)
        streams = Streams(self._seed, self.n_steps, everyone, ones)
        counts: NDArray[np.int64] = np.zeros((n_items, n_items), dtype=np.int64)
        swap_users(streams, self._clicks, self.consensus, self._rate, self.latent, counts)
        stream = np.empty(1, dtype=np.uint64)
        start_stream(self._seed, self.n_steps, CHAIN, stream)
        tally = RankTally(FOOTRULE, counts)
        tally.move(stream, self._rate, Proposals(1, "leap_and_shift", self._leap), self.consensus)


@njit(cache=True, nogil=True)
def swap_users(streams, clicks, consensus, rate, latent, counts):
    """Metropolis steps on the latent rankings, as in the paper, and their `counts`.

    Each step exchanges the ranks of two items, both clicked or both not, of one user.
    """
    n_items = len(consensus)
    stream, clicked = np.empty(1, dtype=np.uint64), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(latent)):
        start_user(streams, row, 0, stream)
        mine, ranks = clicks_of(clicks, row), latent[row]
        clicked[mine] = True
        one, other = below(stream, n_items), below(stream, n_items)
        if one != other and clicked[one] == clicked[other]:
            change = abs(ranks[one] - consensus[other]) + abs(ranks[other] - consensus[one])
            change -= abs(ranks[one] - consensus[one]) + abs(ranks[other] - consensus[other])
            if accepts(stream, -rate * change):
                ranks[one], ranks[other] = ranks[other], ranks[one]
        clicked[mine] = False
        for item in range(n_items):
            counts[item, ranks[item] - 1] += 1
