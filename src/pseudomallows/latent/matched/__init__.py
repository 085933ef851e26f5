"""Clicks without latent rankings: the matched law, additive over items; the exact one beside."""
