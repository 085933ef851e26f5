"""The methods of fitting: one file each, a frozen dataclass of its options with their defaults.

To add one: a file here, and a line in `METHODS`.
"""

from .balanced import Balanced
from .matched import Matched
from .mcmc import Mcmc
from .method import Case, Method, Options, Plan
from .personal import Personal
from .pseudo import Pseudo

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
