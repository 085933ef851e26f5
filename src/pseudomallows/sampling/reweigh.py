"""A few more clicks: the draws of a fit stay, and weigh by how likely they make what is new."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..engines.executors import Executor, Threads, all_cores, is_remote
from ..laws.law import Clusters
from ..laws.registry import make_law
from ..posterior.diagnose import GOOD_SIZE, effective_size
from ..posterior.posterior import Posterior
from ..scores import weighted_effective_size

# Of the draws, by their weights; below it chains go on instead: errors would be 1.4 times as large.
LEAST_SHARE = 0.5
MOST_CHANGED = 0.2  # of the users


def reweigh(posterior: Posterior, prefs: Clicks, executor: Executor | None) -> Posterior | None:
    """The exact posterior of one consensus given these clicks, by weights of its draws; None where
    they would be worth too little, or too much is new.

    By Bayes' rule the weight of a draw grows by the probability of what is new under it, and falls
    by that of what is no more.
    """
    old = posterior.clicks
    is_simple = posterior.n_clusters == 1 and not posterior.latent.size and not is_remote(executor)
    if old is None or posterior.method != "mcmc" or not is_simple:
        return None
    before, after = changed_rows(old, prefs)
    if before is None or len(after) > MOST_CHANGED * max(old.n_users, 1):
        return None
    gained = _log_likelihoods(posterior, prefs.take(after), executor)
    gained -= _log_likelihoods(posterior, old.take(before), executor)
    log_weights = np.log(np.maximum(posterior.weights, 1e-300)) + gained
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    share = weighted_effective_size(weights) / weights.size
    reweighed = replace(
        posterior,
        weights=weights,
        log_posterior=posterior.log_posterior + gained,
        data=prefs,
        users=prefs.users,
        chain_memberships=np.ones((len(weights), prefs.n_users, 1), np.float32),
    )
    if share < LEAST_SHARE or effective_size(reweighed) < min(GOOD_SIZE, weights.size / 2):
        return None
    n_people = int(prefs.weights[prefs.is_informative].sum())
    settings = {"n_users": n_people, "reweighed": {"effective_share": float(share)}}
    return replace(reweighed, settings=reweighed.settings | settings)


def changed_rows(old: Clicks, new: Clicks) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """The rows of `old` whose clicks or weights are others in `new`, and these rows and the new
    ones there; None for the first if users have other rows, or the items are others.

    >>> from pseudomallows import Preferences
    >>> tables = [[1, 0], [1, 0]], [[1, 0], [1, 1], [0, 1]]
    >>> changed_rows(*(Preferences.from_clicks(table) for table in tables))
    (array([1]), array([1, 2]))
    """
    n_old, nobody = old.n_users, np.empty(0, dtype=np.int64)
    same_names = new.n_users >= n_old and np.array_equal(old.users, new.users[:n_old])
    if not same_names or not np.array_equal(old.items, new.items):
        return None, nobody
    differs = (old.n_clicks != new.n_clicks[:n_old]) | (old.weights != new.weights[:n_old])
    alike = np.flatnonzero(~differs)
    one, other = old.take(alike), new.take(alike)
    owners = np.repeat(np.arange(len(alike)), one.n_clicks)
    differs[alike[np.unique(owners[one.codes != other.codes])]] = True
    before = np.flatnonzero(differs)
    return before, np.concatenate([before, np.arange(n_old, new.n_users)])


def _log_likelihoods(
    posterior: Posterior, prefs: Clicks, executor: Executor | None
) -> NDArray[np.float64]:
    """``[chain, draw]``: log probability of these clicks under each draw."""
    said, shape = prefs.take(prefs.is_informative), posterior.weights.shape
    if not said.n_users:
        return np.zeros(shape)
    law = make_law(said, Threads(1), posterior.settings["distance"])

    def work(draw: int) -> float:
        place = np.unravel_index(draw, shape)
        return float(
            law.weigh(Clusters(posterior.consensus[place], posterior.alpha[place]), None)[0]
        )

    run = executor or all_cores()
    return np.array(list(run.map(work, range(posterior.weights.size)))).reshape(shape)
