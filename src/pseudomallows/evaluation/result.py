"""What `evaluate` finds: accuracy, calibration, and the baseline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
