"""A correction that makes probabilities agree with what is observed, for any window."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Places that a correction is learnt from with very many items, else from all: 4 times 60, the
# largest window that is learnt for, and some more.
N_LEARNT = 256
FAR = 5  # times the largest window: beyond, nothing that was observed is near
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Logistic in some features, then a smooth map that rises everywhere.

    The features of an item have coefficients of 0 or more, those of its place above 0, so that a
    higher score always has a higher probability. Every one of them rises with the window too, so
    that a longer window has a higher one. Last, one number is added to all log odds of a user, so
    that the probabilities of all unseen items have the window as their sum (`add_up_to`).

    Attributes
    ----------
    coefficients : array
        One for each feature of `fill_features`, then the constant.
    marks : array
        Of the scores: the middle, the spread, a low and a high one; and the largest window that
        was learnt.
    knots, values, slopes : arrays
        The map from the logistic scale to log odds: a cubic between each two knots, with these
        values and slopes there, straight beyond them.
    standard_errors : array
        Those of the log odds at the knots: from the users behind them, and, where several
        dates are, from how much these differ.
    largest : int
        The largest window it was learnt for, or nearly so: twice the largest of its cases. A longer
        one has the odds of that one, and its own sum, up to `FAR` times as long.
    per_click : bool
        Was it learnt for one click that is missing? Then it holds for any number of them.
    """

    coefficients: Floats
    marks: Floats
    knots: Floats
    values: Floats
    slopes: Floats
    standard_errors: Floats
    largest: int
    per_click: bool = False

    def errors_of(self, probabilities: Floats, window: int) -> Floats:
        """Standard errors of corrected probabilities."""
        if self.per_click and window > 1:
            return window * self.errors_of(probabilities / window, 1)
        inside = np.clip(probabilities, 1e-9, 1 - 1e-9)
        log_odds = np.log(inside / (1 - inside))
        errors = np.interp(log_odds, self.values, self.standard_errors)
        return np.asarray(inside * (1 - inside) * errors)

    def covers(self, window: int) -> bool:
        """Does it hold for this window?"""
        return self.per_click or 1 <= window <= FAR * self.largest

    @property
    def windows(self) -> str:
        """Those it holds for, in words."""
        return f"1 to {self.largest}" if self.largest > 1 else "1"


def marks_of(scores: Floats, largest: int) -> Floats:
    """Middle, spread, a low and a high value of the scores of unseen items; the largest window."""
    middle, low, high = np.quantile(scores, [0.5, 0.01, 0.999])
    spread = max(float(np.median(np.abs(scores - middle))), 0.05 * float(scores.std()), 1e-9)
    return np.array([middle, spread, low, high, largest])
