"""What several tests need: a chi-square against exact laws, the interpreted kernel, tables."""

import io
from collections import Counter

import numba
import numpy as np
from scipy import stats

import pseudomallows as pm
from pseudomallows.files.csv_files import write_rows

IS_COMPILED = not numba.config.DISABLE_JIT  # uncompiled, tests must be smaller


def p_value(draws, law):
    """p-value of draws (rows) against {ranking: probability}; all expected counts are 5 or more."""
    counts = Counter(map(tuple, np.asarray(draws).tolist()))
    assert set(counts) <= set(law), "a draw has probability 0"
    expected = np.array(list(law.values())) * len(draws)
    assert expected.min() >= 5, "too few draws for a chi-square"
    return stats.chisquare(
        [counts[key] for key in law], expected * len(draws) / expected.sum()
    ).pvalue


def interpreted(kernel):
    """The kernel as plain Python."""
    return getattr(kernel, "py_func", kernel)


def choose(law, n_draws, rng):
    """Rows drawn from {ranking: probability}."""
    keys, probabilities = np.array(list(law)), np.array(list(law.values()))
    return keys[rng.choice(len(keys), n_draws, p=probabilities)]


def cells_of(prefs):
    """What a user said, by names: comparable whatever the order of rows and columns."""
    if isinstance(prefs, pm.Clicks):
        return {
            user: sorted(prefs.items[prefs.clicks_of(row)].tolist())
            for row, user in enumerate(prefs.users.tolist())
        }
    table = prefs.rankings.tolist()
    return {
        user: dict(zip(prefs.items.tolist(), table[row], strict=True))
        for row, user in enumerate(prefs.users.tolist())
    }


def as_text(rows, delimiter=","):
    """Rows as bytes of separated values."""
    stream = io.BytesIO()
    write_rows(stream, rows, delimiter)
    return stream.getvalue()
