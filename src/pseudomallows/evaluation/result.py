"""What `evaluate` finds: how good the recommendations are, whose they are, and the baselines."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..markup import Markup, bar, card, reliability, table
from ..posteriors.personal import Fit
from ..posteriors.verdict import Verdict, judge_hits
from ..recommendations.recommend import Recommendations


@dataclass(frozen=True, eq=False)
class Calibration:
    """Stated against observed: in each bin, the mean probability, the share that came true, and
    the number of recommendations; empty bins are left out."""

    stated: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap, each bin by its number."""
        return float(np.average(np.abs(self.stated - self.observed), weights=self.counts))

    def points(self) -> list[tuple[float, float, float, int]]:
        """Rows for a picture: stated, observed, two standard errors of it, count."""
        errors = 2 * np.sqrt(self.observed * (1 - self.observed) / self.counts)
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
    """How good lists of recommendations are, each a mean over the users who are judged.

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
class Judged:
    """Who is judged, and by what.

    Attributes
    ----------
    by : str
        The clicks that are right, in words.
    n_judged, n_users : int
        The users who are judged, of how many.
    others : dict
        ``others[reason]`` is how many users are not judged, and why.
    """

    by: str
    n_judged: int
    n_users: int
    others: dict[str, int]

    def __str__(self) -> str:
        told = f"{self.n_judged:,} of {self.n_users:,} users judged"
        why = "; ".join(f"{count:,} {reason}" for reason, count in self.others.items())
        return f"{told}; not judged: {why}" if why else told


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
    judged : Judged
        Who is judged, and why others are not.
    """

    accuracy: float
    accuracy_error: float
    popularity: float
    calibration: Calibration
    n_users: int
    recommendations: Recommendations
    posterior: Fit
    scores: Scores
    judged: Judged
    baselines: dict[str, Scores] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the recommendations and their probabilities: answer, words, advice."""
        table, accuracy = self.calibration, (self.accuracy, self.accuracy_error)
        stated = float(np.average(table.stated, weights=table.counts))
        return judge_hits(self.judged.by, stated, table.error, accuracy, self.popularity)

    def __repr__(self) -> str:
        ease = self.baselines.get("EASE")
        rival = "" if ease is None else f", EASE {ease.accuracy.value:.1%}"
        return (
            f"Evaluation(accuracy {self.accuracy:.1%} ± {self.accuracy_error:.1%}, popularity "
            f"{self.popularity:.1%}{rival}, calibration error {self.calibration.error:.3f}; "
            f"{self.judged})\n{self.verdict.answer}: {self.verdict.words}"
        )

    def summary(self) -> str:
        """All of it in words, as the command prints it."""
        columns = {"this fit": self.scores} | self.baselines
        names = {"accuracy": "accuracy", "recall": "recall", "ndcg": "NDCG", "mrr": "MRR"}
        verdict = self.verdict
        lines = [
            f"{verdict.answer}: {verdict.words} {verdict.advice}".rstrip(),
            f"hidden: {self.judged.by}; {self.recommendations.items.shape[1]} recommendations each",
            str(self.judged),
            " " * 10 + "".join(f"{name:>18}" for name in columns),
        ]
        for key, name in (names | {"coverage": "coverage"}).items():
            figures = (getattr(scores, key) for scores in columns.values())
            lines.append(f"{name:<10}" + "".join(f"{figure!s:>18}" for figure in figures))
        if "EASE" not in columns:
            lines.append("EASE is left out, as there are more than 4,000 items")
        lines += [
            f"calibration error {self.calibration.error:.3f}",
            "stated  observed  recommendations",
        ]
        table = (self.calibration.stated, self.calibration.observed, self.calibration.counts)
        rows = zip(*(column.tolist() for column in table), strict=True)
        lines += [f"{stated:6.2f}{observed:10.2f}{count:17,}" for stated, observed, count in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For a notebook: accuracy against popularity, and the calibration as a picture."""
        shares = {"recommended": self.accuracy, "most popular": self.popularity}
        rows: list[tuple[str, Markup]] = [
            (name, bar(share, f"{100 * share:.1f}\u00a0%")) for name, share in shares.items()
        ]
        words = f"of {self.n_users:,} users. {self.verdict.answer}: {self.verdict.words}"
        picture = reliability(self.calibration.points())
        return card("Evaluation", words, table(["items", "right"], rows), picture)
