"""Method "auto": the best for the data and for what is asked of it, and why, in words."""

from typing import Any, NamedTuple

from ..laws.own_laws import OWN_LAWS
from ..personal.blend import MIN_SCORED, scorable
from ..preferences import Clicks, Preferences
from .fit_balanced import Balanced
from .fit_mcmc import Mcmc
from .fit_personal import Personal
from .fit_pseudo import Pseudo
from .options import Case, Options

OTHERS: tuple[type[Options], ...] = (Mcmc, Pseudo, Balanced)  # the first that has the options

FREE_GAPS = (
    "mcmc, by the Bradley-Terry model, in which each item has its own strength (gaps='free')"
)


class Asked(NamedTuple):
    """What a call of `fit` asks for, beside the data."""

    n_draws: int | None
    n_clusters: int | str
    distance: str
    options: dict[str, Any]
    needs_chain: bool  # are there workers, or a checkpoint?


class Choice(NamedTuple):
    """A method, its options, and why it was chosen."""

    method: str
    options: dict[str, Any]
    why: str


def choose_method(prefs: Preferences, asked: Asked) -> Choice:
    """The best method for these data that has the options that are asked for.

    >>> prefs = Preferences.from_rankings([[1, 2, 3], [2, 1, 3]])
    >>> choose_method(prefs, Asked(None, 1, "footrule", {}, False)).why
    'mcmc, the exact posterior: the best there is for rankings'
    >>> choose_method(prefs, Asked(None, 1, "footrule", {"sigma": 1.0}, False)).why
    "pseudo, the paper's method: it is the one with the option 'sigma'"
    """
    if _is_for_users(prefs, asked):
        words = "an order of each user's own and the consensus of all: the best there is for clicks"
        return Choice("personal", {"with_consensus": True} | asked.options, f"personal, {words}")
    method = next((each for each in OTHERS if _has_options(each, prefs, asked)), Mcmc)
    if method is Mcmc:
        words = f"mcmc, the exact posterior: the best there is for {_what(prefs, asked)}"
        is_plain = asked == Asked(None, 1, asked.distance, {}, False)
        if isinstance(prefs, Clicks) and is_plain and asked.distance in OWN_LAWS:
            words += f", as fewer than {MIN_SCORED} users have 2 clicks or more and an item left: "
            words += "too few to learn an order of each"
        return Choice(method.name, asked.options, words)
    own = sorted(set(asked.options) - _names(Mcmc, prefs, asked))
    words = "the paper's method" if method is Pseudo else "independent draws with weights"
    why = f"{method.name}, {words}: it is the one with the option {own[0]!r}"
    return Choice(method.name, asked.options, why)


def _is_for_users(prefs: Preferences, asked: Asked) -> bool:
    """Is it clicks, enough of them, and nothing is asked for that only a fit with draws has?"""
    wants_draws = asked.n_draws is not None or asked.n_clusters != 1 or asked.needs_chain
    if not isinstance(prefs, Clicks) or wants_draws or asked.distance not in OWN_LAWS:
        return False
    own = set(Personal.option_names(Case.of(prefs))) - {"distance"}
    has_enough = len(scorable(prefs)) >= MIN_SCORED or bool(asked.options)
    return has_enough and set(asked.options) <= own


def _names(method: type[Options], prefs: Preferences, asked: Asked) -> set[str]:
    """The options of a method for these data; "auto" may find one cluster or more."""
    numbers = (1, 2) if asked.n_clusters == "auto" else (asked.n_clusters,)
    cases = [Case.of(prefs, number if isinstance(number, int) else 1) for number in numbers]
    return {name for case in cases for name in method.option_names(case)}


def _has_options(method: type[Options], prefs: Preferences, asked: Asked) -> bool:
    is_for = method.is_for(Case.of(prefs))
    return is_for and set(asked.options) <= _names(method, prefs, asked)


def _what(prefs: Preferences, asked: Asked) -> str:
    kind = str(Case.of(prefs)).removeprefix("full ").removeprefix("partial ")
    has_one = asked.n_clusters == 1
    return kind if has_one else f"clusters of {'users' if prefs.kind == 'mixed' else kind}"
