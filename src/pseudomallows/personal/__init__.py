"""What "personal" learns: scores of items for users, and corrections of probabilities."""

from .fit_scores import fit_scores

__all__ = ["fit_scores"]
