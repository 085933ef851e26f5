"""How to make a fit again: the call in Python, from the settings of a fit, which name the options
that were given."""

from typing import Any

from ..personal.personal_fit import Fit


def call_of(posterior: Fit) -> str:
    """The call that makes a fit again, with the options that were given.

    Examples
    --------
    >>> from pseudomallows import fit, simulate_rankings
    >>> prefs = simulate_rankings(20, 5, alpha=3, rng=1).preferences
    >>> call_of(fit(prefs, alpha=3, sigma=0.5, rng=1))
    "pm.fit(prefs, method='pseudo', alpha=3.0, sigma=0.5, rng=1)"
    """
    settings, options = posterior.settings, fit_options(posterior)
    seed = {"rng": settings.get("seed")}
    if "updates" in settings:  # its draws go on from those of another
        asked = {}
        if "n_draws" in options and "reweighed" not in settings:  # where none were asked for
            asked = {"n_draws": options["n_draws"]}
        return f"posterior.update({_arguments('more', asked | seed)})"
    if "scores" in options:
        return f"pm.personal.fit_scores({_arguments('prefs', options | seed)})"
    prefs = settings.get("reading", "prefs")  # how the file was read, if that is not usual
    return f"pm.fit({_arguments(prefs, {'method': settings.get('method')} | options | seed)})"


def _arguments(first: str, named: dict[str, Any]) -> str:
    return ", ".join([first, *(f"{key}={value!r}" for key, value in named.items())])


def fit_options(posterior: Fit) -> dict[str, Any]:
    """The options that were given for a fit; what prints as ... is data of its own."""
    settings, stored = posterior.settings, posterior.settings["options"]
    known = stored | {name: settings.get(name) for name in ("alpha", "distance")}
    if "curve" in settings:
        known["n_clusters"] = "auto"
    if stored.get("calibration") is not None:
        known["calibrate"] = stored.get("later_share", stored["calibration"])
    if stored.get("population") is not None:
        known["distance"] = stored["population"]["distance"]
    known |= {"held_out": _Ellipsis(), "scores": _Ellipsis()}
    given = {name: known[name] for name in settings.get("given", []) if name in known}
    if "keep_latent" in given:
        given["keep_latent"] = posterior.users[given["keep_latent"]].tolist()
    return given


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."
