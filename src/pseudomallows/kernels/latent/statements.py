"""What users say of pairs of items, "this rather than that", and how likely it is.

Given a user's ranking, a statement is right, if the better item is before the other, or wrong.
`right[apart]` and `wrong[apart]` are the log probabilities of both, for items so many places apart.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled

NEVER = -1e9  # log probability of what cannot be: unlike -inf, its differences are numbers


class Statements(NamedTuple):
    """What the user of a row says of an item is from `starts[row] + firsts[row, item]` to
    `starts[row] + firsts[row, item + 1]`: the other item, how often the item was the better one,
    and how often the worse one. Each pair is there twice, once with each of its items. Without any
    statement at all, `starts` and `firsts` are empty."""

    starts: NDArray[np.int64]
    firsts: NDArray[np.int32]
    others: NDArray[np.int32]
    wins: NDArray[np.int32]
    losses: NDArray[np.int32]


class ErrorLaw(NamedTuple):
    """`right` and `wrong` as above; whether no statement is wrong, and whether it does not matter
    how far apart the items are."""

    right: NDArray[np.float64]
    wrong: NDArray[np.float64]
    is_strict: bool
    is_even: bool


@compiled
def log_probability(errors, here, there, wins, losses):
    """Log probability of what is said of an item at one place, and another at another."""
    if here < there:
        return wins * errors.right[there - here] + losses * errors.wrong[there - here]
    return wins * errors.wrong[here - there] + losses * errors.right[here - there]


@compiled
def log_ratio_of_exchange(said, row, errors, ranks, one, other):
    """How the log probability of what a user says changes if two items exchange their ranks."""
    start, change = said.starts[row], 0.0
    for item, partner in ((one, other), (other, one)):
        here, there = np.int64(ranks[item]), np.int64(ranks[partner])  # one type: compiled once
        for place in range(start + said.firsts[row, item], start + said.firsts[row, item + 1]):
            third, wins, losses = said.others[place], said.wins[place], said.losses[place]
            if third != partner:
                rank = np.int64(ranks[third])
                change += log_probability(errors, there, rank, wins, losses)
                change -= log_probability(errors, here, rank, wins, losses)
            elif item == one:  # their own pair, once
                change += log_probability(errors, there, here, wins, losses)
                change -= log_probability(errors, here, there, wins, losses)
    return change


@compiled
def free_places(said, row, ranks, item):
    """The lowest and the highest rank that an item may leap to, what the user says being true."""
    low, high, start = 1, len(ranks), said.starts[row]
    for place in range(start + said.firsts[row, item], start + said.firsts[row, item + 1]):
        if said.wins[place] > 0:
            high = min(high, ranks[said.others[place]] - 1)
        if said.losses[place] > 0:
            low = max(low, ranks[said.others[place]] + 1)
    return low, high


@compiled
def rank_after(rank, here, there):
    """The rank of an item after the one at `here` has leapt to `there`."""
    if rank == here:
        return there
    if here < rank <= there:
        return rank - 1
    return rank + 1 if there <= rank < here else rank


@compiled
def log_ratio_of_leap(said, row, errors, ranks, holders, here, there):
    """How the log probability of what a user says changes if the item at rank `here` leaps to
    `there`, and those between shift by one; `holders[rank - 1]` has the rank now."""
    start, change, side = said.starts[row], 0.0, 1 if there > here else -1
    for rank in range(here, here + side if errors.is_even else there + side, side):
        item, after = holders[rank - 1], rank_after(rank, here, there)
        for place in range(start + said.firsts[row, item], start + said.firsts[row, item + 1]):
            other = np.int64(ranks[said.others[place]])
            moved = rank_after(other, here, there)
            if errors.is_even and moved == other:
                continue
            wins, losses = said.wins[place], said.losses[place]
            grown = log_probability(errors, after, moved, wins, losses)
            grown -= log_probability(errors, rank, other, wins, losses)
            change += 0.5 * grown if moved != other and not errors.is_even else grown
    return change


@compiled
def count_errors(said, latent, counts):
    """Add to `counts[apart, 0]` the statements that are right, and to `counts[apart, 1]` the wrong
    ones, of items so many places apart."""
    for row in range(len(latent)):
        ranks, start = latent[row], said.starts[row]
        for item in range(len(ranks)):
            for place in range(start + said.firsts[row, item], start + said.firsts[row, item + 1]):
                apart = ranks[said.others[place]] - ranks[item]
                if apart > 0:  # each pair once
                    counts[apart, 0] += said.wins[place]
                    counts[apart, 1] += said.losses[place]


@compiled
def first_rankings(said, consensus, latent):
    """Fill `latent` with rankings near a consensus that agree with what is said, where they can:
    rank by rank, the item that has lost least often to those that are left."""
    n_items = len(consensus)
    open_losses, is_left = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.bool_)
    for row in range(len(latent)):
        start, is_left[:], open_losses[:] = said.starts[row], True, 0
        for item in range(n_items):
            for place in range(start + said.firsts[row, item], start + said.firsts[row, item + 1]):
                open_losses[item] += said.losses[place]
        for rank in range(1, n_items + 1):
            best = -1
            for item in range(n_items):
                if not is_left[item]:
                    continue
                if best >= 0 and open_losses[item] == open_losses[best]:
                    best = item if consensus[item] < consensus[best] else best
                elif best < 0 or open_losses[item] < open_losses[best]:
                    best = item
            is_left[best], latent[row, best] = False, rank
            for place in range(start + said.firsts[row, best], start + said.firsts[row, best + 1]):
                open_losses[said.others[place]] -= said.wins[place]
