"""Where the service keeps clicks."""
