"""Scores of items from the items a user clicked: products, weights, the nearest and the best."""
