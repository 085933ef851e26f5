"""evaluate_again: how well a fit that is there recommends, by a fit of its options to less."""

from typing import Any

from ..inference.reproduce import fit_options
from ..posteriors.personal import Fit, PersonalFit
from .evaluate import evaluate
from .result import Evaluation


def evaluate_again(posterior: Fit, hide: int, k: int | None, **more: Any) -> Evaluation:
    """Hide clicks of a fit, and fit the rest with the options of that fit."""
    assert posterior.clicks is not None
    given = fit_options(posterior)
    unknown = [name for name in ("scores", "with_clusters") if name in given]
    if unknown:
        raise ValueError(
            f"this model was fitted with {unknown[0]}=..., which cannot be made again without the "
            "hidden clicks: use pm.evaluate"
        )
    for name in ("held_out", "keep_latent"):  # the first is learnt from what is hidden
        given.pop(name, None)
    if isinstance(posterior, PersonalFit):
        given["ridge"] = posterior.settings["options"]["ridge"]  # None: a blend, learnt again
    else:
        given["n_clusters"] = posterior.n_clusters
    method = posterior.settings["method"]
    return evaluate(posterior.clicks, hide, k, method, **more, **given)
