"""What every method with draws has: options that say for which data they are, and a plan."""

import dataclasses
import math
from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..engines.executors import Executor
from ..engines.memory import as_size, available_memory
from ..engines.progress import Progress
from ..laws.law import Law
from ..laws.registry import make_law
from ..preferences import Preferences, rows_of_users
from ..rankings import check_count, check_name, check_number


@dataclass(frozen=True)
class Case:
    """What the defaults of options depend on: the kind of data and its size, and the clusters."""

    kind: str
    is_full: bool
    n_items: int
    n_clusters: int = 1
    is_contradictory: bool = False  # is there a user with whom no ranking agrees?

    @classmethod
    def of(cls, prefs: Preferences, n_clusters: int = 1) -> "Case":
        """The case of these data."""
        is_full, is_contradictory = bool(prefs.is_full), prefs.is_contradictory
        return cls(prefs.kind, is_full, prefs.n_items, n_clusters, is_contradictory)

    @property
    def has_clicks(self) -> bool:
        """Are the data clicks?"""
        return self.kind == "clicks"

    @property
    def has_pairs(self) -> bool:
        """May there be comparisons among them?"""
        return self.kind in ("pairs", "mixed")

    @property
    def is_partial(self) -> bool:
        """Are they rankings of which something is not known?"""
        return self.kind == "rankings" and not self.is_full

    @property
    def has_clusters(self) -> bool:
        """Is there more than one cluster?"""
        return self.n_clusters > 1

    def __str__(self) -> str:
        full = "full " if self.is_full else "partial " if self.is_partial else ""
        kind = "comparisons" if self.kind == "pairs" else self.kind
        kind = "users of several kinds" if self.kind == "mixed" else kind
        clusters = f" with {self.n_clusters} clusters" if self.has_clusters else ""
        return f"{full}{kind}{clusters}"


def option(
    default: Any, words: str, only: Callable[[Case], bool] | None = None, check: Any = None
) -> Any:
    """A field of a method: what it means, in which cases it is there, and what values it takes."""
    return field(default=default, metadata={"words": words, "only": only, "check": check})


def count(least: int = 1) -> Callable[[Any, str], int]:
    """A check for whole numbers."""
    return lambda value, name: check_count(value, name, least)


def above_0(value: Any, name: str) -> float:
    """A check for numbers above 0."""
    number = check_number(value, name)
    if number == 0:
        raise ValueError(f"{name} must be above 0, got {value!r}")
    return number


def flag(value: Any, name: str) -> bool:
    """A check for True and False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def one_of(*known: str) -> Callable[[Any, str], str]:
    """A check for names."""

    return lambda value, name: check_name(value, name, known)


def distance_name(value: Any, name: str) -> str:
    """A check for the names of distances."""
    return distances.get(value).name


def clicks_only(case: Case) -> bool:
    """Only for clicks."""
    return case.has_clicks


def pairs_only(case: Case) -> bool:
    """Only where there are comparisons."""
    return case.has_pairs


def partial_only(case: Case) -> bool:
    """Only where something is not known."""
    return not case.is_full


def clusters_only(case: Case) -> bool:
    """Only with clusters."""
    return case.has_clusters


def chains_only(case: Case) -> bool:
    """Only where draws are of a Markov chain: full rankings without clusters need none."""
    return not case.is_full or case.has_clusters


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a method, checked; each says what it means and in which cases it is there."""

    name: ClassVar[str]
    words: ClassVar[str]  # for the report

    @staticmethod
    def is_for(case: Case) -> bool:
        """Is the method for such data?"""
        return True

    def __post_init__(self) -> None:
        """Check every value, in one place."""
        for each in dataclasses.fields(self):
            value, check = getattr(self, each.name), each.metadata["check"]
            is_default = value is None and each.default is None  # the data will say
            if check is not None and not is_default:
                object.__setattr__(self, each.name, check(value, each.name))

    @classmethod
    def option_names(cls, case: Case) -> list[str]:
        """The options that there are in a case."""
        fields = dataclasses.fields(cls)
        return [f.name for f in fields if f.metadata["only"] is None or f.metadata["only"](case)]

    @classmethod
    def make(cls, case: Case, options: dict[str, Any]) -> Self:
        """The method with these options, or an error that says which is wrong."""
        if not cls.is_for(case):
            raise ValueError(f"method={cls.name!r} is not for {case}: use 'mcmc', which is exact")
        known = cls.option_names(case)
        strange = sorted(set(options) - set(known))
        if strange:
            raise TypeError(
                f"method={cls.name!r} on {case} has no option {strange[0]!r}; "
                f"it has {', '.join(sorted(known))}"
            )
        return cls(**options)


