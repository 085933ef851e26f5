"""Compiled loops over arrays. They import NumPy, Numba and each other only, and check nothing."""
