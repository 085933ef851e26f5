"""The options of a fit: which there are for each method and kind of data, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clicks import AUGMENTATIONS, ORDERS
from .mcmc import MOVES, STARTS, ChainOptions
from .preferences import Clicks, Preferences, Rankings, rows_of_users
from .rankings import check_count, check_distance, check_number


@dataclass(frozen=True)
class Options:
    """Every option of a fit, checked."""

    n_draws: int
    n_chains: int
    warmup: int
    thin: int
    sigma: float
    order: str
    weighted: bool
    augmentation: str
    n_swaps: int
    keep_latent: NDArray[np.int64]  # rows of the users whose latent rankings are kept
    chain: ChainOptions

    def as_settings(self) -> dict[str, Any]:
        """For the settings of a posterior."""
        flat = {key: value for key, value in vars(self).items() if key != "chain"}
        flat["keep_latent"] = self.keep_latent.tolist()
        return flat | vars(self.chain) | {"alpha_prior": list(self.chain.alpha_prior)}


def is_all_known(prefs: Preferences) -> bool:
    """Are there full rankings only (and rows that say nothing)?"""
    if not isinstance(prefs, Rankings):
        return False
    return bool((prefs.is_full | ~prefs.is_informative).all())


def known_options(prefs: Preferences, method: str) -> dict[str, Any]:
    """The options there are, with their defaults."""
    full, clicks, n_items = is_all_known(prefs), isinstance(prefs, Clicks), prefs.n_items
    known: dict[str, Any] = {"n_chains": 4 if method == "mcmc" else 1, "distance": "footrule"}
    if method == "mcmc" or not full:
        quick = full or (clicks and method == "pseudo")
        known |= {"warmup": None, "thin": 1 if quick else 5 if method == "mcmc" else 10}
    if method == "pseudo":
        known |= {"sigma": 0.0} | ({"order": "uniform"} if clicks else {})
    elif method == "balanced":
        known |= {"weighted": True}
    else:
        known |= {"move": "swap", "leap": max(1, n_items // 5), "n_moves": 10 * n_items}
        known |= {"start": "map", "alpha_prior": (1.0, 0.001)}
        known |= {"augmentation": "exact", "n_swaps": 1} if clicks else {}
    return known | ({"keep_latent": ()} if clicks else {})


def check_options(
    prefs: Preferences, method: str, n_draws: int | None, options: dict[str, Any]
) -> Options:
    """Return all options, or say which is wrong."""
    known = known_options(prefs, method)
    strange = sorted(set(options) - set(known))
    full = is_all_known(prefs)
    if strange:
        kind = (
            "clicks" if isinstance(prefs, Clicks) else f"{'full' if full else 'partial'} rankings"
        )
        raise TypeError(
            f"method={method!r} on {kind} has no option {strange[0]!r}; "
            f"it has {', '.join(sorted(known))}"
        )
    chosen = known | options
    check_distance(chosen["distance"])
    default = 4000 if method == "balanced" and full else 200
    draws = check_count(default if n_draws is None else n_draws, "n_draws")
    thin = check_count(chosen.get("thin", 1), "thin")
    warmup = chosen.get("warmup", 0)
    return Options(
        n_draws=draws,
        n_chains=check_count(chosen["n_chains"], "n_chains"),
        warmup=_default_warmup(prefs, method, draws * thin)
        if warmup is None
        else check_count(warmup, "warmup", 0),
        thin=thin,
        sigma=check_number(chosen.get("sigma", 0.0), "sigma"),
        order=_check_name(chosen.get("order", "uniform"), "order", tuple(ORDERS)),
        weighted=bool(chosen.get("weighted", False)),
        augmentation=_check_name(
            chosen.get("augmentation", "exact"), "augmentation", AUGMENTATIONS
        ),
        n_swaps=check_count(chosen.get("n_swaps", 1), "n_swaps"),
        keep_latent=rows_of_users(prefs, chosen.get("keep_latent", ())),
        chain=ChainOptions(
            move=_check_name(chosen.get("move", "swap"), "move", tuple(MOVES)),
            leap=min(check_count(chosen.get("leap", 1), "leap"), prefs.n_items - 1),
            n_moves=check_count(chosen.get("n_moves", 1), "n_moves"),
            start=_check_name(chosen.get("start", "map"), "start", STARTS),
            alpha_prior=_check_prior(chosen.get("alpha_prior", (1.0, 0.001))),
            n_alpha_moves=5 if full else 1,
        ),
    )


def _default_warmup(prefs: Preferences, method: str, n_sweeps: int) -> int:
    if isinstance(prefs, Clicks) and method == "pseudo":
        return max(10, n_sweeps // 10)  # it starts close, and moves fast
    return max(100, n_sweeps // 2)


def _check_name(value: str, what: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def _check_prior(prior: Any) -> tuple[float, float]:
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(f"alpha_prior must be (shape, rate) of a gamma, got {prior!r}") from None
    shape, rate = check_number(shape, "alpha_prior shape"), check_number(rate, "alpha_prior rate")
    if shape == 0 or rate == 0:
        raise ValueError(f"alpha_prior must have a shape and a rate above 0, got {prior!r}")
    return shape, rate
