"""Compiled loops for the footrule."""
