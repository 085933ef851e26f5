"""From a fit to the items that a user will want next."""
