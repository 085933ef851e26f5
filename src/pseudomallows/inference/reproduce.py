"""How to make a fit again: the call in Python, from the settings of a posterior."""

from typing import Any

import numpy as np

from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.posterior import Posterior
from ..preferences.preferences import Preferences
from .options import check_options, known_options


def call_of(posterior: Fit) -> str:
    """The call that makes a fit again, with the options that are not the defaults.

    Examples
    --------
    >>> from pseudomallows import fit, simulate_rankings
    >>> prefs = simulate_rankings(20, 5, alpha=3, rng=1).preferences
    >>> call_of(fit(prefs, alpha=3, sigma=0.5, rng=1))
    "pm.fit(prefs, method='pseudo', alpha=3.0, n_draws=200, n_clusters=1, sigma=0.5, rng=1)"
    """
    settings, options = posterior.settings, fit_options(posterior)
    given = {"method": settings.get("method")} | options | {"rng": settings.get("seed")}
    return f"pm.fit({', '.join(['prefs', *(f'{key}={value!r}' for key, value in given.items())])})"


def fit_options(posterior: Fit) -> dict[str, Any]:
    """The options of a fit that are not the defaults; what prints as ... is data of its own."""
    if isinstance(posterior, PersonalFit):
        return _personal_options(posterior)
    return _options(posterior)


def _options(posterior: Posterior) -> dict[str, Any]:
    settings, n_draws = posterior.settings, posterior.consensus.shape[1]
    method, n_clusters, stored = settings["method"], posterior.n_clusters, settings["options"]
    given: dict[str, Any] = {}
    if settings["alpha"] is not None and not stored.get("samples_alpha", True):
        given["alpha"] = settings["alpha"]
    given |= {"n_draws": n_draws, "n_clusters": "auto" if "curve" in settings else n_clusters}
    alike = posterior.data or _like(posterior)
    usual = check_options(alike, method, n_draws, n_clusters, True, {}).as_settings()
    for option in known_options(alike, method, n_clusters):
        if option in stored and stored[option] != usual[option]:
            given[option] = stored[option]
    if "keep_latent" in given:
        given["keep_latent"] = posterior.users[given["keep_latent"]].tolist()
    return given


def _like(posterior: Posterior) -> Preferences:
    """One ranking of the same kind, by which the usual options are known."""
    ranks = np.arange(1, posterior.n_items + 1)
    return Preferences.from_rankings([ranks if posterior.is_full else np.where(ranks == 1, 1, 0)])


def _personal_options(posterior: PersonalFit) -> dict[str, Any]:
    """Data that was given cannot be told here: an ellipsis stands for it."""
    stored = posterior.settings["options"]
    given: dict[str, Any] = {}
    if stored.get("alpha_given"):
        given["alpha"] = posterior.settings["alpha"]
    given |= {key: False for key in ("nonnegative", "calibrate") if not stored.get(key, True)}
    marks = {"held_out": "held_out", "given_scores": "scores", "with_clusters": "with_clusters"}
    return given | {option: _Ellipsis() for mark, option in marks.items() if stored.get(mark)}


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."
