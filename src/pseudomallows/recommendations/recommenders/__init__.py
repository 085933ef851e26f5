"""One way to the chances of the next clicks for each kind of fit, and what they share."""
