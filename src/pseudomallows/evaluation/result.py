"""What `evaluate` finds: accuracy, calibration, and the baseline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..markup import Markup, bar, card, reliability, table
from ..posteriors.personal import Fit
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
    """

    accuracy: float
    accuracy_error: float
    popularity: float
    calibration: Calibration
    n_users: int
    recommendations: Recommendations
    posterior: Fit

    def __repr__(self) -> str:
        return (
            f"Evaluation(accuracy {self.accuracy:.1%} ± {self.accuracy_error:.1%}, popularity "
            f"{self.popularity:.1%}, calibration error {self.calibration.error:.3f}; "
            f"{self.n_users} users)"
        )

    def _repr_html_(self) -> str:
        """For a notebook: accuracy against popularity, and the calibration as a picture."""
        shares = {"recommended": self.accuracy, "most popular": self.popularity}
        rows: list[tuple[str, Markup]] = [
            (name, bar(share, f"{100 * share:.1f}\u00a0%")) for name, share in shares.items()
        ]
        words = f"of {self.n_users:,} users; stated and true chances differ by "
        words += f"{100 * self.calibration.error:.1f}\u00a0% on average"
        picture = reliability(self.calibration.points())
        return card("Evaluation", words, table(["items", "right"], rows), picture)
