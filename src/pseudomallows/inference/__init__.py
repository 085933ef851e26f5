"""From preferences to a posterior."""