@dataclass(frozen=True, kw_only=True)
class Method(Options, ABC):
    """The options that all methods with draws share.

    A value of None is a default that depends on the data: see `resolved`.
    """

    is_exact: ClassVar[bool] = False
    samples_alpha: ClassVar[bool] = False
    is_checked: ClassVar[bool] = False  # are some draws compared with the exact likelihood?

    n_chains: int = option(1, "Number of chains; default 1.", check=count())
    warmup: int | None = option(
        None,
        "Sweeps thrown away at the start of a Markov chain; default half of n_draws * thin, at "
        "least 100 (with clusters a fifth, at least 50).",
        chains_only,
        count(0),
    )
    thin: int | None = option(
        None,
        "Sweeps for each draw that is kept; default 1 for full rankings, else 5, or 10 for "
        "method='balanced' with one cluster.",
        chains_only,
        count(),
    )
    share_prior: float = option(
        1.0, "Dirichlet prior of the shares of the clusters; 1 is uniform.", clusters_only, above_0
    )
    keep_latent: Any = option(
        (),
        "Names of users whose latent rankings are kept with the draws, or True for all of them: "
        "drawn from their exact distribution given each draw, where that is known.",
        partial_only,
    )
    distance: str = option(
        "footrule",
        'Distance: "footrule" (default), "spearman", "kendall", "cayley", "hamming" or "ulam".',
        check=distance_name,
    )

    def check_distance(self, case: Case) -> None:
        """Refuse a distance that the method cannot use for such data."""

    def resolved(self, case: Case, n_draws: int) -> Self:
        """The same with a value for every option, those of None by what the data are."""
        thin = self.default_thin(case) if self.thin is None else self.thin
        n_sweeps = n_draws * thin
        warmup = self.default_warmup(case, n_sweeps) if self.warmup is None else self.warmup
        chosen: dict[str, Any] = {"thin": thin, "warmup": warmup}
        return dataclasses.replace(self, **chosen, **self.other_defaults(case, n_sweeps))

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """The options of a method's own that depend on the data."""
        return {}

    def default_draws(self, case: Case) -> int:
        """Draws kept from each chain."""
        return 200

    def default_thin(self, case: Case) -> int:
        """Sweeps for each draw that is kept."""
        return 1 if case.is_full else 5

    def default_warmup(self, case: Case, n_sweeps: int) -> int:
        """Sweeps thrown away."""
        if not self.is_markov(case):
            return 0
        if case.has_clusters:
            return max(50, n_sweeps // 5)  # the start is a chain already
        return max(100, n_sweeps // 2)

    def is_markov(self, case: Case) -> bool:
        """Are the draws of a chain, or independent?"""
        return chains_only(case)

    def law(self, prefs: Preferences, executor: Executor | None) -> Law:
        """The law of the users, as this method needs it."""
        return make_law(prefs, executor, self.distance)

    def make_run(
        self,
        law: Law,
        prefs: Preferences,
        owners: NDArray[np.int64],
        plan: "Plan",
        rng: np.random.Generator,
        progress: Progress,
    ) -> Any:
        """What makes the draws."""
        raise NotImplementedError

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


MOST_WORK = 5 * 10**9  # sweeps x items^2 of a fit, at 20 to 40 ns: two or three minutes


class LastDraw(NamedTuple):
    """A draw of a chain: ``consensus[cluster, item]``, ``alpha[cluster]``, ``shares[cluster]``."""

    consensus: NDArray[np.int32]
    alpha: NDArray[np.float64]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A fit, planned: the method with all of its options, and what every method needs."""

    method: Method
    case: Case
    n_draws: int
    alpha: float | None  # None: sampled, or estimated for each cluster
    kept_rows: NDArray[np.int64]  # of the users whose latent rankings are kept
    goes_on: bool = False  # until the draws are good
    last_draws: Sequence[LastDraw] = ()  # of each chain that goes on; none: they begin anew

    @classmethod
    def make(
        cls,
        prefs: Preferences,
        method: type[Method],
        n_draws: int | None,
        n_clusters: int,
        options: dict[str, Any],
        alpha: float | None = None,
    ) -> "Plan":
        """The plan of a call of `fit`, or an error that says which option is wrong."""
        case = Case.of(prefs, n_clusters)
        chosen = method.make(case, options)
        chosen.check_distance(case)
        draws = check_count(chosen.default_draws(case) if n_draws is None else n_draws, "n_draws")
        keeps_all = chosen.keep_latent is True
        rows = rows_of_users(prefs, prefs.users if keeps_all else chosen.keep_latent)
        by_hand = n_draws is not None or {"warmup", "thin"} & set(options)
        goes_on = chosen.samples_alpha and not by_hand
        return cls(chosen.resolved(case, draws), case, draws, alpha, rows, goes_on)

    @property
    def warmup(self) -> int:
        """Sweeps thrown away at the start of each chain."""
        assert self.method.warmup is not None
        return self.method.warmup

    @property
    def thin(self) -> int:
        """Sweeps for each draw that is kept."""
        assert self.method.thin is not None
        return self.method.thin

    @property
    def n_sweeps(self) -> int:
        """Sweeps of each chain."""
        return self.warmup + self.n_draws * self.thin

    @property
    def is_markov(self) -> bool:
        """Are the draws of a chain, or independent?"""
        return self.method.is_markov(self.case)

    def settings(self) -> dict[str, Any]:
        """For the settings of a posterior."""
        mine = {"n_clusters": self.case.n_clusters, "n_draws": self.n_draws}
        mine |= self.method.settings(self.case)
        return mine | {"keep_latent": self.kept_rows.tolist(), "samples_alpha": self.alpha is None}

    def call(self) -> dict[str, Any]:
        """What tells this plan from another."""
        return {"method": self.method.name, "alpha": self.alpha, "options": self.settings()}

    def check_memory(self, n_users: int) -> None:
        """Refuse draws that cannot all be kept, before any is made."""
        available, n_chains = available_memory(), self.method.n_chains
        each, others = self._bytes_of_draw(), 8 * n_users * self.case.n_clusters  # a chain's
        needed = n_chains * (self.n_draws * each + others)
        if available is None or needed <= available:
            return
        most, kept = max(0, available // n_chains - others) // each, len(self.kept_rows)
        extra = f", with the latent rankings of {kept} users," if kept else ""
        advice = f"at most n_draws={most} fit" if most else "give fewer chains, or keep_latent"
        raise ValueError(
            f"n_chains={n_chains} of n_draws={self.n_draws}{extra} need {as_size(needed)} of "
            f"memory, and {as_size(available)} are available: {advice}; a larger thin keeps fewer "
            "draws of as long a chain"
        )

    def check_work(self, prefs: Preferences) -> None:
        """Refuse chains of so many items that they would not end, before they begin: a sweep over
        anything but clicks takes time items^2. Votes by Kendall's distance have a closed form."""
        is_quick = prefs.kind == "clicks" or (prefs.is_vote and self.method.distance == "kendall")
        n_items, n_sweeps = self.case.n_items, self.method.n_chains * self.n_sweeps
        if not self.is_markov or is_quick or n_items**2 * n_sweeps <= MOST_WORK:
            return
        most = math.isqrt(MOST_WORK // n_sweeps)
        raise ValueError(
            f"{self.case} of {n_items:,} items would take too long: {n_sweeps:,} sweeps of the "
            f"chains, each of which takes time items^2. At most {most:,} items work with so many "
            "sweeps: keep the items that matter, or lower n_draws and warmup"
        )

    def _bytes_of_draw(self) -> int:
        """A draw is there twice at the end, when the clusters are put in order; the ranks of a
        cluster are there once more as floats, when they are judged."""
        n_items = self.case.n_items
        clusters = self.case.n_clusters * (4 * n_items + 16)
        return 2 * (clusters + 24) + 4 * len(self.kept_rows) * n_items + 8 * n_items


def describe_options(methods: Iterable[type[Options]]) -> str:
    """A line for each option of some methods, for help texts; those of all methods come first."""
    shared = dataclasses.fields(Method)
    titled = [("every method with draws", shared)]
    for method in methods:
        mine = [f for f in dataclasses.fields(method) if f.metadata not in _metadata(shared)]
        titled.append((f'method="{method.name}"', tuple(mine)))
    lines = []
    for title, fields in titled:
        lines += [f"Options of {title}", *(f"  {f.name}: {f.metadata['words']}" for f in fields)]
    return "\n".join(lines)


def _metadata(fields: Iterable[Any]) -> list[Any]:
    return [each.metadata for each in fields]
