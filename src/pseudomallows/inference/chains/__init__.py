"""Markov chains: clusters of users, how they move, and where they start."""
