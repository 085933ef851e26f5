"""check: are the stated probabilities still right on clicks that came later?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, check_local
from ..files.later import read_later
from ..posteriors.personal_fit import Fit, check_fit
from ..preferences import Clicks
from ..preferences.more_clicks import later_clicks
from ..preferences.splits import keep_first
from ..rankings import check_count
from ..recommendations.recommend import recommend
from .figures import Calibration, calibrate, hits_of

LARGEST_WINDOW = 30  # later clicks of a user that are looked at: no correction is learnt beyond
LEAST_USERS = 30  # to say anything: the usual least number for a normal interval of a mean
TOLERANCE = 0.01  # an error of the mean that nobody minds, of probabilities of 0.2 or more
RELATIVE_FROM = 0.2  # below, tolerances shrink in proportion: 5 % of the mean, 25 % in a bin
BIN_TOLERANCE = 0.05  # an error of one bin that nobody minds, likewise
# are looked at, of dependent recommendations, so four standard errors and not two


@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """Whether stated probabilities agree with what was observed.

    Attributes
    ----------
    stated, observed : float
        The mean probability of the recommendations, and the share observed.
    error : float
        Standard error of observed minus stated, over users.
    n_users, n_recommendations : int
        Who had new clicks, and what they would have been recommended.
    calibration : Calibration
        The same in bins of the stated probability.
    """

    stated: float
    observed: float
    error: float
    n_users: int
    n_recommendations: int
    calibration: Calibration

    @classmethod
    def of(
        cls, stated: NDArray[np.float64], observed: NDArray[np.float64], n_bins: int
    ) -> "CalibrationCheck":
        """``stated[user, place]`` and ``observed[user, place]`` compared; NaN where there is no
        recommendation. The standard error is that of a ratio of sums over users."""
        is_item = ~np.isnan(stated)
        gaps = np.where(is_item, observed - stated, 0.0).sum(axis=1)
        n_items, n_users = int(is_item.sum()), len(gaps)
        apart = gaps - gaps.sum() / n_items * is_item.sum(axis=1)
        error = float("nan")
        if n_users > 1:
            error = float(np.sqrt((apart**2).sum() * n_users / (n_users - 1)) / n_items)
        stated, observed = stated[is_item], observed[is_item]
        bins = calibrate(stated, observed, n_bins)
        return cls(float(stated.mean()), float(observed.mean()), error, n_users, n_items, bins)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of observed minus stated."""
        gap, width = self.observed - self.stated, 1.96 * self.error
        return gap - width, gap + width

    def figures(self) -> dict[str, Any]:
        """Everything, ready for JSON; the interval of one user alone is not known."""
        low, high = self.interval if self.n_users > 1 else (None, None)
        return {
            "stated": self.stated,
            "observed": self.observed,
            "low": low,
            "high": high,
            "n_users": self.n_users,
            "n_recommendations": self.n_recommendations,
            "answer": self.answer,
            "words": str(self),
            "bins": self.calibration.rows(),
        }

    @property
    def answer(self) -> str:
        """ "yes", "no", or "too few" users to tell."""
        if self.n_users < LEAST_USERS:
            return "too few"
        return "yes" if self._is_mean_right and self.worst_bin is None else "no"

    @property
    def _is_mean_right(self) -> bool:
        low, high = self.interval
        tolerance = TOLERANCE * min(1.0, self.stated / RELATIVE_FROM)
        return low <= tolerance and high >= -tolerance

    @property
    def worst_bin(self) -> tuple[float, float] | None:
        """Stated and observed where they differ most, if that is more than sampling variation and
        more than five points (of small probabilities: a quarter); bins of few recommendations do
        not count."""
        bins = self.calibration
        gaps = np.abs(bins.observed - bins.stated)
        spread = np.maximum(bins.observed, 0.01) * np.maximum(1 - bins.observed, 0.01)
        is_clear = gaps > 4 * np.sqrt(
            spread / bins.counts
        )  # in any of ten bins, once in 1,500 times
        is_clear &= gaps > BIN_TOLERANCE * np.minimum(1.0, bins.stated / RELATIVE_FROM)
        is_clear &= bins.counts >= 0.02 * self.n_recommendations
        if not is_clear.any():
            return None
        worst = int(np.where(is_clear, gaps, 0.0).argmax())
        return float(bins.stated[worst]), float(bins.observed[worst])

    def __str__(self) -> str:
        low, high = (100 * edge for edge in self.interval)
        seen = (
            f"of {self.n_recommendations:,} recommendations to {self.n_users:,} users, "
            f"{self.observed:.1%} were hits, against a mean stated probability of "
            f"{self.stated:.1%}"
        )
        gap = f"the difference is {low:+.1f} to {high:+.1f} points"
        if self.answer == "too few":
            return f"Too few users to tell: {seen}; wait for {LEAST_USERS} users or more."
        if self.answer == "yes":
            return f"The probabilities are still right: {seen}; {gap}."
        way = "too low" if self.observed > self.stated else "too high"
        if self._is_mean_right:
            assert self.worst_bin is not None
            stated, observed = self.worst_bin
            return (
                f"The probabilities are right on average, but not everywhere: {seen}, yet where "
                f"about {stated:.0%} were stated, {observed:.0%} were hits. Fit again with the "
                "later clicks."
            )
        return f"The probabilities are {way} now: {seen}; {gap}. Fit again with the later clicks."


