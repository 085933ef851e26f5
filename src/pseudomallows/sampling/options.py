"""The options of `fit`, one table: what each means, which methods and data have it, its values."""

import dataclasses
import difflib
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..data.preferences import Preferences, rows_of_users
from ..distances import price_of
from ..distances.tallies import MOVES
from ..engines.memory import as_size, available_memory
from ..laws.error_rates import THETA_PRIOR
from ..posterior.names import ERROR_MODELS, GAPS, ORDERS, STARTS, check_calibrate
from ..posterior.posterior import Posterior
from ..rankings import check_count, check_flag, check_name, check_number, check_sigma
from .priors import FLAT, AlphaPrior, default_prior

METHODS = {  # in words, for the report
    "pseudo": "Pseudo-Mallows, a fast approximation",
    "balanced": "balanced Pseudo-Mallows, with weights that correct its error",
    "mcmc": "the exact model, by a Markov chain",
    "matched": "an additive law of what is known, which is very nearly exact",
    "personal": "an order of each user's own",
}
CHAINS, PAPER = ("mcmc", "matched"), ("pseudo", "balanced")  # the first sample alpha, too
WITH_DRAWS = (*PAPER, *CHAINS)
LEAST_DRAWS, ROOM = 10, 2**29  # draws of a chain; bytes of all (512 MB), of a huge catalogue
# In a sweep, for each item: 30 us at 50 items. Of 800 draws by
# default 307 to 716 are then effective, by distance (docs/model/distances.md, Fits).
N_MOVES = 10
USUAL_MOVES = {"cayley": ("swap", 30), "ulam": ("insert", 3)}  # and numbers, by what they cost
# Times as many, as chains cross between modes every few sweeps: 4 chains of 100 draws then
# have the 2,000 of MODES_SIZE.
TEMPERED_DRAWS = 5
MOST_WORK = 5 * 10**9  # sweeps x items^2 of a fit, at 20 to 40 ns: two or three minutes


@dataclass(frozen=True)
class Case:
    """What options depend on: the method, the kind of data and its size, and the clusters."""

    method: str
    kind: str
    is_full: bool
    n_items: int
    n_clusters: int = 1
    is_contradictory: bool = False  # is there a user with whom no ranking agrees?

    @classmethod
    def of(cls, prefs: Preferences, method: str, n_clusters: int = 1) -> "Case":
        """The case of these data."""
        facts = prefs.kind, bool(prefs.is_full), prefs.n_items
        return cls(method, *facts, n_clusters, prefs.is_contradictory)

    @property
    def has_clicks(self) -> bool:
        """Are the data clicks?"""
        return self.kind == "clicks"

    @property
    def has_pairs(self) -> bool:
        """May there be comparisons among them?"""
        return self.kind in ("pairs", "mixed")

    @property
    def is_partial(self) -> bool:
        """Are they rankings of which something is not known?"""
        return self.kind == "rankings" and not self.is_full

    @property
    def has_clusters(self) -> bool:
        """Is there more than one cluster?"""
        return self.n_clusters > 1

    @property
    def is_markov(self) -> bool:
        """Are the draws of a chain? Those of the paper are independent for full rankings of one
        cluster."""
        return self.method in CHAINS or not self.is_full or self.has_clusters

    @property
    def has_weighted_draws(self) -> bool:
        """Are the draws independent, with weights?"""
        return self.method == "balanced" and not self.is_markov

    @property
    def is_for_method(self) -> bool:
        """Does the method work with such data?"""
        if self.method in PAPER:
            return not self.has_pairs
        return self.method != "matched" or self.has_clicks or self.is_partial

    def sums_out(self, distance: str) -> bool:
        """Is what is not known summed out in a chain, so that a sweep is worth a draw?"""
        if self.has_clicks:
            return distance in ("footrule", "kendall")
        return self.is_full or (self.is_partial and distance in ("footrule", "hamming"))

    def __str__(self) -> str:
        full = "full " if self.is_full else "partial " if self.is_partial else ""
        kind = "comparisons" if self.kind == "pairs" else self.kind
        kind = "users of several kinds" if self.kind == "mixed" else kind
        clusters = f" with {self.n_clusters} clusters" if self.has_clusters else ""
        return f"{full}{kind}{clusters}"


