"""From a fit to the items that a user will want next."""

from .explain import Explanation, explain
from .next_pairs import NextPairs, next_pairs
from .recommend import Recommendations, memberships, recommend, user_intervals
from .similar import Similar, similar_items, similar_users
from .to_file import recommend_to

__all__ = [
    "Explanation",
    "NextPairs",
    "Recommendations",
    "Similar",
    "explain",
    "memberships",
    "next_pairs",
    "recommend",
    "recommend_to",
    "similar_items",
    "similar_users",
    "user_intervals",
]
