"""Names that a fit may have: of its method, and of options that are chosen by name.

They stand here, and not beside the methods, since a saved fit is read without these; a test
compares.
"""

from typing import Any

from ..rankings import check_flag, check_name, check_number

CALIBRATIONS = ("last", "cut", "random")  # which clicks a personal fit hides inside
QUESTIONS = {  # what the probabilities of a fit are about, by which clicks it hid inside
    "cut": "what anybody clicks next, from a date on",
    "last": "the next clicks of this visit",
    "random": "a click that is missing at random from clicks like these, in no order",
    None: "what the model alone expects next, not compared with any click",
}
METHODS = ("pseudo", "balanced", "mcmc", "matched", "personal")
GAPS = ("auto", "equal", "free")  # between the neighbours of a consensus from votes
STARTS = ("dispersed", "map", "random")  # of the chains of one consensus
ORDERS = ("uniform", "v", "top_bottom")  # in which the paper visits a user's items
ERROR_MODELS = ("none", "bernoulli", "logistic")


def check_calibrate(value: Any, name: str) -> bool | str | float:
    """A way to correct probabilities, or what is wrong with it."""
    if isinstance(value, str):
        return check_name(value, name, CALIBRATIONS)
    if not isinstance(value, float):
        return check_flag(value, name)
    if not 0 < check_number(value, name) < 1:
        raise ValueError(f"{name} must be a share of the clicks between 0 and 1, got {value}")
    return value