# Checks of values: they return the value, or say what is wrong with it


def count(least: int = 1) -> Callable[[Any, str], int]:
    """A check for whole numbers."""
    return lambda value, name: check_count(value, name, least)


def above_0(value: Any, name: str) -> float:
    """A check for numbers above 0."""
    number = check_number(value, name)
    if number == 0:
        raise ValueError(f"{name} must be above 0, got {value!r}")
    return number


def one_of(*known: str) -> Callable[[Any, str], str]:
    """A check for names."""
    return lambda value, name: check_name(value, name, known)


def check_prior(prior: Any, name: str) -> AlphaPrior:
    """A check for priors of alpha."""
    if isinstance(prior, str) and prior == "flat":
        return FLAT
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha_prior must be (shape, rate) of a gamma, or "flat", got {prior!r}'
        ) from None
    return AlphaPrior(above_0(shape, "alpha_prior shape"), above_0(rate, "alpha_prior rate"))


def check_beta(prior: Any, name: str) -> tuple[float, float]:
    """A check for the two numbers of a Beta distribution."""
    try:
        one, other = prior
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers above 0, got {prior!r}") from None
    return above_0(one, name), above_0(other, name)


def option(
    default: Any,
    words: str,
    methods: Sequence[str],
    only: Callable[[Case], bool] | None = None,
    check: Callable[[Any, str], Any] | None = None,
) -> Any:
    """A field: what it means, the methods and the cases that have it, and what values it takes.

    A default of None depends on the data.
    """
    about = {"words": words, "methods": tuple(methods), "only": only, "check": check}
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True)
class Options:
    """A fit with draws as `resolve` plans it: every option with its value. Options of other methods
    have their defaults."""

    case: Case
    n_draws: int
    alpha: float | None  # None: sampled, or estimated for each cluster
    kept_rows: NDArray[np.int64]  # of the users whose latent rankings are kept
    goes_on: bool = False  # until the draws are good
    goes_on_from: Posterior | None = None  # whose last draws chains begin at; None: they begin anew

    n_chains: int = option(
        4,
        'Number of chains; default 4, and 1 for "pseudo" and "balanced".',
        WITH_DRAWS,
        None,
        count(),
    )
    warmup: int | None = option(
        None,
        "Sweeps thrown away at the start of a Markov chain; default half of n_draws * thin, at "
        "least 100 (with clusters a fifth, at least 50; where latent rankings are summed out a "
        'quarter, at least 20; by "pseudo" on clicks a tenth, at least 10).',
        WITH_DRAWS,
        lambda case: case.is_markov,
        count(0),
    )
    thin: int | None = option(
        None,
        "Sweeps for each draw that is kept; default 1, and 5 where a chain keeps latent rankings; "
        '10 for one cluster of partial rankings by "pseudo", or of anything partial by "balanced".',
        WITH_DRAWS,
        lambda case: case.is_markov,
        count(),
    )
    share_prior: float = option(
        1.0,
        "Dirichlet prior of the shares of the clusters; 1 is uniform.",
        WITH_DRAWS,
        lambda case: case.has_clusters,
        above_0,
    )
    alpha_prior: Any = option(
        None,
        "Gamma prior of alpha, (shape, rate). The default, (2, 2 / n_items + 1 / 20), has a mean "
        'of n_items for few items and of 40 for many; "flat" is (1, 0.001), nearly flat. By '
        '"pseudo" for clusters, by "balanced" for these and for full rankings.',
        WITH_DRAWS,
        lambda case: case.method in CHAINS or case.has_clusters or case.has_weighted_draws,
        check_prior,
    )
    keep_latent: Any = option(
        (),
        "Names of users whose latent rankings are kept with the draws, or True for all of them: "
        "drawn from their exact distribution given each draw, where that is known (there, answers "
        "need none that are kept), or those of the chain; for one cluster by "
        '"pseudo" and "balanced", as they were before the consensus moved.',
        WITH_DRAWS,
        lambda case: not case.is_full and not (case.method in PAPER and case.has_clusters),
    )
    distance: str = option(
        "footrule",
        'Distance: "footrule" (default), "spearman", "kendall", "cayley", "hamming" or "ulam".',
        WITH_DRAWS,
        None,
        lambda value, _: distances.get(value).name,
    )

    move: str | None = option(
        None,
        'Proposals: "swap" (default) or "leap_and_shift"; for Ulam\'s distance "insert" (default): '
        "an item is taken out, and its new place drawn by its exact probabilities.",
        CHAINS,
        None,
        one_of(*MOVES),
    )
    leap: int | None = option(
        None, "How far a leap goes, in places; default n_items / 5.", CHAINS, None, count()
    )
    n_moves: int | None = option(
        None,
        "Proposals for each cluster in a sweep; default 10 n_items (30 n_items by Cayley's "
        "distance, 3 n_items by Ulam's), and by the footrule where something is not known as many "
        "as the warmup finds best between two corrections, at most 200 n_items.",
        CHAINS,
        None,
        count(),
    )
    temperatures: int | None = option(
        None,
        "Replicas of each chain on flatter and flatter posteriors, with which it exchanges states "
        "(parallel tempering), for one cluster without latent rankings; default: none, unless "
        "chains end in different modes.",
        CHAINS,
        lambda case: not case.has_clusters,
        count(2),
    )
    start: str = option(
        "dispersed",
        'Where the chains begin: "map" at the best consensus that is found, "random" each at a '
        'random one, "dispersed" (default) every second chain at the furthest good place that '
        "moves from random ones lead to, so that R-hat can see a second mode.",
        CHAINS,
        lambda case: not case.has_clusters,
        one_of(*STARTS),
    )

    errors: str | None = option(
        None,
        'Wrong comparisons: "none" (default where no user contradicts themselves), "bernoulli" '
        '(default otherwise: each is wrong with probability theta), or "logistic" (those of items '
        "far apart in the user's ranking more rarely).",
        ["mcmc"],
        lambda case: case.has_pairs,
        one_of(*ERROR_MODELS),
    )
    theta_prior: Any = option(
        THETA_PRIOR,
        'With errors="bernoulli": (one, other) of the Beta prior of theta, which is cut off at '
        "1/2; default (1, 1), uniform.",
        ["mcmc"],
        lambda case: case.has_pairs,
        check_beta,
    )
    gaps: str = option(
        "auto",
        'Votes by Kendall\'s distance: "equal" gaps between neighbours of the consensus are its '
        'exact law; with "free" ones each has its own size (Bradley and Terry\'s law); "auto" '
        "(default) takes free ones if the votes contradict equal ones.",
        ["mcmc"],
        lambda case: case.has_pairs,
        one_of(*GAPS),
    )

    sigma: float | str | None = option(
        None,
        'Noise on the V-ranking; "auto" (default for full rankings with one cluster) is the one '
        "whose rank probabilities are nearest to the balanced matrix. Else the default is 0, but "
        "n_items / 5 for clusters of clicks, where 0 ranks the best items of a cluster badly.",
        ["pseudo"],
        None,
        check_sigma,
    )
    order: str | None = option(
        "uniform",
        'How a user\'s items are visited (section 3.3 of the paper): "uniform" (default), "v" or '
        '"top_bottom".',
        ["pseudo"],
        lambda case: case.has_clicks,
        one_of(*ORDERS),
    )

    weighted: bool = option(
        True,
        "Correct the approximation by importance weights. On full rankings the draws carry them; "
        "on partial ones each sweep chooses by them.",
        ["balanced"],
        None,
        check_flag,
    )
    seconds: float | None = option(
        None,
        "Time limit for full rankings with one cluster: independent draws, 25 at least, each time "
        "twice as many in all, up to n_draws; then exact chains that begin at these; each step if "
        "it needs no more time than is left. The posterior has the draws of the smallest stated "
        "error, `settings['in_time']`.",
        ["balanced"],
        lambda case: case.has_weighted_draws,
        check_number,
    )

    ridge: float | None = option(
        None,
        "One regression with this penalty, in units of the mean number of clicks of an item; "
        "default: a blend of several scores.",
        ["personal"],
        None,
        check_number,
    )
    blend: bool = option(
        True,
        "Blend regressions, factors and popularity, with weights learnt on inner splits, where one "
        "click of each user is hidden. False, or for fewer than 10 items, or fewer than 50 users "
        "with two clicks: one regression, its penalty the best of a few. With more than 4,000 "
        "items each item is regressed on its 150 nearest ones.",
        ["personal"],
        None,
        check_flag,
    )
    held_out: Any = option(
        None,
        "Later clicks of some of the users, 50 or more: a file, a data frame, or another form of "
        "`Preferences.from_clicks`. "
        "The probabilities are corrected by what is observed of them, for all windows up to twice "
        "the largest number of them that 50 users have. "
        "Users and items that the fit does not have are left out, with a warning that counts them.",
        ["personal"],
    )
    calibrate: bool | str | float = option(
        True,
        "Without `held_out`: which clicks are hidden inside, to correct the probabilities by "
        'which of them were hits, before all is learnt again from all clicks. "cut" (default with '
        "times): the last fifth of the clicks, for what anybody clicks next; another share, such "
        'as 0.4: the same, for a longer or a shorter time to come. "last": some clicks of '
        'each user, the last ones, for the next thing in this visit. "random" (default without '
        "times): any of them, so that a probability is that of a click like those that are there. "
        "False: no correction. With times, it is also learnt whether old clicks weigh less, and "
        "for how long something is popular.",
        ["personal"],
        None,
        check_calibrate,
    )
    with_consensus: bool = option(
        False,
        "Learn the consensus of all users too, by the matched law, so that the fit also answers "
        "what a posterior does: consensus, intervals, summary; method='auto' does so.",
        ["personal"],
        None,
        check_flag,
    )

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.case.method

    @property
    def n_sweeps(self) -> int:
        """Sweeps of each chain."""
        return int(self.warmup or 0) + self.n_draws * int(self.thin or 1)

    def settings(self) -> dict[str, Any]:
        """The options as plain values, for the settings of a posterior."""
        values = {each.name: getattr(self, each.name) for each in fields_of(self.method)}
        for name in {"alpha_prior", "theta_prior"} & set(values):
            values[name] = list(values[name])
        values |= {"n_clusters": self.case.n_clusters, "n_draws": self.n_draws}
        return values | {
            "keep_latent": self.kept_rows.tolist(),
            "samples_alpha": self.alpha is None,
        }


