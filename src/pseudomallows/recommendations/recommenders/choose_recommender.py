"""The way to recommend that suits a posterior: by its method and its distance."""

from weakref import WeakKeyDictionary

from ...personal.personal_fit import Fit, PersonalFit
from .exact_recommender import ExactRecommender
from .kendall_recommender import KendallRecommender
from .personal_recommender import PersonalRecommender
from .recommender import Recommender

WITH_SUMS = ("footrule", "kendall")  # over the rankings that agree with clicks
_made: WeakKeyDictionary[Fit, Recommender] = WeakKeyDictionary()


def recommender_of(posterior: Fit) -> Recommender:
    """What recommendations need of a posterior, made once and kept as long as it."""
    made = _made.get(posterior)
    return _made.setdefault(posterior, _make(posterior)) if made is None else made


def _make(posterior: Fit) -> Recommender:
    if isinstance(posterior, PersonalFit):
        return PersonalRecommender(posterior)
    distance = posterior.settings.get("distance", "footrule")
    if distance not in WITH_SUMS:
        raise ValueError(
            f"for clicks by distance={distance!r} no sum over rankings is known, so `recommend` "
            "answers users of the fit alone, from latent rankings (keep_latent=True); for new "
            "users, files and the service fit again with distance='footrule' or 'kendall'"
        )
    is_kendall = distance == "kendall"
    return KendallRecommender(posterior) if is_kendall else ExactRecommender(posterior)
