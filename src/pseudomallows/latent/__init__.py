"""Users who are known in part: their likelihood, and draws of what is not known."""
