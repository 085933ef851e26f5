"""From a fit to the items that a user will want next."""

from .next_pairs import NextPairs, next_pairs
from .recommend import Recommendations, memberships, recommend, user_intervals
from .to_file import recommend_to

__all__ = [
    "NextPairs",
    "Recommendations",
    "memberships",
    "next_pairs",
    "recommend",
    "recommend_to",
    "user_intervals",
]
