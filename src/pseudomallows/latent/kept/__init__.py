"""Users whose full rankings are kept and moved: comparisons, votes, distances without a law."""
