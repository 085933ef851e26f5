"""Do people share one order? The data of a fit against data drawn from the fitted model.

A Mallows model with one consensus says that people differ from it at random. Where there are
groups of people with different orders, people differ *together*: along one direction, from the
order of one group to that of the other. So the check compares the leading eigenvalue of the
covariance between items, over people, with that of data that are drawn from the fitted model and
hidden in the same way: a user who ranked three items ranks three, one who clicked five clicks five,
and the same pairs are compared (a posterior predictive check, Gelman, Meng and Stern 1996).

What is left after subtracting the eigenvalue of the model is the variance between groups. Next to
it stands the variance that is shared: the squared length of the mean of all people. The share of
the first in both is the value of the check: 0 for one order, 1 for two camps of equal size with
opposite orders, 1/2 for two camps whose orders have nothing in common, and 4 p (1 - p) if a
part p of the people has the reverse of the order. Noise of single people does not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, Rankings
from ..data.pairs import Pairs
from ..data.preferences import Preferences
from ..distances.mallows import Mallows

if TYPE_CHECKING:
    from .posterior import Posterior

N_REPLICATES = 16  # data sets from the fitted model: their spread is then known to 18 %
# Of a replicate: by the times in docs/measurements.md (The Mallows distribution) all are drawn in
# less than 0.1 s, but for Spearman's distance.
MOST_PEOPLE, MOST_RANKS = 1000, 40_000
LEAST_PEOPLE, MOST_ITEMS = 5, 1000  # beyond, nothing can be said of groups, or too slowly
# Where draws come from Markov chains: 3 us a rank there, so 0.24 s for all replicates.
SPEARMAN_RANKS = 5_000
Floats = NDArray[np.float64]
# what people say who have these rankings, and make such errors
Simulate = Callable[[NDArray[np.int32], Floats, np.random.Generator], Floats]


def check_model(prefs: Preferences, posterior: Posterior) -> dict[str, Any] | None:
    """How far people are from sharing one order, for the settings of a fit; None where that cannot
    be said: of clusters, votes, users of several kinds, users on workers, and many items.

    `split` is the value of the check, `z` by how many standard deviations the eigenvalue of the
    data exceeds that of data from the model, on the log scale. The same draws give the same value.
    """
    is_one = type(prefs) in (Rankings, Clicks, Pairs) and not prefs.is_vote
    if posterior.n_clusters > 1 or prefs.n_items > MOST_ITEMS or not is_one:
        return None
    rng = np.random.default_rng(0)
    people = _people(prefs, posterior, rng)
    if people.n_users < LEAST_PEOPLE:
        return None
    if isinstance(people, Pairs):
        said, simulate = _slates(people) or _net_wins(people)
    else:
        said, simulate = _filled_ranks(people.as_rankings())
    chosen, eigenvalues = _some_draws(posterior), []
    for (chain, draw), rankings in zip(
        chosen, _replicates(posterior, chosen, people.n_users, rng), strict=True
    ):
        errors = posterior.errors[chain, draw] if posterior.errors.size else np.empty(0)
        eigenvalues.append(_leading(simulate(rankings, errors, rng))[0])
    leading, shared = _leading(said)
    logs = np.log(np.maximum(eigenvalues, 1e-12))
    z = (np.log(max(leading, 1e-12)) - logs.mean()) / max(float(logs.std(ddof=1)), 1e-3)
    between = max(leading - float(np.mean(eigenvalues)), 0.0)
    split = between / max(between + shared, 1e-12)
    return {"split": round(split, 4), "z": round(float(z), 2), "n_people": people.n_users}


def _people(prefs: Preferences, posterior: Posterior, rng: np.random.Generator) -> Preferences:
    """A row for each informative person, or for as many of them as are enough."""
    weights = np.where(prefs.is_informative, prefs.weights, 0)
    n_people, is_slow = int(weights.sum()), posterior.settings["distance"] == "spearman"
    ranks = SPEARMAN_RANKS if is_slow and prefs.n_items > 20 else MOST_RANKS
    most = min(MOST_PEOPLE, max(ranks // prefs.n_items, 2 * LEAST_PEOPLE))
    places = np.arange(n_people)
    if n_people > most:
        places = np.sort(rng.choice(n_people, most, replace=False))
    return prefs.take(np.searchsorted(np.cumsum(weights), places, side="right"))


def _some_draws(posterior: Posterior) -> list[tuple[int, int]]:
    """Draws of all chains, evenly spread, each as often as its weight says."""
    chosen = posterior.equal_draws()
    places = chosen[np.linspace(0, len(chosen) - 1, N_REPLICATES).astype(np.int64)]
    chains, draws = divmod(places, posterior.weights.shape[1])
    return list(zip(chains.tolist(), draws.tolist(), strict=True))


def _replicates(
    posterior: Posterior, chosen: list[tuple[int, int]], n_people: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int32]]:
    """Rankings of so many people for each of these draws of consensus and alpha.

    By Spearman's distance each alpha has a table of 2^n sets, up to 20 items, so all draws share
    the alpha in their middle.
    """
    name = posterior.settings["distance"]
    if name != "spearman":
        for chain, draw in chosen:
            consensus, alpha = posterior.consensus[chain, draw, 0], posterior.alpha[chain, draw, 0]
            yield Mallows(consensus, float(alpha), name).draw(n_people, rng)
        return
    middle = float(np.median([posterior.alpha[chain, draw, 0] for chain, draw in chosen]))
    law = Mallows(np.arange(1, posterior.n_items + 1), middle, name)
    drawn = law.draw(len(chosen) * n_people, rng).reshape(len(chosen), n_people, -1)
    for (chain, draw), rankings in zip(chosen, drawn, strict=True):
        yield rankings[:, posterior.consensus[chain, draw, 0] - 1]


def _leading(said: Floats) -> tuple[float, float]:
    """The largest eigenvalue of the covariance of ``said[person, item]``, and the squared length
    of their mean, less what sampling variation adds to it."""
    mean = said.mean(axis=0)
    apart = said - mean
    small = apart @ apart.T if len(apart) < apart.shape[1] else apart.T @ apart
    leading = float(np.linalg.eigvalsh(small)[-1]) / len(said)
    return leading, max(float(mean @ mean) - float((apart**2).sum()) / len(said) ** 2, 0.0)


def _filled_ranks(people: Rankings) -> tuple[Floats, Simulate]:
    """Ranks, unknown ones at the mean of what they may be, less their mean."""
    said = people.filled_ranks() - (people.n_items + 1) / 2
    # seen[person, rank - 1]: what is seen of an item at that rank
    order = np.argsort(people.rankings, axis=1, kind="stable")
    ranks = np.take_along_axis(people.rankings, order, axis=1)
    values = np.take_along_axis(said, order, axis=1)
    is_first = np.diff(ranks, axis=1, prepend=-1) > 0
    numbers = np.arange(people.n_items)
    within = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0), axis=1)
    unknown = np.where(ranks == 0, values, 0.0)
    left = unknown.sum(axis=1) / np.maximum((ranks == 0).sum(axis=1), 1)
    seen = np.repeat(left[:, None], people.n_items, axis=1)
    rows, places = np.nonzero(ranks)
    seen[rows, (ranks + within - 1)[rows, places]] = values[rows, places]

    def simulate(rankings: NDArray[np.int32], _errors: Floats, _rng: np.random.Generator) -> Floats:
        return np.take_along_axis(seen, rankings - 1, axis=1)

    return said, simulate


def _net_wins(people: Pairs) -> tuple[Floats, Simulate]:
    """Wins less losses of each item, of the comparisons without ties."""
    owners, one, other = people.owners, people.better, people.worse
    shape = (people.n_users, people.n_items)

    def net(wins: Floats) -> Floats:
        table = np.zeros(shape)
        np.add.at(table, (owners, one), wins)
        np.add.at(table, (owners, other), -wins)
        return table

    def simulate(rankings: NDArray[np.int32], errors: Floats, rng: np.random.Generator) -> Floats:
        apart = rankings[owners, other] - rankings[owners, one]
        if not len(errors):
            wrong = np.zeros(len(apart))
        elif len(errors) == 1:
            wrong = np.full(len(apart), errors[0])
        else:
            between = (np.abs(apart) - 1) / max(people.n_items - 2, 1)
            wrong = 1 / (1 + np.exp(errors[0] + errors[1] * between))
        n_wrong = rng.binomial(people.counts, wrong)
        return net(np.sign(apart) * (people.counts - 2 * n_wrong))

    return net(people.counts.astype(np.float64)), simulate


def _slates(people: Pairs) -> tuple[Floats, Simulate] | None:
    """The same of impressions, if all are: everybody took some of the items shown, each of which
    beats all of the others. Which pairs are compared then depends on the answers: in a replicate
    people take as many, of the same slate."""
    owners, shape = people.owners, (people.n_users, people.n_items)
    taken, passed = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    taken[owners, people.better], passed[owners, people.worse] = True, True
    n_taken, n_passed = (each.sum(axis=1, keepdims=True) for each in (taken, passed))
    is_whole = (n_taken * n_passed).ravel() == np.diff(people.starts)
    if (taken & passed).any() or not is_whole.all():
        return None

    def net(wins: NDArray[np.bool_]) -> Floats:
        losses = (taken | passed) & ~wins
        return np.asarray(wins * n_passed - losses * n_taken, dtype=np.float64)

    def simulate(rankings: NDArray[np.int32], _errors: Floats, _rng: np.random.Generator) -> Floats:
        ranks = np.where(taken | passed, rankings, people.n_items + 1)
        places = np.argsort(np.argsort(ranks, axis=1, kind="stable"), axis=1)
        return net(places < n_taken)

    return net(taken), simulate
