"""next_pairs: which two items to compare next, so that the answer tells most.

An answer tells as much as it narrows the posterior: the mutual information between the answer and
the draw of the posterior, H(mean over draws of p) - mean over draws of H(p), where p is the
probability that the first item is preferred, given a draw, and H the entropy of yes and no in bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..data.frames import Tabular
from ..distances.distance import Distance
from ..distances.vote_tally import log_probabilities
from ..personal.personal_fit import Fit
from ..posterior.posterior import Posterior
from ..rankings import as_rng, check_count
from .latent_ranks import LatentRanks

Floats = NDArray[np.float64]
MOST_CELLS = 10**8  # of draws times pairs, some 8 seconds; of more draws, some are taken, evenly
N_ALPHAS = 9  # with a table each: half as many double the error, twice as many gain little
FEWEST_DRAWS, MOST_DRAWS = 2000, 20_000  # of a table; 20,000 are off by 0.003 bits, 4,000 by 0.008
TABLE_CELLS = 4 * 10**7  # of draws times cells of a table, which takes about 0.1 seconds


@dataclass(frozen=True, eq=False, repr=False)
class NextPairs(Tabular):
    """Pairs of items to compare next, the most telling first.

    Attributes
    ----------
    items, others : array
        Names of the two items of each pair; the first is the likelier to be preferred.
    probabilities : array
        Probability that the first is preferred; the other answer has 1 minus it.
    information : array
        What the answer will tell on average, in bits: 0 is nothing, 1 is the most that a question
        with two answers can tell.
    """

    items: NDArray[Any]
    others: NDArray[Any]
    probabilities: Floats
    information: Floats

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        lines = [
            f"  {row['item']} or {row['other']}? {row['probability']:.0%} to "
            f"{row['other_probability']:.0%}, {row['information']:.3f} bits"
            for row in self.to_rows()[:10]
        ]
        left = len(self) - len(lines)
        more = [f"  ... and {left} more"] if left else []
        return "\n".join([f"NextPairs({len(self)} pairs)", *lines, *more])

    def to_columns(self, digits: int | None = None) -> dict[str, NDArray[Any]]:
        """Columns item, other, the probability of each answer, information in bits."""
        figures = {
            "probability": self.probabilities,
            "other_probability": 1 - self.probabilities,
            "information": self.information,
        }
        rounded = {name: v if digits is None else v.round(digits) for name, v in figures.items()}
        return {"item": self.items, "other": self.others} | rounded


def next_pairs(
    posterior: Fit,
    user: Any = None,
    n: int = 10,
    *,
    cluster: int = 0,
    rng: np.random.Generator | int | None = None,
) -> NextPairs:
    """Find the pairs of items whose comparison would tell the most about the consensus, or a user.

    Parameters
    ----------
    posterior : Posterior
        A fit with draws, of any data.
    user : optional
        A user of the fit who is known in part (and, where latent rankings have to be kept, is named
        in its option `keep_latent`): find the pairs that would tell the most about this user's
        ranking. By default, somebody new is asked, to learn about the consensus.
    n : int
        How many pairs.
    cluster : int
        Whose consensus.
    rng : numpy.random.Generator or seed, optional
        Not needed for Kendall's distance, which has a closed form. For the others, the
        probabilities of pairs are estimated from 20,000 draws (2,000 for more than 140 items) at
        each of nine quantiles of alpha; between these their log odds are taken as linear.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 2, 3], [1, 3, 2]], items=["a", "b", "c"])
    >>> posterior = fit(prefs, "mcmc", alpha=6, distance="kendall", rng=1)
    >>> pairs = next_pairs(posterior, n=1)
    >>> pairs.items.tolist(), pairs.others.tolist()
    (['b'], ['c'])
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(
            f"posterior must be a fit with draws, got {type(posterior).__name__}: fit with "
            "method='mcmc'"
        )
    posterior.check_cluster(cluster)
    n_pairs = check_count(n, "n")
    if user is not None:
        probabilities, noise = _of_user(posterior, user)
    else:
        probabilities, noise = _of_consensus(posterior, cluster, as_rng(rng))
    one, other = np.triu_indices(posterior.n_items, 1)
    gains = np.maximum(entropy(probabilities) - noise, 0.0)
    best = np.argsort(-gains, kind="stable")[:n_pairs]
    is_first = probabilities[best] >= 0.5
    return NextPairs(
        posterior.items[np.where(is_first, one[best], other[best])],
        posterior.items[np.where(is_first, other[best], one[best])],
        np.where(is_first, probabilities[best], 1 - probabilities[best]),
        gains[best],
        backend=posterior.settings.get("backend"),
    )


