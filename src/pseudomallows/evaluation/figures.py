"""Figures of recommendations, with standard errors over users, and what `evaluate` returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.frames import TableRows, rows_of
from ..data.write import finite
from ..markup import Markup, bar, card, reliability, table
from ..personal.personal_fit import GOOD_CALIBRATION, Fit
from ..posterior.diagnose import Check, Verdict
from .baselines import BASELINES
from .certificate import LEAST_EVALUATED, Cell, check_cells, is_mean_right, reach_of, table_of

if TYPE_CHECKING:
    from ..recommendations.recommend import Recommendations


@dataclass(frozen=True, eq=False)
class Calibration:
    """Stated against observed: in each bin, the mean probability, the share observed, and the
    number of recommendations; empty bins are left out."""

    stated: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap, each bin by its number."""
        return float(np.average(np.abs(self.stated - self.observed), weights=self.counts))

    def rows(self) -> TableRows:
        """Stated, observed and count of each bin, by name."""
        return rows_of({"stated": self.stated, "observed": self.observed, "count": self.counts})

    def points(self) -> list[tuple[float, float, float, int]]:
        """Rows for a picture: stated, observed, how far the 95 % interval reaches, count."""
        errors = reach_of(self.observed, self.counts)
        columns = (self.stated, self.observed, errors, self.counts)
        return list(zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True)
