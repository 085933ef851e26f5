"""Users known by clicks, under distances whose sums over latent rankings have no short way:
Spearman's and Ulam's. The latent ranking of a user walks, and so do the user's cluster and, for a
new user, the draw of the posterior.

Take the clicked items and then the others, both in the order of a consensus: that is the consensus
aligned with the user. A ranking is kept as `seats[place]`, the rank less 1 of the item at that
place of the aligned consensus. So seats say a ranking around any consensus, each its own, and what
is near one is near the others. For each consensus, seats and rankings are one to one: given the
seats, a cluster or a draw has a probability proportional to its weight times that of the ranking
which the seats say around it, and is drawn by that (Gibbs). A new user may move to the draw that is
visited or stay at the present one; as visits are random, each may be proposed from the other.

lam is alpha / n_items; the consensus is given as an ordering.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..chain import accepts, choose_pair
from ..click_rows import clicks_of
from ..distances.ulam import longest_rise
from ..streams import MIX_1, STEP, mix, start_stream, uniform

SPEARMAN, ULAM = 0, 1
ONE_BIT = np.uint64(1)


class WalkLaws(NamedTuple):
    """Draws of a posterior: `orderings[draw, cluster, place]` of the consensus, `lams[draw,
    cluster]`, and `logs[draw, cluster]`, the log of its weight less the log partition function."""

    kind: int
    orderings: NDArray[np.int32]
    lams: NDArray[np.float64]
    logs: NDArray[np.float64]


class Visits(NamedTuple):
    """What is visited: `draws[walker, visit]`, which count `weights[walker, visit]`; visits are
    told apart by their numbers, from `first` on. New users may stay where they are. So many sweeps
    come at the very beginning, before the ranks of a visit are seen, and with a look after each."""

    draws: NDArray[np.int64]
    weights: NDArray[np.float64]
    seed: int
    first: int
    is_new: bool
    n_first: int
    n_start: int
    n_seen: int


class Walkers(NamedTuple):
    """Where the walkers of each row are: `seats[row, walker, place]`, -1 at first, and
    `draws[row, walker]`."""

    seats: NDArray[np.int32]
    draws: NDArray[np.int64]


class Seen(NamedTuple):
    """What is added up: `sums[walker, row, part, item]`, weight times how often the rank was among
    the next ones, where a part is a cluster, or everything, if there is one; `shares[walker, row,
    cluster]`, weight times chance of the cluster. `latent[row, walker, visit, item]` is the last
    ranking of a visit, if there is room."""

    sums: NDArray[np.float64]
    shares: NDArray[np.float64]
    latent: NDArray[np.int32]


class Standing(NamedTuple):
    """A ranking as moves see it: `holders[rank - 1]` is the place, in the order of the consensus,
    of the item with that rank; `by_place[place]` the rank less 1; `aligned[place]` the place in the
    aligned consensus; `numbers` 0, 1, 2, ...; and room for the longest rise."""

    holders: NDArray[np.int64]
    by_place: NDArray[np.int64]
    aligned: NDArray[np.int64]
    numbers: NDArray[np.int64]
    tails: NDArray[np.int64]


@njit(cache=True, nogil=True)
def walk_rows(clicks, laws, visits, window, walkers, seen):
    """Let the walkers of each row make all their visits."""
    n_items, n_walkers = laws.orderings.shape[2], len(visits.draws)
    room, is_clicked = np.empty((5, n_items), dtype=np.int64), np.zeros(n_items, dtype=np.bool_)
    standing = Standing(room[0], room[1], room[2], room[3], room[4])
    stream, chances = np.empty(1, dtype=np.uint64), np.empty(2 * laws.orderings.shape[1])
    for place in range(n_items):
        standing.numbers[place] = place
    for row in range(len(walkers.seats)):
        mine = clicks_of(clicks, row)
        key = key_of_clicks(mine)
        is_clicked[:] = False
        is_clicked[mine] = True
        user = (is_clicked, len(mine))
        for walker in range(n_walkers):
            seats = walkers.seats[row, walker]
            for visit in range(visits.draws.shape[1]):
                number = (visits.first + visit) * n_walkers + walker
                start_stream(visits.seed, number, key, stream)
                draw, weight = visits.draws[walker, visit], visits.weights[walker, visit]
                n_sweeps = visits.n_start
                if seats[0] < 0:
                    n_sweeps += visits.n_first
                    seats[:] = standing.numbers
                    walkers.draws[row, walker] = draw
                now = walkers.draws[row, walker] if visits.is_new else draw
                weigh_choices(laws, (now, draw), user, seats, standing, chances)
                choice, n_clusters = draw_choice(stream, chances), len(chances) // 2
                for each in range(len(chances)):
                    seen.shares[walker, row, each % n_clusters] += weight * chances[each]
                draw, label = now if choice < n_clusters else draw, choice % n_clusters
                walkers.draws[row, walker] = draw
                ordering, law = laws.orderings[draw, label], (laws.kind, laws.lams[draw, label])
                take_seats(ordering, user, seats, standing)
                sweep_sides(stream, law, n_sweeps, len(mine), standing)
                sums = seen.sums[walker, row, label if seen.sums.shape[2] > 1 else 0]
                for _ in range(visits.n_seen):
                    sweep_sides(stream, law, 1, len(mine), standing)
                    for rank in range(len(mine), min(len(mine) + window, n_items)):
                        sums[ordering[standing.holders[rank]]] += weight / visits.n_seen
                for rank in range(n_items):
                    seats[standing.aligned[standing.holders[rank]]] = rank
                    if len(seen.latent) > 0:
                        item = ordering[standing.holders[rank]]
                        seen.latent[row, walker, visit, item] = rank + 1


@njit(cache=True, nogil=True)
def weigh_choices(laws, draws, user, seats, standing, chances):
    """Fill `chances` with the logs of what each cluster weighs, given the seats: those of the first
    of two draws, and then those of the other, if it is another."""
    now, then = draws
    n_clusters = len(chances) // 2
    chances[:] = -np.inf
    for choice in range(n_clusters if now == then else 2 * n_clusters):
        draw, cluster = now if choice < n_clusters else then, choice % n_clusters
        take_seats(laws.orderings[draw, cluster], user, seats, standing)
        far = laws.lams[draw, cluster] * distance_of(laws.kind, standing)
        chances[choice] = laws.logs[draw, cluster] - far


@njit(cache=True, nogil=True)
def key_of_clicks(mine):
    """A number that says who it is, whoever the other users are."""
    key = STEP
    for item in mine:
        key = mix(key + np.uint64(item + 1) * MIX_1)
    return key >> ONE_BIT


@njit(cache=True, nogil=True)
def take_seats(ordering, user, seats, standing):
    """Set up the ranking that seats say around a consensus; with `is_clicked, n_clicks = user`."""
    is_clicked, n_clicks = user
    clicked, other = 0, n_clicks
    for place in range(len(ordering)):
        if is_clicked[ordering[place]]:
            aligned = clicked
            clicked += 1
        else:
            aligned = other
            other += 1
        standing.aligned[place] = aligned
        standing.by_place[place] = seats[aligned]
        standing.holders[seats[aligned]] = place


@njit(cache=True, nogil=True)
def distance_of(kind, standing):
    """The distance from the consensus."""
    by_place = standing.by_place
    if kind == ULAM:
        return len(by_place) - longest_rise(by_place, standing.numbers, standing.tails)
    total = 0
    for place in range(len(by_place)):
        total += (by_place[place] - place) ** 2
    return total


@njit(cache=True, nogil=True)
def draw_choice(stream, chances):
    """Turn logs into chances, and draw one of them."""
    highest, total = chances.max(), 0.0
    for choice in range(len(chances)):
        chances[choice] = np.exp(chances[choice] - highest)
        total += chances[choice]
    left, chosen = uniform(stream), 0
    for choice in range(len(chances)):
        chances[choice] /= total
        if left >= 0.0 and chances[choice] > 0.0:
            chosen = choice
        left -= chances[choice]
    return chosen


@njit(cache=True, nogil=True)
def sweep_sides(stream, law, n_sweeps, n_clicks, standing):
    """A proposal for each item, in each sweep, on both sides; with `kind, lam = law`."""
    kind, lam = law
    n_others = len(standing.holders) - n_clicks
    for first, size in ((0, n_clicks), (n_clicks, n_others)):
        if size < 2:
            continue
        if kind == ULAM:
            leap_on_side(stream, lam, n_sweeps * size, first, size, standing)
        else:
            swap_on_side(stream, lam, n_sweeps * size, first, size, standing)


@njit(cache=True, nogil=True)
def swap_on_side(stream, lam, n_swaps, first, size, standing):
    """Exchanges by Spearman's distance."""
    holders, by_place, log_reach = standing.holders, standing.by_place, np.log(size)
    for _ in range(n_swaps):
        low, high = choose_pair(stream, size, log_reach)
        if high >= size:
            continue
        one, other = holders[first + low], holders[first + high]
        if accepts(stream, -2.0 * lam * (high - low) * (other - one)):
            holders[first + low], holders[first + high] = other, one
            by_place[one], by_place[other] = first + high, first + low


@njit(cache=True, nogil=True)
def leap_on_side(stream, lam, n_leaps, first, size, standing):
    """Leaps by Ulam's distance, which changes by 1 at most; an exchange may change it by 2."""
    log_reach, tails, numbers = np.log(size), standing.tails, standing.numbers
    rise = longest_rise(standing.by_place, numbers, tails)
    for _ in range(n_leaps):
        low, high = choose_pair(stream, size, log_reach)
        if high >= size:
            continue
        here, there = first + low, first + high
        if uniform(stream) < 0.5:
            here, there = there, here
        leap_to(here, there, standing)
        proposed = longest_rise(standing.by_place, numbers, tails)
        if accepts(stream, lam * (proposed - rise)):
            rise = proposed
        else:
            leap_to(there, here, standing)


@njit(cache=True, nogil=True)
def leap_to(here, there, standing):
    """Give what holds a rank less 1 another; those between shift by one."""
    holders, by_place = standing.holders, standing.by_place
    place, side = holders[here], 1 if there > here else -1
    for rank in range(here, there, side):
        holders[rank] = holders[rank + side]
        by_place[holders[rank]] = rank
    holders[there] = place
    by_place[place] = there
