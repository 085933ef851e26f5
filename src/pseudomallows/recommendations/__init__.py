"""From a fit to the items that a user will want next."""

from .recommend import Recommendations, memberships, recommend, user_intervals
from .to_file import recommend_to

__all__ = ["Recommendations", "memberships", "recommend", "recommend_to", "user_intervals"]
