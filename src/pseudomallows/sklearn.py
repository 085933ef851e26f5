"""Estimators for scikit-learn: consensus, groups and recommendations behind `fit`, `predict`,
`predict_proba` and `score`, for pipelines and grid searches.

Needs scikit-learn: ``pip install 'pseudomallows[sklearn]'``. The fit itself is `posterior_`, with
its verdict, intervals and all that scikit-learn has no name for.
"""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .data.blocks import Clicks, clicks_matrix
from .data.preferences import Preferences
from .data.splits import hide_clicks
from .laws.registry import log_likelihood
from .personal.personal_fit import Fit
from .posterior.diagnostics import NoTimesWarning
from .posterior.posterior import Posterior
from .rankings import check_name
from .recommendations.recommend import memberships, recommend
from .sampling.fit import fit

Floats = NDArray[np.float64]


class _Rankings(BaseEstimator):  # type: ignore[misc]
    """What learns from rankings, one row a user."""

    posterior_: Posterior

    def _check(self, X: Any, reset: bool) -> NDArray[Any]:  # noqa: N803
        """``ranks[row, item]``, 0 for what is not ranked."""
        values = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_features=2 if reset else 1,
        )
        if check_name(self.values, "values", ("ranks", "scores")) == "ranks":
            return np.nan_to_num(values)
        ranks = rankdata(-values, method="min", axis=1, nan_policy="omit")
        return np.nan_to_num(ranks)

    def _learn(self, X: Any, sample_weight: Any, n_clusters: int | str) -> None:  # noqa: N803
        ranks = self._check(X, reset=True)
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)
        if sample_weight is not None and not sample_weight.any():
            raise ValueError("every sample_weight is zero: give whole numbers, some above 0")
        prefs = Preferences.from_rankings(ranks, weights=sample_weight)
        self.posterior_ = fit(  # type: ignore[assignment]
            prefs,
            self.method,
            self.alpha,
            self.n_draws,
            n_clusters,
            _seed(self.random_state),
            progress=False,
            distance=self.distance,
        )
        found = self.posterior_
        numbers = range(found.n_clusters)
        self.consensus_ = np.array([found.point_consensus(cluster=each) for each in numbers])
        self.alpha_ = found.alpha.mean(axis=(0, 1))
        self.weights_ = found.shares.mean(axis=(0, 1))

    def _log_likelihoods(self, ranks: NDArray[Any]) -> Floats:
        """``[row, cluster]``, at the point estimates."""
        prefs = Preferences.from_rankings(ranks)
        distance = self.posterior_.settings["distance"]
        columns = [
            log_likelihood(prefs, consensus, alpha, distance)
            for consensus, alpha in zip(self.consensus_, self.alpha_, strict=True)
        ]
        return np.stack(columns, axis=1)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Mean log probability of a row of `X`, at the point estimates: higher is better."""
        check_is_fitted(self)
        logs = self._log_likelihoods(self._check(X, reset=False)) + np.log(self.weights_)
        return float(np.logaddexp.reduce(logs, axis=1).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class MallowsRanker(_Rankings):
    """The consensus of rankings, by the Mallows model.

    Parameters
    ----------
    values : str
        What `X` holds, one row a user, one column an item: "ranks", 1 for the best, 0 or NaN for
        what is not ranked; or "scores", higher for the better, of which equal ones tie.
    method, distance, alpha, n_draws
        As for :func:`pseudomallows.fit`.
    random_state : int or RandomState, optional
        The same seed gives the same result.

    Attributes
    ----------
    posterior_ : Posterior
        The fit, with its verdict.
    consensus_ : (1, n_items) array
        Ranks of the items.
    alpha_ : (1,) array
        Concentration of the users around it.

    Examples
    --------
    >>> ranker = MallowsRanker(random_state=1).fit([[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 2, 3]])
    >>> ranker.predict([[0, 0, 1], [0, 0, 0]])
    array([[2, 3, 1],
           [1, 2, 3]])
    """

    def __init__(
        self,
        *,
        values: str = "ranks",
        method: str = "auto",
        distance: str | None = None,
        alpha: float | None = None,
        n_draws: int | None = None,
        random_state: Any = None,
    ):
        self.values, self.method, self.distance = values, method, distance
        self.alpha, self.n_draws, self.random_state = alpha, n_draws, random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from rankings; `sample_weight`: how many people gave each, whole numbers."""
        self._learn(X, sample_weight, 1)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """Each row ranked to the end: what it does not rank takes the ranks that are left, and what
        ties the ranks of the tie, in the order of the consensus."""
        check_is_fitted(self)
        ranks = self._check(X, reset=False)
        known = np.where(ranks > 0, ranks, np.inf)
        full = np.zeros(ranks.shape, dtype=np.int64)
        for row, mine in enumerate(Preferences.from_rankings(ranks).rankings):
            free = np.setdiff1d(np.arange(1, len(mine) + 1), _taken(mine), assume_unique=True)
            order = np.lexsort((self.consensus_[0], known[row]))
            is_open = mine[order] == 0
            full[row, order[~is_open]] = np.sort(_taken(mine))
            full[row, order[is_open]] = free
        return full


