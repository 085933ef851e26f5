"""The options of a fit: which there are for each method and kind of data, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import as_size, available_memory
from ..latent.clicks import AUGMENTATIONS, ORDERS
from ..preferences.preferences import Clicks, Preferences, Rankings, rows_of_users
from ..rankings import check_count, check_distance, check_number
from .mcmc import MOVES, STARTS, ChainOptions
from .priors import FLAT, Prior, default_prior
from .states import PseudoOptions

METHODS = ("pseudo", "balanced", "mcmc", "personal")
UPDATES = ("sampled", "expected")


@dataclass(frozen=True)
class Options:
    """Every option of a fit, checked."""

    n_clusters: int
    n_draws: int
    n_chains: int
    warmup: int
    thin: int
    refresh: int
    share_prior: float
    augmentation: str
    n_swaps: int
    keep_latent: NDArray[np.int64]  # rows of the users whose latent rankings are kept
    pseudo: PseudoOptions
    chain: ChainOptions

    @property
    def n_sweeps(self) -> int:
        """Sweeps of each chain."""
        return self.warmup + self.n_draws * self.thin

    def as_settings(self) -> dict[str, Any]:
        """For the settings of a posterior."""
        flat = {key: value for key, value in vars(self).items() if key not in ("chain", "pseudo")}
        flat["keep_latent"] = self.keep_latent.tolist()
        flat |= vars(self.pseudo) | vars(self.chain)
        return flat | {"alpha_prior": list(self.chain.alpha_prior)}


def check_memory(plan: Options, n_items: int, n_users: int) -> None:
    """Refuse draws that cannot all be kept, before any is made."""
    available = available_memory()
    each, others = _bytes_of_draw(plan, n_items), 8 * n_users * plan.n_clusters  # a chain's
    needed = plan.n_chains * (plan.n_draws * each + others)
    if available is None or needed <= available:
        return
    most = max(0, available // plan.n_chains - others) // each
    kept = len(plan.keep_latent)
    latent = f", with the latent rankings of {kept} users," if kept else ""
    advice = f"at most n_draws={most} fit" if most else "give fewer chains, or keep_latent"
    raise ValueError(
        f"n_chains={plan.n_chains} of n_draws={plan.n_draws}{latent} need {as_size(needed)} of "
        f"memory, and {as_size(available)} are available: {advice}; a larger thin keeps fewer "
        "draws of as long a chain"
    )


def _bytes_of_draw(plan: Options, n_items: int) -> int:
    """A draw is there twice at the end, when the clusters are put in order; the ranks of a cluster
    are there once more as floats, when they are judged."""
    clusters, latent = plan.n_clusters * (4 * n_items + 16), 4 * len(plan.keep_latent) * n_items
    return 2 * (clusters + 24) + latent + 8 * n_items


def is_all_known(prefs: Preferences) -> bool:
    """Are there full rankings only (and rows that say nothing)?"""
    if not isinstance(prefs, Rankings):
        return False
    return bool((prefs.is_full | ~prefs.is_informative).all())


def known_options(prefs: Preferences, method: str, n_clusters: int) -> dict[str, Any]:
    """The options there are, with their defaults."""
    full, clicks, n_items = is_all_known(prefs), isinstance(prefs, Clicks), prefs.n_items
    known: dict[str, Any] = {"n_chains": 4 if method == "mcmc" else 1, "distance": "footrule"}
    if method == "mcmc" or not full or n_clusters > 1:
        known |= {"warmup": None, "thin": _default_thin(method, full, clicks, n_clusters)}
    if n_clusters > 1:
        quick = full or (clicks and method == "pseudo")
        known |= {"refresh": (1 if full else 20) if quick else 5, "share_prior": 1.0}
    if method == "pseudo":
        noisy = clicks and n_clusters > 1  # few users, sharp costs: one order scrambles the top
        known |= {"sigma": n_items / 5 if noisy else 0.0}
        known |= {"order": "uniform", "update": "sampled"} if clicks else {}
    elif method == "balanced":
        known |= {"weighted": True}
    else:
        known |= {"move": "swap", "leap": max(1, n_items // 5), "n_moves": 10 * n_items}
        known |= {"alpha_prior": default_prior(n_items)}
        known |= {"start": "map"} if n_clusters == 1 else {}
        known |= {"augmentation": "exact", "n_swaps": 1} if clicks and n_clusters == 1 else {}
    return known | ({"keep_latent": ()} if clicks else {})


def check_options_of_either(
    prefs: Preferences, method: str, n_draws: int | None, options: dict[str, Any]
) -> None:
    """Refuse options that are wrong whatever the number of clusters will be."""
    strange = set(options)
    for n_clusters in (1, 2):
        known = known_options(prefs, method, n_clusters)
        mine = {name: value for name, value in options.items() if name in known}
        plan = check_options(prefs, method, n_draws, n_clusters, True, mine)
        check_memory(plan, prefs.n_items, prefs.n_users)
        strange -= set(known)
    check_options(prefs, method, n_draws, 2, True, {name: options[name] for name in strange})


def _default_thin(method: str, full: bool, clicks: bool, n_clusters: int) -> int:
    if full or (clicks and method == "pseudo"):
        return 1
    return 5 if method == "mcmc" or n_clusters > 1 else 10


def check_options(
    prefs: Preferences,
    method: str,
    n_draws: int | None,
    n_clusters: int,
    samples_alpha: bool,
    options: dict[str, Any],
) -> Options:
    """Return all options, or say which is wrong."""
    known = known_options(prefs, method, n_clusters)
    strange = sorted(set(options) - set(known))
    full, clicks = is_all_known(prefs), isinstance(prefs, Clicks)
    if strange:
        kind = "clicks" if clicks else f"{'full' if full else 'partial'} rankings"
        clusters = f" with {n_clusters} clusters" if n_clusters > 1 else ""
        raise TypeError(
            f"method={method!r} on {kind}{clusters} has no option {strange[0]!r}; "
            f"it has {', '.join(sorted(known))}"
        )
    chosen = known | options
    check_distance(chosen["distance"])
    default = 4000 if method == "balanced" and full and n_clusters == 1 else 200
    draws = check_count(default if n_draws is None else n_draws, "n_draws")
    thin = check_count(chosen.get("thin", 1), "thin")
    warmup = chosen.get("warmup", 0)
    if warmup is None:
        warmup = _default_warmup(prefs, method, draws * thin, n_clusters)
    order = _check_name(chosen.get("order", "uniform"), "order", tuple(ORDERS))
    refresh = check_count(chosen.get("refresh", 1), "refresh")
    if refresh > draws * thin:
        if "refresh" in options:
            raise ValueError(
                f"refresh must be at most the {draws * thin} sweeps after the warmup, got {refresh}"
            )
        refresh = draws * thin
    return Options(
        n_clusters=n_clusters,
        n_draws=draws,
        n_chains=check_count(chosen["n_chains"], "n_chains"),
        warmup=check_count(warmup, "warmup", 0),
        thin=thin,
        refresh=refresh,
        share_prior=_check_above_0(chosen.get("share_prior", 1.0), "share_prior"),
        augmentation=_check_name(
            chosen.get("augmentation", "exact"), "augmentation", AUGMENTATIONS
        ),
        n_swaps=check_count(chosen.get("n_swaps", 1), "n_swaps"),
        keep_latent=rows_of_users(prefs, chosen.get("keep_latent", ())),
        pseudo=PseudoOptions(
            balanced=method == "balanced",
            weighted=bool(chosen.get("weighted", False)),
            sigma=check_number(chosen.get("sigma", 0.0), "sigma"),
            order=order if clicks and method == "pseudo" else None,
            update=_check_name(chosen.get("update", "sampled"), "update", UPDATES),
        ),
        chain=ChainOptions(
            move=_check_name(chosen.get("move", "swap"), "move", tuple(MOVES)),
            leap=min(check_count(chosen.get("leap", 1), "leap"), prefs.n_items - 1),
            n_moves=check_count(chosen.get("n_moves", 1), "n_moves"),
            start=_check_name(chosen.get("start", "map"), "start", STARTS),
            alpha_prior=_check_prior(chosen.get("alpha_prior", default_prior(prefs.n_items))),
            n_alpha_moves=5 if full else 1,
            samples_alpha=samples_alpha,
        ),
    )


def _default_warmup(prefs: Preferences, method: str, n_sweeps: int, n_clusters: int) -> int:
    if isinstance(prefs, Clicks) and method == "pseudo":
        return max(10, n_sweeps // 10)  # it starts close, and moves fast
    if n_clusters > 1:
        return max(50, n_sweeps // 5)  # the start is a chain already
    return max(100, n_sweeps // 2)


def _check_name(value: str, what: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def _check_prior(prior: Any) -> Prior:
    if isinstance(prior, str) and prior == "flat":
        return FLAT
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha_prior must be (shape, rate) of a gamma, or "flat", got {prior!r}'
        ) from None
    return _check_above_0(shape, "alpha_prior shape"), _check_above_0(rate, "alpha_prior rate")


def _check_above_0(value: Any, what: str) -> float:
    number = check_number(value, what)
    if number == 0:
        raise ValueError(f"{what} must be above 0, got {value!r}")
    return number