def entropy(probabilities: NDArray[Any]) -> Floats:
    """Entropy, in bits, of an answer with this probability.

    >>> entropy(np.array([0.0, 0.25, 0.5])).round(3).tolist()
    [0.0, 0.811, 1.0]
    """
    from scipy.special import entr

    return np.asarray((entr(probabilities) + entr(1 - probabilities)) / np.log(2))


def _of_user(posterior: Posterior, user: Any) -> tuple[Floats, Floats]:
    """Probability of each pair by the latent rankings of a user, who answers by them without
    doubt."""
    if posterior.is_full:
        raise ValueError(f"the fit is of full rankings: everything is known of user {user!r}")
    one, other = np.triu_indices(posterior.n_items, 1)
    probabilities = np.zeros(len(one))
    for _, weight, (ranks,) in LatentRanks(posterior, [user]).draws():
        probabilities += weight * (ranks[one] < ranks[other])
    return probabilities, np.zeros(len(one))


def _of_consensus(
    posterior: Posterior, cluster: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Probability of each pair, and the mean entropy of its answer, given a draw."""
    draws = posterior.consensus[:, :, cluster].reshape(-1, posterior.n_items)
    alphas, weights = posterior.alpha[:, :, cluster].ravel(), posterior.weights.ravel()
    one, other = np.triu_indices(posterior.n_items, 1)
    most = max(20, MOST_CELLS // max(len(one), 1))
    if len(draws) > most:
        some = np.linspace(0, len(draws) - 1, most).astype(np.int64)
        draws, alphas, weights = draws[some], alphas[some], weights[some]
    law = distances.get(posterior.settings.get("distance", "footrule"))
    table_of = tables_of(law, posterior.n_items, alphas, rng)
    probabilities, noise = np.zeros(len(one)), np.zeros(len(one))
    shares = weights / weights.sum()
    for ranks, alpha, share in zip(draws - 1, alphas.tolist(), shares.tolist(), strict=True):
        table = table_of(alpha)
        probabilities += share * table[ranks[one], ranks[other]]
        noise += share * entropy(table[ranks[one], ranks[other]])
    return probabilities, noise


def tables_of(
    law: Distance, n_items: int, alphas: Floats, rng: np.random.Generator
) -> Callable[[float], Floats]:
    """``table[place, other]`` by alpha: probability that the item at `place` is preferred."""
    if law.name == "kendall":
        places = np.arange(n_items)
        gaps = n_items - 1 + places[None, :] - places[:, None]
        return lambda alpha: np.exp(log_probabilities(n_items, alpha / n_items))[gaps]
    grid = np.unique(np.quantile(alphas, np.linspace(0, 1, N_ALPHAS)))
    n_draws = int(np.clip(TABLE_CELLS // n_items**2, FEWEST_DRAWS, MOST_DRAWS))
    log_odds = []
    for alpha in grid.tolist():
        table = place_probabilities(law, n_items, alpha, n_draws, int(rng.integers(2**63)))
        log_odds.append(np.log(table) - np.log1p(-table))

    def between(alpha: float) -> Floats:
        # log odds are nearly linear in alpha, probabilities are not: they level off
        low = int(np.clip(np.searchsorted(grid, alpha) - 1, 0, len(grid) - 1))
        high = min(low + 1, len(grid) - 1)
        part = (alpha - grid[low]) / (grid[high] - grid[low]) if high > low else 0.0
        return np.asarray(1 / (1 + np.exp(-(1 - part) * log_odds[low] - part * log_odds[high])))

    return between


def place_probabilities(
    law: Distance, n_items: int, alpha: float, n_draws: int, seed: int
) -> Floats:
    """``[place, other]``: probability that the item at one place of the consensus is preferred to
    that at the other, from draws; the same from the other end, as it is by every distance."""
    draws = law.draw(n_items, alpha, n_draws, seed)
    counts = np.stack([(draws[:, [place]] < draws).sum(axis=0) for place in range(n_items)])
    table = (counts + 0.5) / (n_draws + 1)  # half a draw more of each answer: none has 0
    table = (table + table[::-1, ::-1].T) / 2
    np.fill_diagonal(table, 0.5)
    return np.asarray(table)