def check(
    posterior: Fit, later: Any, k: int = 10, *, n_bins: int = 10, executor: Executor | None = None
) -> CalibrationCheck:
    """Whether the probabilities of a fit are right on clicks that came after it.

    For each user of the fit with n new clicks, take the k best items, with the probabilities that
    they are among the next n, and count how many of them were clicked.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        A fit of clicks.
    later : Clicks, data frame, dict or path
        Later clicks. Users and items that are not in the fit, and clicks that are, do not count. If
        a user has more than 30 new clicks, the first 30 count, or any 30 where times are missing or
        the same.
    k : int
        Recommendations for each user.
    n_bins : int
        Bins of equal width for the stated probabilities.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> from pseudomallows.preferences.splits import hide_random
    >>> data = pm.simulate_clicks(400, 12, alpha=8, mean_clicks=5, rng=1)
    >>> earlier, later = hide_random(data.preferences, 2, np.random.default_rng(1))
    >>> posterior = pm.fit(earlier, "personal", held_out=later, rng=1)
    >>> check(posterior, later, k=1).answer
    'yes'
    """
    check_fit(posterior)
    check_local(executor, "check")
    clicks = posterior.clicks
    if clicks is None or not clicks.n_users:
        raise ValueError("check needs a fit of clicks that keeps its users")
    k, n_bins = check_count(k, "k"), check_count(n_bins, "n_bins")
    new = _new_clicks(clicks, later)
    windows = np.minimum(new.n_clicks, LARGEST_WINDOW)
    stated, observed = [], []
    for window in np.unique(windows[windows > 0])[::-1].tolist():  # one warning, of the largest
        rows = np.flatnonzero(windows == window)
        names = clicks.users[rows].tolist()
        best = recommend(posterior, k, users=names, window=window, executor=executor)
        share = window / new.n_clicks[rows]
        stated.append(np.where(best.items >= 0, best.probabilities, np.nan))
        observed.append(hits_of(best.items, new.take(rows)) * share[:, None])
    return CalibrationCheck.of(np.concatenate(stated), np.concatenate(observed), n_bins)


def _new_clicks(clicks: Clicks, later: Any) -> Clicks:
    """What is new of users who are known."""
    known = later_clicks(read_later(later, clicks), clicks, "later").clicks
    cells = known.owners * clicks.n_items + known.codes
    is_new = ~np.isin(cells, clicks.owners * clicks.n_items + clicks.codes)
    is_new &= (clicks.n_clicks > 0)[known.owners]
    if not is_new.any():
        raise ValueError(
            "later has no new click of a user of the fit: give clicks that came after those"
        )
    return keep_first(known.choose(is_new), LARGEST_WINDOW)
