"""One way to the probabilities of the next clicks for each kind of fit, and what they share."""
