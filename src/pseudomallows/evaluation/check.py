"""check: are the stated probabilities still right on clicks that came later?"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.more_clicks import later_clicks, read_later
from ..data.splits import keep_first
from ..engines.executors import Executor, check_local
from ..personal.personal_fit import Fit, check_fit
from ..rankings import check_count
from ..recommendations.recommend import Recommendations, recommend
from .certificate import (
    LEAST_EVALUATED,
    RELATIVE_FROM,
    Cell,
    certificate_of,
    groups_of,
    is_mean_right,
    worst_of,
)
from .figures import Calibration, calibrate, hits_of

LARGEST_WINDOW = 30  # later clicks of a user that are looked at: no correction is learnt beyond
BIN_TOLERANCE = 0.05  # an error of one bin that nobody minds; below RELATIVE_FROM 25 %
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
    certificate : list of Cell
        The same by the user's number of clicks, by how often the items are clicked, and by how far
        ahead.
    """

    stated: float
    observed: float
    error: float
    n_users: int
    n_recommendations: int
    calibration: Calibration
    certificate: list[Cell] = field(default_factory=list)

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
        if self.n_users < LEAST_EVALUATED:
            return "too few"
        is_right = self._is_mean_right and self.worst_bin is None and self.worst_cell is None
        return "yes" if is_right else "no"

    @property
    def worst_cell(self) -> Cell | None:
        """The group of the certificate that is off most, if that is more than sampling variation
        and more than ten points (of small probabilities: a half): the groups were not chosen by
        what is stated, so some differ."""
        worst = worst_of(self.certificate)
        if worst is None:
            return None
        tolerance = 2 * BIN_TOLERANCE * min(1.0, worst.stated / RELATIVE_FROM)
        return worst if worst.gap > tolerance else None

    @property
    def _is_mean_right(self) -> bool:
        return is_mean_right(*self.interval, self.stated)

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
            return f"Too few users to tell: {seen}; wait for {LEAST_EVALUATED} users or more."
        if self.answer == "yes":
            return f"The probabilities are still right: {seen}; {gap}."
        way = "too low" if self.observed > self.stated else "too high"
        if self._is_mean_right:
            where, cell = self.worst_bin, self.worst_cell
            if where is not None:
                words = f"where about {where[0]:.0%} were stated, {where[1]:.0%} were hits"
            else:
                assert cell is not None
                words = f"for {cell.by} {cell.cell} {cell.stated:.0%} were stated, and "
                words += f"{cell.observed:.0%} were hits"
            return (
                f"The probabilities are right on average, but not everywhere: {seen}, yet {words}. "
                "Fit again with the later clicks."
            )
        return f"The probabilities are {way} now: {seen}; {gap}. Fit again with the later clicks."


def check(
    posterior: Fit,
    later: Any,
    k: int = 10,
    *,
    n_bins: int = 10,
    groups: dict[Any, Any] | None = None,
    executor: Executor | None = None,
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
    groups : dict, optional
        ``groups[user]``: the certificate is by these groups too.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> from pseudomallows.data.splits import hide_random
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
    rows = np.flatnonzero(new.n_clicks)
    of_groups = groups_of(groups, clicks.users[rows])
    later, windows = new.take(rows), np.minimum(new.n_clicks[rows], LARGEST_WINDOW)
    best = recommend_ahead(posterior, clicks.users[rows], windows, k, executor)
    observed = observed_of(best.items, later, windows)
    stated = np.where(best.items >= 0, best.probabilities, np.nan)
    found = CalibrationCheck.of(stated, observed, n_bins)
    of_users = (clicks.n_clicks[rows], windows, best.items, clicks.item_counts(), of_groups)
    return replace(found, certificate=certificate_of(stated, observed, *of_users))


def recommend_ahead(
    posterior: Fit,
    names: NDArray[Any],
    windows: NDArray[np.int64],
    k: int,
    executor: Executor | None,
) -> Recommendations:
    """The recommendations to users of a fit, each with the probabilities of a window of their
    own."""
    parts, places = [], []
    for window in np.unique(windows)[::-1].tolist():  # one warning, of the largest
        rows = np.flatnonzero(windows == window)
        parts.append(
            recommend(posterior, k, users=names[rows].tolist(), window=window, executor=executor)
        )
        places.append(rows)
    back = np.argsort(np.concatenate(places), kind="stable")
    joined = [
        np.concatenate([getattr(part, name) for part in parts])[back]
        for name in ("users", "items", "probabilities", "errors")
    ]
    users, items, probabilities, errors = joined
    return replace(parts[0], users=users, items=items, probabilities=probabilities, errors=errors)


def observed_of(
    items: NDArray[np.int64], later: Clicks, windows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """``observed[user, place]``, whether each item was among the next clicks of the user, as many
    as the window; of more, the first in time, or any of them where that is not known. NaN where
    there is no item."""
    first = keep_first(later, int(windows.max()))
    share = np.minimum(windows / np.maximum(first.n_clicks, 1), 1.0)
    return np.asarray(hits_of(items, first) * share[:, None])


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
