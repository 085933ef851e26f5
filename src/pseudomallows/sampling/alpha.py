"""estimate_alpha: how concentrated the users are around their consensus."""

import math

import numpy as np

from .. import distances
from ..data.preferences import Preferences, check_informative, check_preferences
from ..engines.executors import Executor, check_executor
from ..laws.law import Clusters, Floats, Law
from ..laws.registry import make_law
from ..paper.similarity import HIGHEST_ALPHA, alpha_by_click_similarity, alpha_by_similarity
from ..rankings import as_rng, check_name
from .chain import Chain, Moves, new_state
from .options import N_MOVES
from .priors import AlphaPrior
from .start import best_place, unbounded

METHODS = ("similarity", "likelihood")
# Of "likelihood"; what is below is 0. By the footrule a ranking tells n alpha^2 / 45 nats of
# it, so fewer than some 400,000 / n users cannot tell 0.01 from 0.
LEAST_ALPHA = 0.01
# How far log alpha moves in one step: on the way, and at the end. With half and with twice of each,
# alphas of three sets of clicks were the same to 0.5 %.
FAR, NEAR = 0.5, 0.2
# At most. 40 * FAR = 20 in log alpha, and from LEAST_ALPHA to HIGHEST_ALPHA it is 13.8; the last
# begin within NEAR of where the steps before ended, so that one or two do.
N_STEPS, N_LAST_STEPS = 40, 5
N_PLACES = 5  # of alpha, for an integral: exact for a slope that is a polynomial of degree 9
# Of the consensus for the last steps, for many users and for few: 50 of clicks of 1,000 users
# on 50 items took 1.2 s (docs/measurements.md, Alpha), and more users tell alpha better.
FEW_DRAWS, MANY_DRAWS = 50, 400


def estimate_alpha(
    prefs: Preferences,
    method: str = "similarity",
    *,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    distance: str = "footrule",
) -> float:
    """Estimate alpha from what is known about the users.

    Parameters
    ----------
    prefs : Preferences
        What is known about the users.
    method : str
        "similarity": the alpha at which two users are expected to be as similar (by cosine) as in
        the data. This is the paper's method, with the exact curve instead of simulated data sets,
        for full rankings and for clicks. "likelihood": the alpha under which the data are most
        likely, summed over all consensuses, by a short chain of consensuses and the exact
        likelihood given each; its noise is about a tenth of the standard error.
    rng : numpy.random.Generator or seed, optional
        Used by "likelihood" only.
    distance : str
        "footrule"; for another one (for clicks, "kendall") give method="likelihood".

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> rankings = Mallows(np.arange(1, 21), alpha=4).draw(500, rng=1)
    >>> prefs = Preferences.from_rankings(rankings)
    >>> round(estimate_alpha(prefs), 1), round(estimate_alpha(prefs, "likelihood", rng=1), 1)
    (4.1, 4.1)
    """
    check_name(method, "method", METHODS)
    check_preferences(prefs)
    if method == "similarity" and distances.get(distance).name != "footrule":
        raise ValueError(
            f"method='similarity' works with the footrule only: for distance={distance!r} give "
            "method='likelihood'"
        )
    check_executor(executor)
    rng = as_rng(rng)
    table = prefs.by_size() if method == "similarity" else None
    if table is not None:
        check_informative(prefs.is_informative)
        return _finite(alpha_by_click_similarity(table))
    law = make_law(prefs, executor, distance)
    if method == "similarity":
        return _finite(alpha_by_similarity(law))
    return _finite(_alpha_by_likelihood(law, rng))


def _finite(alpha: float) -> float:
    if math.isinf(alpha):
        raise ValueError(
            "the users agree on everything (or there is only one user), so no finite alpha is "
            "best: give alpha, or use method='mcmc', where its prior decides"
        )
    return alpha