OPTIONS = tuple(each for each in dataclasses.fields(Options) if "words" in each.metadata)


# What other packages of the field call it: BayesMallows, PyMC, emcee, scikit-learn, implicit.
OTHER_NAMES = {
    "nmc": "n_draws",
    "draws": "n_draws",
    "n_samples": "n_draws",
    "iterations": "n_draws",
    "burnin": "warmup",
    "burn": "warmup",
    "tune": "warmup",
    "thinning": "thin",
    "chains": "n_chains",
    "metric": "distance",
    "rho_init": "start",
    "alpha_init": "alpha",
    "alpha_prior_rate": "alpha_prior",
    "n_groups": "n_clusters",
    "n_components": "n_clusters",
    "seed": "rng",
    "random_state": "rng",
    "n_jobs": "executor",
    "num_threads": "executor",
}
ARGUMENTS = ("method", "alpha", "n_draws", "n_clusters", "rng", "progress", "distance", "executor")


def fields_of(method: str) -> list[Any]:
    """The options of a method."""
    return [each for each in OPTIONS if method in each.metadata["methods"]]


def option_names(case: Case) -> list[str]:
    """The options that there are in a case."""
    fields = fields_of(case.method)
    return [f.name for f in fields if f.metadata["only"] is None or f.metadata["only"](case)]


