"""The methods of fitting: one file each, a frozen dataclass of its options with their defaults.

To add one: a file here, and a line in `METHODS`.
"""

from .balanced import Balanced
from .mcmc import Mcmc
from .method import Case, Method, Plan
from .pseudo import Pseudo

METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Pseudo, Balanced, Mcmc)}

__all__ = ["METHODS", "Balanced", "Case", "Mcmc", "Method", "Plan", "Pseudo"]
