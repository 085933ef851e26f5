"""Kendall's distance: whole rankings, clicks, the next clicks, and wins of pairs."""
