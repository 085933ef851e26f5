"""How to make a fit again: the call in Python, from the settings of a posterior."""

from typing import Any

from ..personal.next_clicks import usual_calibration
from ..personal.personal_fit import Fit, PersonalFit, own_law_for
from ..posterior.posterior import Posterior
from .options import WITH_DRAWS, Case, check_options, option_names, with_defaults


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
    if "updates" in settings:  # its draws go on from those of another
        n_draws = options.get("n_draws")
        is_asked = isinstance(posterior, Posterior) and n_draws == posterior.consensus.shape[1]
        is_asked = is_asked and "reweighed" not in settings  # as it is if none were asked for
        asked = ({"n_draws": n_draws} if is_asked else {}) | {"rng": settings.get("seed")}
        return f"posterior.update({_arguments('more', asked)})"
    given = options | {"rng": settings.get("seed")}
    if "scores" in given:
        return f"pm.personal.fit_scores({_arguments('prefs', given)})"
    given = {"method": settings.get("method")} | given
    prefs = settings.get("reading", "prefs")  # how the file was read, if that is not usual
    return f"pm.fit({_arguments(prefs, given)})"


def _arguments(first: str, named: dict[str, Any]) -> str:
    return ", ".join([first, *(f"{key}={value!r}" for key, value in named.items())])


def fit_options(posterior: Fit) -> dict[str, Any]:
    """The options of a fit that are not the defaults; what prints as ... is data of its own."""
    if isinstance(posterior, PersonalFit):
        return _personal_options(posterior)
    return _options(posterior)


def _options(posterior: Posterior) -> dict[str, Any]:
    settings, n_clusters = posterior.settings, posterior.n_clusters
    method, stored = settings["method"], settings["options"]
    n_draws = stored.get("n_draws", posterior.consensus.shape[1])  # an update may have fewer
    given: dict[str, Any] = {}
    if settings["alpha"] is not None and not stored.get("samples_alpha", True):
        given["alpha"] = settings["alpha"]
    if "thinning" not in settings:  # else there are as many as are good
        given["n_draws"] = n_draws
    given["n_clusters"] = "auto" if "curve" in settings else n_clusters
    if method not in WITH_DRAWS:  # of another version: its defaults are not known here
        return given
    is_contradictory = posterior.data is not None and posterior.data.is_contradictory
    facts = (posterior.kind, posterior.is_full, posterior.n_items, n_clusters)
    case = Case(method, *facts, is_contradictory)
    usual = with_defaults(case, n_draws, check_options(case, {}))
    for option in option_names(case):
        if option in stored and stored[option] != _plain(usual[option]):
            given[option] = stored[option]
    if "keep_latent" in given:
        given["keep_latent"] = posterior.users[given["keep_latent"]].tolist()
    return given


def _plain(value: Any) -> Any:
    """As it comes out of a file."""
    return list(value) if isinstance(value, tuple) else value


def _personal_options(posterior: PersonalFit) -> dict[str, Any]:
    """Data that was given cannot be told here: an ellipsis stands for it."""
    stored = posterior.settings["options"]
    given: dict[str, Any] = {}
    if stored.get("alpha_given"):
        given["alpha"] = posterior.settings["alpha"]
    if posterior.distance != own_law_for(posterior.n_items):
        given["distance"] = posterior.distance
    if stored.get("ridge_given"):
        given["ridge"] = stored["ridge"]
    flags = ("blend", "calibrate")
    given |= {key: False for key in flags if not stored.get(key, True)}
    how, data = stored.get("calibration"), posterior.clicks
    if how is not None and data is not None and how != usual_calibration(data):
        given["calibrate"] = how
    given |= {"with_consensus": True} if stored.get("with_consensus") else {}
    marks = {"held_out": "held_out", "given_scores": "scores"}
    return given | {option: _Ellipsis() for mark, option in marks.items() if stored.get(mark)}


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."
