"""Users whose latent full rankings are drawn: comparisons, votes, distances without a sum."""