def _taken(ranks: NDArray[Any]) -> NDArray[np.int64]:
    """The ranks that a row takes: a tie takes those from its first on."""
    firsts, counts = np.unique(ranks[ranks > 0], return_counts=True)
    return np.concatenate(
        [np.arange(first, first + count) for first, count in zip(firsts, counts, strict=True)]
        or [np.arange(0)]
    ).astype(np.int64)


class MallowsClusters(ClusterMixin, _Rankings):  # type: ignore[misc]
    """Groups of users who rank alike, each with a consensus of its own.

    Parameters
    ----------
    n_clusters : int or "auto"
        How many; "auto": the smallest number beyond which a further one gains little.
    values, method, distance, alpha, n_draws, random_state
        As for :class:`MallowsRanker`.

    Attributes
    ----------
    posterior_ : Posterior
        The fit, with its verdict.
    consensus_ : (n_clusters, n_items) array
        Ranks of the items.
    alpha_, weights_ : (n_clusters,) arrays
        Concentration of the users around each consensus, and the share of the users.
    labels_ : (n_users,) array
        The most probable group of each row of the fit.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> rankings = pm.simulate_rankings(60, 6, [8.0, 8.0], rng=1).rankings
    >>> groups = MallowsClusters(2, random_state=1).fit(rankings)
    >>> groups.predict_proba(rankings[:5]).shape, groups.score(rankings) > -6.6
    ((5, 2), True)
    """

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        values: str = "ranks",
        method: str = "auto",
        distance: str | None = None,
        alpha: float | None = None,
        n_draws: int | None = None,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.values, self.method, self.distance = values, method, distance
        self.alpha, self.n_draws, self.random_state = alpha, n_draws, random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Learn from rankings; `sample_weight`: how many people gave each, whole numbers."""
        self._learn(X, sample_weight, self.n_clusters)
        self.labels_ = self.posterior_.labels
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """``[row, group]``: the probability that a row belongs to a group."""
        check_is_fitted(self)
        return memberships(self.posterior_, self._check(X, reset=False))

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The most probable group of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


class ClickRecommender(BaseEstimator):  # type: ignore[misc]
    """Recommendations from clicks, with probabilities. A matrix has no times, so they are those of
    clicks that are missing at random.

    Parameters
    ----------
    k : int
        How many items are recommended to a user.
    method : str
        That of :func:`pseudomallows.fit`.
    random_state : int or RandomState, optional
        The same seed gives the same result.

    Attributes
    ----------
    posterior_ : PersonalFit or Posterior
        The fit.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> clicks = pm.simulate_clicks(200, 12, 6, 4, rng=1).preferences
    >>> X = np.zeros((200, 12))
    >>> X[clicks.owners, clicks.codes] = 1
    >>> model = ClickRecommender(k=3, random_state=1).fit(X)
    >>> model.predict(X[:2]).shape, model.predict_proba(X[:2]).sum(axis=1).round(3).tolist()
    ((2, 3), [3.0, 3.0])
    """

    def __init__(self, k: int = 10, *, method: str = "personal", random_state: Any = None):
        self.k, self.method, self.random_state = k, method, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _clicks(self, X: Any, reset: bool) -> Clicks:  # noqa: N803
        """What is above 0 is a click; sparse or not."""
        least = 2 if reset else 1
        values = validate_data(self, X, reset=reset, accept_sparse="csr", ensure_min_features=least)
        return Preferences.from_clicks(values > 0)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from a matrix, users x items: what is above 0 is a click."""
        clicks, seed = self._clicks(X, reset=True), _seed(self.random_state)
        with warnings.catch_warnings():  # said above: a matrix has no times
            warnings.simplefilter("ignore", NoTimesWarning)
            self.posterior_: Fit = fit(clicks, self.method, rng=seed, progress=False)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """``[row, place]``: the items that come next, best first; -1 where none is left."""
        check_is_fitted(self)
        return recommend(self.posterior_, self.k, clicks=self._clicks(X, reset=False)).items

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """``[row, item]``: the probability that an item is among the next k; 0 for those that the
        row has already."""
        check_is_fitted(self)
        clicks = self._clicks(X, reset=False)
        n_items = clicks.n_items
        best = recommend(self.posterior_, n_items, clicks=clicks, window=min(self.k, n_items))
        rows, places = np.nonzero(best.items >= 0)
        table = np.zeros((len(best.items), n_items))
        table[rows, best.items[rows, places]] = best.probabilities[rows, places]
        return table

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """The share of hidden clicks that are among the k recommended items: those of `y`, a matrix
        like `X`, or one click of each row that has two or more, hidden at random."""
        check_is_fitted(self)
        clicks = self._clicks(X, reset=False)
        if y is None:
            rng = np.random.default_rng(_seed(self.random_state))
            clicks, hidden = hide_clicks(clicks, 1, rng)
        else:
            later = self._clicks(y, reset=False)
            hidden = clicks_matrix(later.starts, later.codes, later.n_items).toarray() > 0
        best = recommend(self.posterior_, self.k, clicks=clicks).items
        hits = hidden[np.arange(len(best))[:, None], best] & (best >= 0)
        return float(hits.sum() / max(hidden.sum(), 1))


def _seed(random_state: Any) -> Any:
    """What scikit-learn takes as a source of randomness, as `rng` takes it."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
