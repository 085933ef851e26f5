"""The methods of fitting: one file each, a frozen dataclass of its options with their defaults.

To add one: a file here, and a line in `METHODS`.
"""

from .fit_balanced import Balanced
from .fit_matched import Matched
from .fit_mcmc import Mcmc
from .fit_personal import Personal
from .fit_pseudo import Pseudo
from .options import Case, Method, Options, Plan

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Pseudo, Balanced, Mcmc, Matched)}
ALL_METHODS: dict[str, type[Options]] = {**METHODS, Personal.name: Personal}

__all__ = [
    "ALL_METHODS",
    "METHODS",
    "Balanced",
    "Case",
    "Matched",
    "Mcmc",
    "Method",
    "Options",
    "Personal",
    "Plan",
    "Pseudo",
]