def check_options(case: Case, given: dict[str, Any]) -> dict[str, Any]:
    """The value of every option of a method, or an error that says which is wrong."""
    if not case.is_for_method:
        raise ValueError(f"method={case.method!r} is not for {case}: use 'mcmc', which is exact")
    known = option_names(case)
    strange = sorted(set(given) - set(known))
    if strange:
        usual = OTHER_NAMES.get(strange[0])
        near = [usual] if usual else difflib.get_close_matches(strange[0], [*known, *ARGUMENTS], 1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise TypeError(
            f"method={case.method!r} on {case} has no option {strange[0]!r}{meant}; "
            f"it has {', '.join(sorted(known))}"
        )
    values = {}
    for each in fields_of(case.method):
        value, check = given.get(each.name, each.default), each.metadata["check"]
        is_default = value is None and each.default is None  # the data will say
        values[each.name] = value if is_default or check is None else check(value, each.name)
    if case.method in PAPER and "n_chains" not in given:
        values["n_chains"] = 1
    if case.method in WITH_DRAWS:
        _check_distance(case, values)
    if case.is_markov and values.get("sigma") == "auto":
        raise ValueError(
            f'sigma must be a number for {case}, "auto" is for full rankings with one cluster: '
            "leave it out, or give a number"
        )
    return values


def _check_distance(case: Case, values: dict[str, Any]) -> None:
    """Refuse a distance that the method cannot use for such data."""
    distance = values["distance"]
    if case.method in PAPER:
        price_of(distances.get(distance))  # draws item by item need one that adds up over items
    if case.method == "pseudo" and case.has_clicks and distance != "footrule":
        raise ValueError(
            "method='pseudo' on clicks works with the footrule only, got "
            f"distance={distance!r}: use method='mcmc'"
        )
    if case.method == "matched" and distance != "footrule":
        raise ValueError(
            f"method='matched' works with the footrule only, got distance={distance!r}: "
            "use method='mcmc'"
        )
    if case.method in CHAINS and values["move"] == "insert" and distance != "ulam":
        raise ValueError(
            f"move='insert' is for distance='ulam' only, got distance={distance!r}: use "
            "'swap' or 'leap_and_shift'"
        )
    given = [name for name in ("move", "leap") if values.get(name) is not None]
    if case.method == "mcmc" and case.has_clicks and distance == "kendall" and given:
        raise ValueError(
            f"{given[0]}={values[given[0]]!r} does not go with clicks and distance='kendall', "
            f"which have moves of their own: leave {given[0]} out"
        )


def resolve(
    prefs: Preferences,
    method: str,
    n_draws: int | None,
    n_clusters: int,
    given: dict[str, Any],
    alpha: float | None = None,
) -> Options:
    """The options of a fit with draws, checked, or an error that says which is wrong."""
    case = Case.of(prefs, method, n_clusters)
    values = check_options(case, given)
    usual = default_draws(case, values)
    kept = values["keep_latent"]
    by_hand = n_draws is not None or {"warmup", "thin"} & set(given)
    plan: dict[str, Any] = {
        "case": case,
        "n_draws": check_count(usual if n_draws is None else n_draws, "n_draws"),
        "alpha": alpha,
        "kept_rows": rows_of_users(prefs, prefs.users if kept is True else kept),
        "goes_on": method in CHAINS and not by_hand,
    }
    options = Options(**plan, **with_defaults(case, plan["n_draws"], values))
    _check_memory(options, prefs.n_users)
    return options


def default_draws(case: Case, values: dict[str, Any]) -> int:
    """Draws kept from each chain.

    They are nearly independent where proposals are as many as the law finds best; of a huge
    catalogue only as many as have room. Independent weighted ones are cheap.
    """
    factor = 1 if values.get("temperatures") is None else TEMPERED_DRAWS
    if case.method in CHAINS and case.sums_out(values["distance"]) and not case.is_full:
        of_one = 4 * case.n_items * case.n_clusters * values["n_chains"]
        return factor * min(100, max(LEAST_DRAWS, ROOM // of_one))
    return 4000 if case.has_weighted_draws else 200 * factor


def with_defaults(case: Case, n_draws: int, values: dict[str, Any]) -> dict[str, Any]:
    """The same options with a value for each whose default depends on the data."""
    distance, is_chain = values["distance"], case.method in CHAINS
    is_summed = is_chain and case.sums_out(distance)
    is_matched = is_summed and not case.is_full  # as many proposals as the law finds best
    usual: dict[str, Any] = {}

    if is_chain:
        usual["thin"] = 1 if is_summed else 5
    elif case.is_full or (case.method == "pseudo" and case.has_clicks):
        usual["thin"] = 1  # draws by Algorithm 5 move fast
    else:
        usual["thin"] = 5 if case.has_clusters else 10

    n_sweeps = n_draws * (values["thin"] or usual["thin"])
    if not case.is_markov:
        usual["warmup"] = 0
    elif case.method == "pseudo" and case.has_clicks:
        usual["warmup"] = max(10, n_sweeps // 10)  # Algorithm 5 starts close
    elif is_matched:
        usual["warmup"] = max(20, n_sweeps // 4)  # the additive law is a good start
    elif case.has_clusters:
        usual["warmup"] = max(50, n_sweeps // 5)  # the start is a chain already
    else:
        usual["warmup"] = max(100, n_sweeps // 2)

    if is_chain:
        usual["move"], number = USUAL_MOVES.get(distance, ("swap", N_MOVES))
        number = number if values["move"] in (None, usual["move"]) else N_MOVES
        usual["n_moves"] = None if is_matched else number * case.n_items
        usual["leap"] = max(1, case.n_items // 5)
    usual["alpha_prior"] = default_prior(case.n_items)
    if case.method == "mcmc":
        usual["errors"] = "bernoulli" if case.is_contradictory else "none"
    if case.method == "pseudo":  # few users of clicks, sharp costs: one order scrambles the top
        of_chain = case.n_items / 5 if case.has_clicks and case.has_clusters else 0.0
        usual["sigma"] = of_chain if case.is_markov else "auto"

    resolved: dict[str, Any] = {
        k: usual.get(k) if value is None else value for k, value in values.items()
    }
    if is_chain:
        resolved["leap"] = min(resolved["leap"], case.n_items - 1)
    if case.method == "pseudo" and not case.has_clicks:
        resolved["order"] = None
    return resolved


def _check_memory(options: Options, n_users: int) -> None:
    """Refuse draws that cannot all be kept, before any is made.

    A draw is there twice at the end, when the clusters are put in order; the ranks of a cluster are
    there once more as floats, when they are diagnosed.
    """
    available, n_chains = available_memory(), options.n_chains
    n_items, n_clusters, kept = (
        options.case.n_items,
        options.case.n_clusters,
        len(options.kept_rows),
    )
    each = 2 * (n_clusters * (4 * n_items + 16) + 24) + 4 * kept * n_items + 8 * n_items
    others = 8 * n_users * n_clusters  # a chain's
    needed = n_chains * (options.n_draws * each + others)
    if available is None or needed <= available:
        return
    most = max(0, available // n_chains - others) // each
    extra = f", with the latent rankings of {kept} users," if kept else ""
    advice = f"at most n_draws={most} fit" if most else "give fewer chains, or keep_latent"
    raise ValueError(
        f"n_chains={n_chains} of n_draws={options.n_draws}{extra} need {as_size(needed)} of "
        f"memory, and {as_size(available)} are available: {advice}; a larger thin keeps fewer "
        "draws of as long a chain"
    )


def check_work(options: Options, is_vote: bool) -> None:
    """Refuse chains of so many items that they would not end, before they begin: a sweep over
    anything but clicks takes time items^2. Votes by Kendall's distance have a closed form."""
    case, n_sweeps = options.case, options.n_chains * options.n_sweeps
    is_quick = case.has_clicks or (is_vote and options.distance == "kendall")
    if not case.is_markov or is_quick or case.n_items**2 * n_sweeps <= MOST_WORK:
        return
    most = math.isqrt(MOST_WORK // n_sweeps)
    raise ValueError(
        f"{case} of {case.n_items:,} items would take too long: {n_sweeps:,} sweeps of the "
        f"chains, each of which takes time items^2. At most {most:,} items work with so many "
        "sweeps: keep the items that matter, or lower n_draws and warmup"
    )


def with_options(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with all options in place of its last argument, so that help
    shows them and Tab completes them."""
    own = list(inspect.signature(function).parameters.values())[:-1]
    names = {each.name for each in own}
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
        for each in OPTIONS
        if each.name not in names
    ]
    return inspect.Signature([*own, *options])


def describe_options() -> str:
    """A line for each option, for help texts, under the methods that have it."""
    lines = []
    for methods, fields in itertools.groupby(OPTIONS, lambda each: each.metadata["methods"]):
        named = "method=" + " or ".join(f'"{name}"' for name in methods)
        lines.append(f"Options of {'every method with draws' if methods == WITH_DRAWS else named}")
        lines += [f"  {each.name}: {each.metadata['words']}" for each in fields]
    return "\n".join(lines)
