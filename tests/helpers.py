"""What several tests need: a chi-square against exact laws, the interpreted kernel, tables."""

import csv
import functools
import io
import itertools
import math
from collections import Counter

import numba
import numpy as np
from scipy import stats

import naive
import pseudomallows as pm

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
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return stream.getvalue().encode()


@functools.cache
def two_clusters(rows, n_items, alphas, share_prior, prior=None, distance="footrule"):
    """All pairs (center, alpha), ``law[one, other]`` of two clusters of users with these clicks,
    labels and shares summed out; and the mean of the larger share. Logs of alphas are even."""
    pairs = list(itertools.product(naive.all_rankings(n_items), alphas))
    likelihood = np.array(
        [[naive.click_likelihood(row, *pair, distance) for row in rows] for pair in pairs]
    )
    of_alpha = np.zeros(len(pairs))
    if prior is not None:
        of_alpha = np.array([prior[0] * math.log(alpha) - prior[1] * alpha for _, alpha in pairs])
    shares = stats.beta(share_prior, share_prior).ppf((np.arange(60) + 0.5) / 60)
    law, larger = np.zeros((len(pairs), len(pairs))), 0.0
    for share in shares:
        each = np.exp(of_alpha[:, None] + of_alpha)
        for one in likelihood.T:
            each *= share * one[:, None] + (1 - share) * one
        law += each
        larger += max(share, 1 - share) * each.sum()
    return pairs, law / law.sum(), larger / law.sum()


def check_two_clusters(posterior, rows, alpha, share_prior, distance="footrule"):
    """p-value of how far apart the two centers are, against the exact law at an alpha; and the
    error of the mean of the larger share, in standard errors."""
    pairs, law, larger = two_clusters(
        rows, posterior.n_items, (alpha,), share_prior, None, distance
    )
    away = [[naive.footrule(one, other) for other, _ in pairs] for one, _ in pairs]
    exact = np.bincount(np.ravel(away), law.ravel())[2::2]  # few are the same
    drawn = np.abs(posterior.consensus[:, :, 0] - posterior.consensus[:, :, 1]).sum(axis=-1)
    counts = np.bincount(drawn.ravel(), minlength=2 * len(exact) + 1)[2::2]
    shares = posterior.shares.max(axis=-1)
    error = abs(shares.mean() - larger) / (shares.std() / math.sqrt(shares.size / 2))
    return stats.chisquare(counts, exact * counts.sum() / exact.sum()).pvalue, error


def two_alpha_errors(posterior, rows, prior, distance="footrule"):
    """Errors of the means of the larger and of the smaller log alpha, in standard errors."""
    grid = tuple(np.exp(np.arange(math.log(0.05), math.log(30.0), 0.12)).tolist())
    pairs, law, _ = two_clusters(rows, posterior.n_items, grid, 1.0, prior, distance)
    logs, drawn, errors = np.log([alpha for _, alpha in pairs]), np.log(posterior.alpha), []
    for ends in (np.maximum, np.minimum):
        values = ends(drawn[..., 0], drawn[..., 1])
        exact = float((law * ends(logs[:, None], logs)).sum())
        errors.append(abs(values.mean() - exact) / (values.std() / math.sqrt(values.size / 3)))
    return errors
