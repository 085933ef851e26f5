"""Distributions of rankings."""
