"""Sampling: one chain for every law, where it begins, and how long it runs."""
