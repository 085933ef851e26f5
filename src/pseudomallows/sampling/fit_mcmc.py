"""Method "mcmc": the exact posterior, by Markov chains."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ..engines.executors import Executor
from ..laws.error_rates import MODELS, THETA_PRIOR
from ..laws.law import Law
from ..laws.registry import make_law
from ..posteriors.diagnose import describe_contradictions
from ..posteriors.names import ERROR_MODELS, GAPS
from ..preferences import Preferences
from .options import Case, above_0, one_of, option, pairs_only
from .sampler import Sampler


def check_beta(prior: Any, name: str) -> tuple[float, float]:
    """A check for the two numbers of a Beta distribution."""
    try:
        one, other = prior
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers above 0, got {prior!r}") from None
    return above_0(one, name), above_0(other, name)


def contradictions_of(prefs: Preferences) -> tuple[int, int, Any, list[Any]] | None:
    """How many users contradict themselves, of how many; the first, and how; None if none does."""
    pairs = prefs.comparisons()
    if pairs is None or not prefs.is_contradictory:
        return None
    return int((~pairs.is_consistent).sum()), prefs.n_users, *pairs.contradictions(1)[0]


def check_consistent(prefs: Preferences) -> None:
    """Refuse users who contradict themselves, and name one."""
    contradictions = contradictions_of(prefs)
    if contradictions is not None:
        raise ValueError(
            f"{describe_contradictions(*contradictions)}: use errors='bernoulli' or 'logistic', "
            "which allow for errors, or leave errors out"
        )


@dataclass(frozen=True, kw_only=True)
class Mcmc(Sampler):
    """Metropolis steps on the consensus and on alpha; those on an additive law are accepted by the
    exact one."""

    name: ClassVar[str] = "mcmc"
    words: ClassVar[str] = "the exact model, by a Markov chain"
    is_exact: ClassVar[bool] = True

    errors: str | None = option(
        None,
        'Wrong comparisons: "none" (default where no user contradicts themselves), "bernoulli" '
        '(default otherwise: each is wrong with probability theta), or "logistic" (those of items '
        "far apart in the user's ranking more rarely).",
        pairs_only,
        one_of(*ERROR_MODELS),
    )
    theta_prior: Any = option(
        THETA_PRIOR,
        'With errors="bernoulli": (one, other) of the Beta prior of theta, which is cut off at '
        "1/2; default (1, 1), uniform.",
        pairs_only,
        check_beta,
    )
    gaps: str = option(
        "auto",
        'Votes by Kendall\'s distance: "equal" gaps between neighbours of the consensus are its '
        'exact law; with "free" ones each has its own size (Bradley and Terry\'s law); "auto" '
        "(default) takes free ones if the votes contradict equal ones.",
        pairs_only,
        one_of(*GAPS),
    )

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """Proposals and prior by the number of items; errors, if users contradict themselves."""
        errors = self.errors or ("bernoulli" if case.is_contradictory else "none")
        return super().other_defaults(case, n_sweeps) | {"errors": errors}

    def check_distance(self, case: Case) -> None:
        """Clicks by Kendall's distance have moves of their own."""
        is_kendall = case.has_clicks and self.distance == "kendall"
        if is_kendall and (self.move or self.leap) is not None:
            name = "leap" if self.move is None else "move"
            raise ValueError(
                f"{name}={getattr(self, name)!r} does not go with clicks and distance='kendall', "
                f"which have moves of their own: leave {name} out"
            )

    def law(self, prefs: Preferences, executor: Executor | None) -> Law:
        """The law of the users."""
        is_votes = prefs.is_vote and self.distance == "kendall"
        if self.gaps != "auto" and not is_votes:
            raise ValueError(
                f"gaps={self.gaps!r} is for votes, one comparison a person, with "
                "distance='kendall': leave gaps out"
            )
        if is_votes and self.errors not in (None, "none"):
            raise ValueError(
                f"errors={self.errors!r} looks the same as disagreement where each person "
                "compares one pair: leave errors out"
            )
        if self.errors == "none":
            check_consistent(prefs)
        errors = MODELS[self.errors or "none"](prefs.n_items, self.theta_prior)
        return make_law(prefs, executor, self.distance, errors, self.gaps)

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return super().settings(case) | {"theta_prior": list(self.theta_prior)}
