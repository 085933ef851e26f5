"""evaluate: hide clicks, fit, recommend, and see how often the stated probabilities come true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engines.executors import Executor, blocks, check_local
from ..inference.fit import fit
from ..inference.methods.personal import MIN_USERS
from ..kernels.click_rows import slice_clicks
from ..kernels.look_up import choose_best
from ..posteriors.personal import Fit
from ..preferences import Clicks, check_clicks
from ..preferences.hide import hide_clicks
from ..rankings import check_count, check_rankings, rank_randomly
from ..recommendations.recommend import Recommendations, recommend
from .result import Calibration, Evaluation


def evaluate(
    prefs: Clicks,
    hide: int = 10,
    k: int | None = None,
    method: str = "pseudo",
    *,
    truth: ArrayLike | None = None,
    n_bins: int = 10,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Evaluation:
    """Hide clicks, fit the rest, and see which recommendations were among the hidden ones.

    Parameters
    ----------
    prefs : Clicks
        All clicks.
    hide : int
        Clicks hidden from each user who has more than that; the others are only learnt from.
    k : int, optional
        Recommendations for each user, at most all items that a user has not seen; default 10, or
        all of these if they are fewer. The stated probabilities are those of the next `hide` ranks,
        since so many clicks are hidden; of more than `hide` recommendations some must be wrong.
    method : str
        Method of :func:`fit`; further options go there too. For "personal", with 100 users or more
        to judge, the probabilities are corrected by the hidden clicks of the half of the users who
        are not judged with them, as `held_out` would; a plain fit has no such clicks. With
        ``calibrate=False`` nothing is corrected.
    truth : (n_users, n_items) array_like of int, optional
        For simulated data: the true rankings. Then nothing is hidden (`hide` is not used), and a
        recommendation is right if its true rank is one of the k after the clicks.
    n_bins : int
        Bins of equal width for the stated probabilities.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> from pseudomallows import simulate_clicks
    >>> data = simulate_clicks(200, 8, alpha=6, mean_clicks=3, rng=1)
    >>> result = evaluate(data.preferences, k=2, method="mcmc", truth=data.rankings, rng=1)
    >>> result.calibration.error < 0.05
    True
    """
    prefs = check_clicks(prefs)
    check_local(executor, "evaluate")
    k = None if k is None else check_count(k, "k")
    n_bins = check_count(n_bins, "n_bins")
    rng = np.random.default_rng(rng)
    test = _by_truth(prefs, truth, k) if truth is not None else _hide(prefs, hide, k, rng)
    if method == "personal" and truth is None and _is_corrected_by_halves(test, options):
        posterior, found, test = _judge_halves(test, rng, executor, options)
    else:
        posterior = fit(test.shown, method, rng=rng, executor=executor, **options)
        found = test.recommend(posterior, test.judged, executor)
    return _score(test, posterior, found, n_bins, rng)


@dataclass(frozen=True, eq=False)
class _Test:
    """What is learnt from, who is judged, and what is right: ``right[user, item]``."""

    shown: Clicks
    judged: NDArray[np.int64]  # rows
    right: NDArray[np.bool_]
    k: int
    window: int

    def recommend(
        self, posterior: Fit, rows: NDArray[np.int64], executor: Executor | None
    ) -> Recommendations:
        """The recommendations to some of the users."""
        users = self.shown.users[rows].tolist()
        return recommend(posterior, self.k, users=users, window=self.window, executor=executor)


def _hide(prefs: Clicks, hide: int, k: int | None, rng: np.random.Generator) -> _Test:
    """Right is what was hidden."""
    shown, hidden = hide_clicks(prefs, hide, rng)
    judged = np.flatnonzero(prefs.n_clicks > hide)
    return _Test(shown, judged, hidden, _check_k(k, shown.take(judged)), hide)


def _by_truth(prefs: Clicks, truth: ArrayLike, k: int | None) -> _Test:
    """Right are the k true ranks after the clicks."""
    rankings = check_rankings(truth, "truth")
    if rankings.shape != (prefs.n_users, prefs.n_items):
        raise ValueError(
            f"truth must have {prefs.n_users} users and {prefs.n_items} items, "
            f"got {rankings.shape[0]} and {rankings.shape[1]}"
        )
    k, n_clicks = _check_k(k, prefs), prefs.n_clicks[:, None]
    right = (rankings > n_clicks) & (rankings <= n_clicks + k)
    return _Test(prefs, np.arange(prefs.n_users), right, k, k)


def _check_k(k: int | None, seen: Clicks) -> int:
    """The number of recommendations, of which each of these users has as many at least."""
    most = seen.n_items - int(seen.n_clicks.min())
    k = min(10, most) if k is None else k
    if k > most:
        raise ValueError(f"k must be at most {most}, all items that a user has not seen, got {k}")
    return k


def _is_corrected_by_halves(test: _Test, options: dict[str, Any]) -> bool:
    if options.get("held_out") is not None or options.get("calibrate", True) is False:
        return False
    if options.get("scores") is not None and not callable(options["scores"]):
        raise ValueError(
            "scores must be a function that learns them from clicks, since an array may have seen "
            "the hidden clicks"
        )
    return len(test.judged) >= 2 * MIN_USERS


def _judge_halves(
    test: _Test, rng: np.random.Generator, executor: Executor | None, options: dict[str, Any]
) -> tuple[Fit, Recommendations, _Test]:
    """Two fits: the users of one half are judged by what was learnt from the hidden clicks of the
    other half. Clicks hidden from everybody are missing in any inner split, which would make its
    corrections too modest. The users are in another order afterwards."""
    halves = np.array_split(rng.permutation(test.judged), 2)
    parts, seed = [], int(rng.integers(2**63))
    for mine, others in (halves, halves[::-1]):
        given = options | {"held_out": _hidden_clicks(test, others), "calibrate": True}
        posterior = fit(test.shown, "personal", rng=seed, executor=executor, **given)
        parts.append(test.recommend(posterior, mine, executor))
    found = Recommendations(
        np.concatenate([part.users for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
        test.shown.items,
        np.concatenate([part.errors for part in parts]),
    )
    return posterior, found, replace(test, judged=np.concatenate(halves))


def _hidden_clicks(test: _Test, rows: NDArray[np.int64]) -> Clicks:
    """What was hidden from some of the users."""
    owners, codes = np.nonzero(test.right[rows])
    starts = np.searchsorted(owners, np.arange(len(rows) + 1))
    names = (test.shown.weights[rows], test.shown.users[rows], test.shown.items)
    return Clicks(*names, starts, codes.astype(np.int32))


def _score(
    test: _Test, posterior: Fit, found: Recommendations, n_bins: int, rng: np.random.Generator
) -> Evaluation:
    """How often the recommendations were right, and the most clicked items."""
    right, seen = test.right[test.judged], test.shown.take(test.judged)
    hits = _hits(found.items, right)
    popular = _hits(most_clicked(seen, test.shown.item_counts(), test.k, rng), right)
    per_user, given = np.nansum(hits, axis=1) / test.k, ~np.isnan(hits)
    error = float("nan")  # of one user
    if len(per_user) > 1:
        error = float(per_user.std(ddof=1) / np.sqrt(len(per_user)))
    return Evaluation(
        accuracy=float(per_user.mean()),
        accuracy_error=error,
        popularity=float((np.nansum(popular, axis=1) / test.k).mean()),
        calibration=calibrate(found.probabilities[given], hits[given], n_bins),
        n_users=len(test.judged),
        recommendations=found,
        posterior=posterior,
    )


def most_clicked(
    seen: Clicks, counts: NDArray[np.int64], k: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The most clicked items that each user has not seen, -1 for none; ties at random."""
    ranking = rank_randomly(-counts, rng)
    items = np.full((seen.n_users, k), -1)
    for rows in blocks(seen.n_users):
        size = rows.stop - rows.start
        tied, unused = np.zeros((size, seen.n_items)), np.empty((size, k))
        choose_best(slice_clicks(seen, rows), tied, ranking, items[rows], unused)
    return items


def calibrate(
    probabilities: NDArray[np.float64], hits: NDArray[np.float64], n_bins: int = 10
) -> Calibration:
    """Stated against observed, in bins of equal width.

    >>> calibrate(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]), 2).error
    0.09999999999999999
    """
    bins = np.minimum((probabilities * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    used = counts > 0
    stated = np.bincount(bins, probabilities, n_bins)[used] / counts[used]
    observed = np.bincount(bins, hits, n_bins)[used] / counts[used]
    return Calibration(stated, observed, counts[used])


def _hits(items: NDArray[np.int64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 where a recommendation was right, 0 where not, NaN where there is none."""
    hits = np.take_along_axis(right, np.maximum(items, 0), axis=1).astype(np.float64)
    return np.where(items >= 0, hits, np.nan)
