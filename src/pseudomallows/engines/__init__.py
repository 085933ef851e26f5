"""Where the work runs: threads here, or workers elsewhere."""
