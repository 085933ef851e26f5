"""Names that a fit may have: of its method, and of options that are chosen by name.

They stand here, and not beside the methods, since a saved fit is read without these; a test
compares.
"""

CALIBRATIONS = ("last", "cut", "random")  # which clicks a personal fit hides inside
METHODS = ("pseudo", "balanced", "mcmc", "matched", "personal")
GAPS = ("auto", "equal", "free")  # between the neighbours of a consensus from votes
STARTS = ("dispersed", "map", "random")  # of the chains of one consensus
ORDERS = ("uniform", "v", "top_bottom")  # in which the paper visits a user's items
ERROR_MODELS = ("none", "bernoulli", "logistic")
