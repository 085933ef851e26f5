"""Votes, comparisons of one pair a person, under Kendall: nothing is latent.

The rest of a person's ranking is summed out by a closed form that depends on the difference of the
two places in the consensus alone. Votes often contradict that: the best two items may be far apart,
and those in the middle near each other. `fit` then lets every gap between neighbours have its own
size (Bradley and Terry's law), or its intervals would be too narrow.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..data.pairs import Pairs
from ..data.preferences import check_informative
from ..distances.kendall import KENDALL
from ..distances.strengths import Strengths, chi_square, fit_strengths, laplacian, ranked
from ..distances.tallies import MOVES, Counts, Proposals, Ranking, Stream
from ..distances.vote_tally import (
    HALF,
    VoteTally,
    log_likelihood_of_gaps,
    log_probabilities,
    pair_probabilities,
)
from ..engines.executors import Executor
from ..kernels.kendall.vote_moves import move_by_votes
from ..kernels.streams import start_stream, uniform
from .law import (
    Clusters,
    ClusterTally,
    Curve,
    Floats,
    Labels,
    Law,
    UserRows,
    principal_components,
)

ITEM_LIMIT, PAIR_LIMIT = 0.5, 0.05  # p-values below which gaps are free: large on purpose, since a
# needless freedom makes intervals a little wider, and a missing one far too narrow

# Draws by which two mean widths are compared: 5 of 200 are beyond each end of an interval. They
# begin at the best order, near enough for a short warmup; any seed will do, if it is always the
# same.
N_SHORT, SHORT_WARMUP, SHORT_SEED = 200, 100, 12345
WIDE = (2.5, 97.5)  # percentiles: the ends of 95 %


class Misfit(NamedTuple):
    """Whether votes contradict the law that the difference of the places says all.

    `item_chi_square`, on `item_degrees` degrees of freedom, asks whether items win more or less
    than their places say; `pair_chi_square`, on `pair_degrees`, compares all pairs. The consensus
    is fitted, so both are on the safe side of the law.
    """

    item_chi_square: float
    item_degrees: int
    pair_chi_square: float
    pair_degrees: int

    @property
    def p_values(self) -> tuple[float, float]:
        """Of the items, and of the pairs."""
        from scipy.special import chdtrc

        items = chdtrc(max(self.item_degrees, 1), self.item_chi_square)
        pairs = chdtrc(max(self.pair_degrees, 1), self.pair_chi_square)
        return float(items), float(pairs)

    @property
    def p_value(self) -> float:
        """The smaller of the two p-values, times two."""
        return min(1.0, 2 * min(self.p_values))

    @property
    def is_doubtful(self) -> bool:
        """Is either p-value so small that gaps had better be free?"""
        items, pairs = self.p_values
        return items < ITEM_LIMIT or pairs < PAIR_LIMIT


class VoteRows(UserRows):
    """All votes."""

    def __init__(self, prefs: Pairs):
        self.prefs, self.weights = prefs, prefs.weights
        self.numbers = np.cumsum(self.weights) - self.weights

    def log_likelihoods(self, tables: Clusters) -> Floats:
        pairs = zip(tables.consensus, tables.alpha.tolist(), strict=True)
        return np.stack([vote_log_likelihoods(self.prefs, *each) for each in pairs], axis=1)


class VotesOfCluster(ClusterTally):
    """Votes, by Kendall's law; with free gaps the consensus is drawn by strengths, anew in each
    sweep, and alpha moves given it, as if gaps were equal."""

    def __init__(self, law: "VoteLaw", votes: VoteTally, n_users: int):
        self.law, self.votes, self.n_users = law, votes, n_users

    def curve(self, consensus: Ranking) -> Curve:
        by_gap, n_items = self.votes.votes_by_gap(consensus), self.law.n_items
        return lambda alpha: log_likelihood_of_gaps(by_gap, alpha / n_items)

    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        if self.law.has_free_gaps:
            seed = int(uniform(stream) * 2**53)
            consensus[:] = self.law.strengths.draw(np.random.default_rng(seed))
            return
        votes = self.votes.votes._replace(unit=HALF * beta)
        code, rate = MOVES[moves.kind or "swap"], alpha / self.law.n_items
        move_by_votes(stream, votes, rate, code, moves.leap, moves.number, consensus)

    def best(self, alpha: float) -> Ranking:
        """The likeliest consensus, or a good one; with free gaps, the order of the strengths."""
        law = self.law
        return ranked(law.strengths.strengths) if law.has_free_gaps else self.votes.best()

    def evidence(self, alpha: float) -> Counts:
        return np.empty(0, dtype=np.int64)


class VoteLaw(Law):
    """People who compared two items each; `gaps` between neighbours are "equal", "free", or, with
    "auto", free if the votes contradict equal ones."""

    def __init__(self, prefs: Pairs, executor: Executor | None = None, gaps: str = "auto"):
        check_informative(prefs.is_informative)
        self.informative = prefs.take((prefs.n_comparisons > 0) & (prefs.weights > 0))
        weights = self.informative.weights
        super().__init__(prefs.n_items, KENDALL, [VoteRows(self.informative)], [weights], executor)
        self.gaps = gaps
        self.votes = VoteTally.of(self.informative.wins(), self.informative.tied())

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        """Share of its votes that an item loses, with one more win and loss for each."""
        lost = self.votes.rank_sums() * HALF
        seen = (self.votes.counts.sum(axis=1) * HALF) + lost
        return np.asarray((lost + 1) / (seen + 2))

    def features(self, n_features: int) -> Floats:
        """Principal components of who won and who lost."""
        rows, entries = np.arange(self.n_rows), self.informative
        table = np.zeros((self.n_rows, self.n_items))
        table[rows, entries.better], table[rows, entries.worse] = entries.counts, -entries.counts
        return principal_components(table - table.mean(axis=0), n_features)

    def select(self, rows: Counts) -> Self:
        return type(self)(self.informative.take(rows), self.executor, self.gaps)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        raise NotImplementedError

    def tables(self, clusters: Clusters) -> Clusters:
        return clusters

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        return (0,)

    def tallies(
        self, labels: Labels | None, n_clusters: int, before: Sequence[ClusterTally] = ()
    ) -> list[ClusterTally]:
        """That of all votes: there are no clusters of them."""
        return [VotesOfCluster(self, self.votes, self.n_users)]

    @functools.cached_property
    def misfit(self) -> Misfit:
        """Whether the votes contradict equal gaps, at the best consensus and alpha."""
        return misfit_of(self.votes, self.votes.best())

    @functools.cached_property
    def strengths(self) -> Strengths:
        """The law with free gaps."""
        return fit_strengths(self.votes.counts * HALF)

    @functools.cached_property
    def has_free_gaps(self) -> bool:
        """Has every gap between neighbours its own size?"""
        return self.gaps == "free" or (self.gaps == "auto" and self.misfit.is_doubtful)

    def notes(self) -> dict[str, Any]:
        """For the settings of a posterior: how the votes fit the law, and what was done."""
        misfit, free = self.misfit, self.has_free_gaps
        noted: dict[str, Any] = {
            "gaps": "free" if free else "equal",
            "ties": "half a win for each",
            "p_value": misfit.p_value,
            **misfit._asdict(),
        }
        if free:
            noted["widened"] = self._widened()
            noted["dispersion"] = self.strengths.dispersion
            noted["strengths"] = self.strengths.strengths.tolist()
        return {"votes": noted}

    def _widened(self) -> float:
        """How many times as wide the intervals of ranks are with free gaps: mean of 95 % ones."""
        rng, draws = np.random.default_rng(SHORT_SEED), []
        free = [self.strengths.draw(rng) for _ in range(N_SHORT)]
        consensus, rate = self.votes.best(), self.votes.best_rate(self.votes.best())
        stream = np.empty(1, dtype=np.uint64)
        start_stream(SHORT_SEED, 0, 0, stream)
        for number in range(SHORT_WARMUP + N_SHORT):
            self.votes.move(stream, rate, Proposals(10 * self.n_items), consensus)
            if number >= SHORT_WARMUP:
                draws.append(consensus.copy())
        return mean_width(np.array(free)) / mean_width(np.array(draws))


def vote_log_likelihoods(prefs: Pairs, consensus: Ranking, alpha: float) -> Floats:
    """Log probability of one person of each row; of a tie, the mean of both answers; 0 of rows
    that say nothing."""
    n_items, ranks = len(consensus), np.asarray(consensus, dtype=np.int64)
    table = log_probabilities(n_items, alpha / n_items)
    gaps = ranks[prefs.worse] - ranks[prefs.better]
    won, lost = table[n_items - 1 + gaps], table[n_items - 1 - gaps]
    values = np.zeros(prefs.n_users)
    said = prefs.counts * won + prefs.ties * HALF * (won + lost)
    np.add.at(values, prefs.owners, said)
    return values


def mean_width(draws: Ranking) -> float:
    """Mean over items of how many ranks their 95 % interval has."""
    low, high = np.percentile(draws, WIDE, axis=0)
    return float((np.ceil(high) - np.floor(low) + 1).mean())


def misfit_of(tally: VoteTally, consensus: Ranking) -> Misfit:
    """How far votes are from Kendall's law around a consensus, at the alpha that is best."""
    wins, n_items = tally.counts * HALF, tally.n_items
    votes = wins + wins.T
    probabilities = pair_probabilities(consensus, tally.best_rate(consensus))
    residuals = (wins - votes * probabilities).sum(axis=1)  # of each item: wins beyond its place
    bend = laplacian(votes * probabilities * (1 - probabilities))
    items = float(residuals @ np.linalg.lstsq(bend, residuals, rcond=None)[0])
    value, n_pairs = chi_square(wins, probabilities)
    return Misfit(items, n_items - 1, value, max(n_pairs - 1, 1))