class Figure:
    """A figure, and its standard error over users."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.1%} ± {self.error:.1%}"


@dataclass(frozen=True)
class Scores:
    """How good lists of recommendations are, each a mean over the users who are evaluated.

    Attributes
    ----------
    accuracy : Figure
        Share of the recommendations that were right.
    recall : Figure
        Share of a user's hidden clicks that are among the recommendations.
    ndcg : Figure
        The same by places: the first counts most, 1 is the best possible list.
    mrr : Figure
        1 over the place of the first that was right, 0 if none was.
    coverage : Figure
        Share of all items that is recommended to somebody.
    """

    accuracy: Figure
    recall: Figure
    ndcg: Figure
    mrr: Figure
    coverage: Figure


@dataclass(frozen=True)
class Evaluated:
    """Who is evaluated, and by what.

    Attributes
    ----------
    by : str
        The clicks that are right, in words.
    n_evaluated, n_users : int
        The users who are evaluated, of how many.
    others : dict
        ``others[reason]`` is how many users are not evaluated, and why.
    """

    by: str
    n_evaluated: int
    n_users: int
    others: dict[str, int]

    def __str__(self) -> str:
        who = f"{self.n_evaluated:,} of {self.n_users:,} users evaluated"
        why = "; ".join(f"{count:,} {reason}" for reason, count in self.others.items())
        return f"{who}; not evaluated: {why}" if why else who


def hits_of(items: NDArray[np.int64], right: Clicks) -> NDArray[np.float64]:
    """1 where a recommendation was right, 0 where not, NaN where there is none: ``[user, place]``.

    >>> right = Clicks.from_clicks([[1, 0, 1], [0, 1, 0]])
    >>> hits_of(np.array([[2, 1], [0, -1]]), right)
    array([[ 1.,  0.],
           [ 0., nan]])
    """
    cells = right.owners * right.n_items + right.codes
    wanted = np.arange(len(items))[:, None] * right.n_items + items
    places = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(items >= 0, (cells[places] == wanted).astype(np.float64), np.nan)


def scores_of(items: NDArray[np.int64], right: Clicks) -> Scores:
    """All figures of the recommendations to users who have something right each."""
    hits, k = np.nan_to_num(hits_of(items, right)), items.shape[1]
    sizes = right.n_clicks
    gains = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(sizes, k)]
    first = np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)
    return Scores(
        accuracy=_mean(hits.sum(axis=1) / k),
        recall=_mean(hits.sum(axis=1) / np.maximum(sizes, 1)),
        ndcg=_mean(hits @ gains / np.maximum(ideal, gains[0])),
        mrr=_mean(first),
        coverage=_coverage(items, right.n_items),
    )


def _mean(values: NDArray[np.float64]) -> Figure:
    error = float("nan")  # of one user
    if len(values) > 1:
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Figure(float(values.mean()), error)


def _coverage(items: NDArray[np.int64], n_items: int) -> Figure:
    """The share of the items that somebody gets; its error by leaving out one user at a time, who
    takes away the items that nobody else gets."""
    counts = np.bincount(items[items >= 0], minlength=n_items)
    alone = ((items >= 0) & (counts[np.maximum(items, 0)] == 1)).sum(axis=1) / n_items
    n_users = len(items)
    error = float("nan")
    if n_users > 1:
        error = float(np.sqrt((n_users - 1) * alone.var()))
    return Figure(float((counts > 0).mean()), error)


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


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good recommendations are.

    Attributes
    ----------
    accuracy, accuracy_error : float
        Share of the recommendations that were right, and its standard error over users.
    popularity : float
        The same for the most clicked items that a user has not seen.
    calibration : Calibration
        Stated against observed, over all recommendations.
    n_users : int
        Users with hidden clicks, who count here.
    scores : Scores
        Accuracy, recall, NDCG, MRR and coverage, each with its standard error.
    baselines : dict of Scores
        The same for "popularity" and for "EASE" (Steck 2019), if there are at most 4,000 items.
    certificate : list of Cell
        Stated and observed by the user's number of clicks, by how often the items are clicked, and
        by how far ahead, each with a 95 % interval. The verdict looks at the worst of them.
    evaluated : Evaluated
        Who is evaluated, and why others are not.
    """

    accuracy: float
    accuracy_error: float
    popularity: float
    calibration: Calibration
    n_users: int
    recommendations: Recommendations
    posterior: Fit
    scores: Scores
    evaluated: Evaluated
    baselines: dict[str, Scores] = field(default_factory=dict)
    certificate: list[Cell] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the recommendations and their probabilities: answer, words, advice."""
        table = self.calibration
        stated = float(np.average(table.stated, weights=table.counts))
        if self.n_users < LEAST_EVALUATED:
            return Verdict.of([check_evaluated(self.n_users)])
        hits = check_hits(self.accuracy, self.accuracy_error, self.popularity)
        figures = self.accuracy, self.accuracy_error, stated, table.error
        mean = check_calibration(self.evaluated.by, *figures)
        return Verdict.of([hits, mean, check_cells(self.certificate)])

    def figures(self) -> dict[str, Any]:
        """All figures but the recommendations, ready for JSON."""
        verdict, columns = self.verdict, {"fit": self.scores} | self.baselines
        figures = {
            "verdict": {name: getattr(verdict, name) for name in ("answer", "words", "advice")},
            "accuracy": self.accuracy,
            "accuracy_error": self.accuracy_error,
            "popularity": self.popularity,
            "n_users": self.n_users,
            "hidden": self.evaluated.by,
            "all_users": self.evaluated.n_users,
            "not_evaluated": self.evaluated.others,
            "method": self.posterior.method,
            "n_clusters": self.posterior.n_clusters,
            "scores": {name: asdict(scores) for name, scores in columns.items()},
            "calibration_error": self.calibration.error,
            "calibration": [
                dict(zip(("stated", "observed", "error", "count"), point, strict=True))
                for point in self.calibration.points()
            ],
            "certificate": [cell.row() for cell in self.certificate],
        }
        kept: dict[str, Any] = finite(figures)
        return kept

    def keep_in(self, posterior: Fit) -> None:
        """Keep the figures in a fit to the same items, as ``settings["evaluation"]``: so they are
        saved with it, and its report, its page and, of a personal fit, its verdict show them."""
        if self.posterior.items.tolist() != posterior.items.tolist():
            raise ValueError("evaluation must be of the items of the fit, in its order")
        posterior.settings["evaluation"] = self.figures()

    def __repr__(self) -> str:
        rivals = [f"{name} {each.accuracy.value:.1%}" for name, each in self.baselines.items()]
        return (
            f"Evaluation(accuracy {self.accuracy:.1%} ± {self.accuracy_error:.1%}, "
            f"{', '.join(rivals)}, calibration error {self.calibration.error:.3f}; "
            f"{self.evaluated})\n{self.verdict.answer}: {self.verdict.words}"
        )

    def summary(self) -> str:
        """All of it in words, as the command prints it."""
        columns = {"this fit": self.scores} | self.baselines
        verdict, recs = self.verdict, self.recommendations
        names = {"ndcg": "NDCG", "mrr": "MRR"}
        lines = [
            f"{verdict.answer}: {verdict.words} {verdict.advice}".rstrip(),
            f"hidden: {self.evaluated.by}; {recs.items.shape[1]} recommendations each",
            str(self.evaluated),
            " " * 10 + "".join(f"{name:>18}" for name in columns),
        ]
        for key in ("accuracy", "recall", "ndcg", "mrr", "coverage"):
            figures = (getattr(scores, key) for scores in columns.values())
            cells = "".join(f"{figure!s:>18}" for figure in figures)
            lines.append(f"{names.get(key, key):<10}{cells}")
        for name in BASELINES.keys() - columns.keys():
            lines.append(f"{name} is left out, as there are more than 4,000 items")
        lines.append(f"calibration error {self.calibration.error:.3f}")
        lines.append("stated  observed  recommendations")
        bins = "{stated:6.2f}{observed:10.2f}{count:17,}"
        lines += [bins.format(**row) for row in self.calibration.rows()]
        return "\n".join([*lines, *table_of(self.certificate)])

    def _repr_html_(self) -> str:
        """For a notebook: accuracy against popularity, and the calibration as a picture."""
        shares = {"recommended": self.accuracy, "most popular": self.popularity}
        rows: list[tuple[str, Markup]] = [
            (name, bar(share, f"{100 * share:.1f}\u00a0%")) for name, share in shares.items()
        ]
        words = f"of {self.n_users:,} users. {self.verdict.answer}: {self.verdict.words}"
        picture = reliability(self.calibration.points())
        return card("Evaluation", words, table(["items", "right"], rows), picture)


def check_evaluated(n_users: int) -> Check:
    """Are there users enough to say anything?"""
    words = f"Too few users to tell: {n_users:,} could be evaluated."
    advice = "Judge more of them: lower hide, or hide each user's last clicks (split='last')."
    figures = ("users", n_users, LEAST_EVALUATED, "with care")
    return Check(*figures, words, advice, is_least=True, form=".0f")


def check_hits(hits: float, hits_error: float, popularity: float) -> Check:
    """Is the share of hits, with its standard error, above that of the most clicked items?"""
    name = "hits of the recommendations"
    if hits > popularity:
        return Check(name, hits, popularity, "yes", "", is_least=True, form=".1%")
    is_below = hits + hits_error < popularity  # by more than one standard error
    how = "Below popularity" if is_below else "No better than popularity"
    words = f"{how}, which had {popularity:.1%} hits."
    advice = "Recommend the most clicked items, or learn from more clicks."
    answer = "no" if is_below else "with care"
    return Check(name, hits, popularity, answer, words, advice, is_least=True, form=".1%")


def check_calibration(
    clicks: str, hits: float, hits_error: float, stated: float, error: float
) -> Check:
    """Do the stated probabilities agree with what was observed? `clicks` says which were hidden,
    `stated` is the mean probability, `error` the calibration error."""
    answer = "no" if error > 3 * GOOD_CALIBRATION else "with care"
    answer = "yes" if error <= GOOD_CALIBRATION else answer
    meaning = "overall they mean what they say"
    meaning = meaning if answer == "yes" else "trust the order, not the probabilities"
    gap = hits - stated
    if answer == "yes" and not is_mean_right(
        gap - 1.96 * hits_error, gap + 1.96 * hits_error, stated
    ):
        answer, meaning = "with care", f"they are too {'low' if gap > 0 else 'high'} on average"
    words = (
        f"The fit that pm.fit gives, evaluated on {clicks}, hidden from it: {hits:.1%} of its "
        f"recommendations were hits, {stated:.1%} were stated, and probabilities are off by "
        f"{100 * error:.1f} points on average: {meaning}."
    )
    advice = "Give later clicks as held_out; they correct the probabilities."
    advice = "" if answer == "yes" else advice
    figures = ("calibration error", error, GOOD_CALIBRATION, answer)
    return Check(*figures, words, advice, is_note=True, form=".3f")
