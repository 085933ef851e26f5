"""Where the users of a large catalogue would rather be, whatever the places of the items are.

Labels drawn given the consensuses keep a user of rare items where they are; see
`kernels.kendall.moves_of_users`. So after each draw of labels some users try another cluster, where
the places of their items change with them. Which one they try is drawn by chances that are fixed
when the chain begins, so that the moves leave the posterior as it is, however rough these are: how
well each cluster would suit them if their items could take any place of items as popular. A move
exchanges the label and the cluster that was tried, so those who may move are the same before and
after it, and a few of many may be chosen.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...files.saved import Saved
from ...kernels.kendall.moves_of_users import N_CLASSES, Side, move_user
from ...kernels.streams import CHAIN, start_stream
from ...latent.matched.users import LabelDraw, Labels, MatchedLaws, MatchedUsers, Mover
from .matched_cluster import MatchedCluster

SOME = 2.0  # users in a round who try any cluster

Floats = NDArray[np.float64]


class Homes:
    """``chances[row, cluster]`` by which a user tries a cluster."""

    def __init__(self, chances: NDArray[np.float32]):
        self.chances = chances
        rows = np.arange(len(chances))
        self._best = chances.argmax(axis=1).astype(np.int32)
        self._doubts = chances.sum(axis=1, dtype=np.float64) - chances[rows, self._best]

    @classmethod
    def find(
        cls,
        users: MatchedUsers,
        laws: MatchedLaws,
        labels: Labels,
        clusters: list[MatchedCluster],
    ) -> "Homes":
        """Those of a state of a chain with labels, which the tallies of the clusters count."""
        means = [class_means(_side_of(cluster)) for cluster in clusters]
        with_all = np.stack([each.with_all for each in means], axis=1)
        changes = np.stack([each.without_one for each in means], axis=1) - with_all
        free = laws._replace(log_weights=with_all[None], slopes=None)
        chances = users.free_memberships(free, labels, changes)
        share = min(0.5, SOME / len(chances))
        chances *= 1 - share
        chances += share / chances.shape[1]
        return cls(chances)

    @classmethod
    def resume(cls, saved: Saved, shape: tuple[int, int]) -> "Homes":
        """Those of a checkpoint."""
        chances = saved.array("homes", np.float32, shape)
        saved.check_shares("homes", chances)
        saved.check_range("homes", chances, 1e-30, 1.0)
        return cls(chances)

    def draw_tallies(
        self,
        users: MatchedUsers,
        laws: MatchedLaws,
        draw: LabelDraw,
        clusters: list[MatchedCluster],
        rng: np.random.Generator,
    ) -> None:
        """The users draw labels, some try another cluster, and the clusters count them."""
        wanted, first = self.draw(rng), int(rng.integers(len(self._best)))
        tallies, movers = users.draw_and_list(laws, draw, wanted, first)
        for cluster, tally in zip(clusters, tallies, strict=True):
            cluster.tally = tally
        self.move(movers, wanted, laws, clusters, rng)

    def draw(self, rng: np.random.Generator) -> Labels:
        """``wanted[row]``: the cluster that a user tries."""
        u, wanted = rng.random(len(self._best)), self._best.copy()
        rows = np.flatnonzero(u < self._doubts)
        others = self.chances[rows].astype(np.float64)
        others[np.arange(len(rows)), self._best[rows]] = 0.0
        places = (np.cumsum(others, axis=1) <= u[rows, None]).sum(axis=1)
        wanted[rows] = np.minimum(places, others.shape[1] - 1)
        return wanted

    def move(
        self,
        movers: list[Mover],
        wanted: Labels,
        laws: MatchedLaws,
        clusters: list[MatchedCluster],
        rng: np.random.Generator,
    ) -> None:
        """Let users try the clusters that they want; these count them."""
        if not movers:
            return
        stream = np.empty(1, dtype=np.uint64)
        start_stream(int(rng.integers(2**63)), 0, CHAIN, stream)
        for cluster in clusters:
            cluster.consensus = cluster.consensus.copy()  # draws may hold the old one
        sides = [_side_of(cluster) for cluster in clusters]
        room = np.empty(len(sides[0].ranks), dtype=np.int32)
        log_odds = laws.constants + laws.log_shares
        for row, old, place, items in movers:
            new = wanted[row]
            odds = log_odds[place, new] - log_odds[place, old]
            odds += self._log_chance(row, old) - self._log_chance(row, new)
            if move_user(stream, items, odds, sides[old], sides[new], room):
                clusters[old].tally.n_users[place] -= 1
                clusters[new].tally.n_users[place] += 1

    def _log_chance(self, row: int, cluster: int) -> float:
        if cluster == self._best[row]:
            return math.log1p(-float(self._doubts[row]))
        return math.log(float(self.chances[row, cluster]))


class ClassMeans(NamedTuple):
    """Log mean weights of the places that each item can take: of those of items with as many
    clicks, ``with_all[item]``, and of those with one click less, ``without_one[item]``."""

    with_all: Floats
    without_one: Floats


def class_means(side: Side) -> ClassMeans:
    """Those of a cluster; items with many clicks stay where they are.

    >>> side = Side(0.5, np.array([0, 0, 1, 9]), np.array([3, 4, 2, 1], dtype=np.int32))
    >>> both = class_means(side)
    >>> bool(np.isclose(both.with_all[0], np.log((np.exp(-1.5) + np.exp(-2)) / 2)))
    True
    >>> both.with_all[2:].tolist(), bool(both.without_one[2] == both.with_all[0])
    ([-1.0, -0.5], True)
    """
    own: Floats = -side.lam * side.ranks.astype(np.float64)
    with_all, without_one = own.copy(), own.copy()
    for n_clicks in range(N_CLASSES):
        logs = own[side.counts == n_clicks]
        if len(logs):
            highest = logs.max()
            mean = highest + math.log(np.exp(logs - highest).mean())
            with_all[side.counts == n_clicks] = mean
            without_one[side.counts == n_clicks + 1] = mean
    return ClassMeans(with_all, without_one)


def _side_of(cluster: MatchedCluster) -> Side:
    n_items = len(cluster.consensus)
    return Side(cluster.alpha / n_items, cluster.tally.counts[0], cluster.consensus)