def _alpha_by_likelihood(law: Law, rng: np.random.Generator) -> float:
    """Climb the likelihood of alpha, the consensus summed out, from its best for one consensus.

    That is too large: the consensus that fits best fits the noise too.
    """
    if law.has_latent:
        raise ValueError(
            f"users known in part by {law.distance.name} have no exact likelihood to "
            "estimate alpha from: give alpha, or use method='mcmc', which samples it"
        )
    moves = Moves(n_moves=law.n_moves or N_MOVES * law.n_items)
    start = best_place(law.tallies(None, 1)[0], None, AlphaPrior(1.0, 0.0))  # flat
    law.anchor(start, None)
    # a chain of consensuses at an alpha that it leaves as it is
    chain = Chain(law, new_state(law, start, np.ones(1), None, moves), moves, rng)
    n_draws = min(max(50_000 // law.n_rows, FEW_DRAWS), MANY_DRAWS)
    n_draws = 3 * MANY_DRAWS if law.is_exact else n_draws  # where they cost little
    for _ in range(N_STEPS):
        if not LEAST_ALPHA <= _alpha_of(chain) <= HIGHEST_ALPHA:
            return 0.0 if _alpha_of(chain) < LEAST_ALPHA else math.inf
        step = _best_step(chain, FAR, n_draws // 6)
        _go_to(chain, _alpha_of(chain) * math.exp(step))
        if abs(step) < NEAR:
            break
    for _ in range(N_LAST_STEPS):
        step = _best_step(chain, NEAR, n_draws)
        _go_to(chain, _alpha_of(chain) * math.exp(step))
        if abs(step) < 0.99 * NEAR:
            break
    if unbounded(chain)[0]:
        return math.inf
    return _alpha_of(chain) if _beats_chance(chain, n_draws) else 0.0


def _alpha_of(chain: Chain) -> float:
    return float(chain.state.alpha[0])


def _go_to(chain: Chain, alpha: float) -> None:
    chain.go_to(chain.state._replace(alpha=np.array([alpha])))


def _log_likelihoods(chain: Chain, alphas: Floats) -> list[float]:
    """Of the present consensus, at these alphas; exact."""
    consensus = chain.state.consensus
    if chain.law.is_exact:
        return [*map(chain.tallies[0].curve(consensus[0]), alphas.tolist())]
    clusters = [Clusters(consensus, alphas[k : k + 1]) for k in range(len(alphas))]
    return [float(chain.law.weigh(each, None)[0]) for each in clusters]


def _draw(chain: Chain, alphas: Floats, n_draws: int) -> Floats:
    """``logs[place, draw]``: of these alphas, for consensuses drawn given that of the chain."""
    logs = np.empty((len(alphas), n_draws))
    for draw in range(n_draws):
        chain.sweep(adapt=False)
        logs[:, draw] = _log_likelihoods(chain, alphas)
    return logs


def _best_step(chain: Chain, reach: float, n_draws: int) -> float:
    """How far log alpha should move, at most by `reach`.

    With consensuses drawn given the alpha of the chain, the likelihood of any other, over that of
    this one, is the mean over them of the ratio of their likelihoods (Geyer and Thompson 1992).
    These are exact at five alphas, and polynomials in log alpha between.
    """
    from scipy.optimize import minimize_scalar

    steps = np.linspace(-reach, reach, 5)
    logs = _draw(chain, _alpha_of(chain) * np.exp(steps), n_draws)
    curves = np.polyfit(steps, logs - logs[2], 4)
    best = minimize_scalar(
        lambda step: -float(np.logaddexp.reduce(np.polyval(curves, step))),
        bounds=(-reach, reach),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(best.x)


def _beats_chance(chain: Chain, n_draws: int) -> bool:
    """Is the alpha of the chain more likely than 0?

    Certainly, if one consensus alone, one of n!, makes it so. If not, by the integral of the slope
    of the log likelihood, which is the mean slope given a consensus, over the consensuses.
    """
    alpha, n_items = _alpha_of(chain), chain.law.n_items
    here, by_chance = _log_likelihoods(chain, np.array([alpha, 0.0]))
    if here - math.lgamma(n_items + 1) > by_chance:
        return True
    places, weights = np.polynomial.legendre.leggauss(N_PLACES)
    total = 0.0
    for place, weight in zip((1 + places[::-1]) / 2, weights, strict=True):
        _go_to(chain, alpha * float(place))
        around = _alpha_of(chain) * np.array([0.95, 1.05])
        logs = _draw(chain, around, n_draws // N_PLACES)
        total += float(weight * (logs[1] - logs[0]).mean()) / (around[1] - around[0])
    _go_to(chain, alpha)
    return total > 0
