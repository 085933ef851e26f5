"""Method "matched": clicks by the matched law alone, which never visits the users again."""

from dataclasses import dataclass
from typing import ClassVar

from .method import Case, clicks_only
from .sampler import Sampler


@dataclass(frozen=True, kw_only=True)
class Matched(Sampler):
    """A chain on the matched law of clicks, without the exact correction of "mcmc". It says how far
    the two are apart."""

    name: ClassVar[str] = "matched"
    words: ClassVar[str] = "the matched law of clicks, which is very nearly exact"
    is_checked: ClassVar[bool] = True

    @staticmethod
    def is_for(case: Case) -> bool:
        """Clicks only."""
        return clicks_only(case)

    def check_distance(self, case: Case) -> None:
        """The matched law is one of the footrule; others need none, or have none."""
        if self.distance != "footrule":
            raise ValueError(
                f"method='matched' works with the footrule only, got distance={self.distance!r}: "
                "use method='mcmc'"
            )

    def is_matched(self, case: Case) -> bool:
        """Always."""
        return True
