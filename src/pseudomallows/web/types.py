"""What goes in and out of the service, as types; the description for others is made from them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from msgspec.json import Encoder

from ..data.times import given_times
from ..posterior.names import METHODS
from ..recommendations.explain import KINDS
from .errors import ServiceError
from .stores.store import UploadRow

MAX_LISTED = 1000  # items of an answer, rows of a list, users of a batch: some 100 KB
MAX_CLICKS = 10_000  # of one user in a request: what an answer costs grows with them
# letters; a user and an item, of 4 bytes a letter, 2,400, fit into an index of PostgreSQL (2,704)
MAX_NAME = 300
MAX_HEAD = 16_384  # bytes of the head of a request; browsers send less than half of it
MAX_ROWS = 100_000  # items that all users of a batch ask for: some 10 MB
encode = Encoder().encode  # JSON; made once, as it is asked for with each answer
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Names = Annotated[list[Name], Meta(max_length=MAX_CLICKS)]
Times = Annotated[list[float | str], Meta(max_length=MAX_CLICKS)]
Number = Annotated[int, Meta(ge=0)]
HowMany = Annotated[int, Meta(ge=1, le=MAX_LISTED)]
if TYPE_CHECKING:  # a type checker takes literals only
    MethodName = str
else:
    MethodName = Literal[METHODS]


class Wanted(Struct, forbid_unknown_fields=True, kw_only=True):
    """How many items are wanted, which not (`exclude`), and which to choose from (`only`; null:
    all)."""

    k: HowMany = 10  # as `pm.recommend`, and as the paper's case study
    exclude: Names = []
    only: Names | None = None


class RecommendRequest(Wanted, kw_only=True):
    """Clicks of someone, which items are wanted, whether the answer says why, and when each click
    was (`times`: seconds since 1970 or dates; null: the newest is last)."""

    clicks: Names
    reasons: bool = False
    times: Times | None = None


class BatchUser(Wanted, kw_only=True):
    """One user of a batch: with clicks, someone for whom these alone count (with times, or the
    newest last); without, a user of the model or of the store."""

    id: Name
    clicks: Names | None = None
    times: Times | None = None


class BatchRequest(Struct, forbid_unknown_fields=True):
    """Several users at once."""

    users: Annotated[list[BatchUser], Meta(min_length=1, max_length=MAX_LISTED)]


class ClicksRequest(Struct, forbid_unknown_fields=True):
    """New clicks of a user, and when each was (`times`: seconds since 1970 or dates; null: now)."""

    clicks: Annotated[list[Name], Meta(min_length=1, max_length=MAX_CLICKS)]
    times: Times | None = None


class RefitRequest(Struct, forbid_unknown_fields=True):
    """How to fit again; null: as before."""

    clusters: Annotated[int, Meta(ge=1, le=1000)] | Literal["auto"] | None = None
    method: MethodName | None = None


# Queries


class UserQuery(Wanted, kw_only=True):
    """Which items are wanted, and whether the answer says why."""

    reasons: bool = False


class ClusterQuery(Struct):
    """A cluster; the first is 0. Which there are is for the model to say."""

    cluster: Annotated[int, Meta(ge=0, le=10**6)] = 0


class ItemsQuery(Struct):
    """A text to search for, and how many items to list."""

    search: str = ""
    limit: HowMany = 20  # as many as the page suggests while somebody types


class UploadQuery(Struct):
    """Whether to refit with what comes."""

    refit: bool = True


class TableQuery(Struct):
    """How many items for each user, and whether names are left as they are (`raw`)."""

    k: HowMany = 10
    raw: bool = False


# Answers


class Reason(Struct):
    """What adds how much to an item's score (or, in a model without scores, to its probability):
    a clicked item, a cluster by its number, or what counts for everybody. The amounts of an item
    add up; `share` is a part of all that counts, below 0 if it speaks against the item."""

    kind: Literal[KINDS]  # type: ignore[valid-type]
    name: str
    amount: float
    share: float


class Recommendation(Struct, omit_defaults=True):
    """An item, and the probability that it is among the next k; with reasons, the weightiest
    first, if they were asked for."""

    item: str
    probability: float
    reasons: list[Reason] | None = None


class RecommendAnswer(Struct):
    """Best first; memberships are the probabilities of the clusters."""

    recommendations: list[Recommendation]
    memberships: list[float] | None


class BatchRow(Struct, omit_defaults=True):
    """The answer for one user of a batch, or what was wrong."""

    id: str
    recommendations: list[Recommendation] = []
    memberships: list[float] | None = None
    error: str | None = None


class BatchAnswer(Struct):
    """In the order of the users that were asked for."""

    answers: list[BatchRow]


class ClicksAnswer(Struct):
    """All clicks of a user, now."""

    user: str
    clicks: list[str]


class ConsensusItem(Struct):
    """An item of a consensus: its rank, the interval of it, and its mean."""

    item: str
    rank: int
    lowest: int
    highest: int
    mean: float


class ConsensusAnswer(Struct):
    """Best first. ``probabilities[row][bin]``; a bin starts at the rank ``edges[bin]``."""

    cluster: int
    items: list[ConsensusItem]
    probabilities: list[list[float]]
    edges: list[int]


class ClusterRow(Struct):
    """A cluster: its share, how many users are most likely of it, and its best items."""

    cluster: int
    share: float
    users: int
    alpha: float
    best: list[str]


class ClustersAnswer(Struct):
    """The clusters; none, where each user has an order of their own."""

    clusters: list[ClusterRow]


class ItemRow(Struct):
    """An item, and how many users have clicked it."""

    item: str
    users: int


class ItemsAnswer(Struct):
    """The most clicked items whose names hold the searched text."""

    items: list[ItemRow]


class DiagnosisRow(Struct):
    """One check of a fit: its figure and what is wanted, the answer (yes, with care, no), what it
    means and what to do."""

    check: str
    found: str
    wanted: str
    answer: str
    words: str
    advice: str


class CheckBin(Struct):
    """Recommendations of about the same probability: its mean, the share observed, and how many
    they are."""

    stated: float
    observed: float
    count: int


class ModelAnswer(Struct):
    """What is served."""

    version: str
    method: str
    model: int
    n_users: int
    n_items: int
    n_clusters: int
    n_clicks: int
    alpha: list[float]
    trusted: Literal["yes", "with care", "no"]
    why: str
    checks: list[DiagnosisRow]
    calibration: list[CheckBin]  # of the evaluation that the model keeps
    seed: int | None
    has_token: bool
    updates: int  # refits since the last fit anew, by which its chains went on


class CheckAnswer(Struct):
    """Do the stated probabilities hold, on what users of the model clicked since the fit?
    `low` to `high` is the 95 % interval of observed minus stated; null is what is not known yet."""

    model: int
    answer: Literal["yes", "no", "too few"]
    words: str
    stated: float | None = None
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    n_users: int = 0
    n_recommendations: int = 0
    bins: list[CheckBin] = []


class HealthAnswer(Struct):
    """All is well: answers can be given and clicks be kept."""

    status: Literal["ok"]


class RefitAnswer(Struct):
    """The number of a job."""

    job: str


class UploadAnswer(Struct):
    """What a file held, the job that learns from it (null without one), and what was left out."""

    job: str | None
    upload: int
    users: int
    items: int
    clicks: int
    warnings: list[str]


class UploadsAnswer(Struct):
    """The uploads, the newest first, at most 1,000."""

    uploads: list[UploadRow]


class RemovedAnswer(Struct):
    """How many stored clicks were removed, and what stays for now."""

    clicks: int
    note: str


class JobAnswer(Struct):
    """How far a job is, and how it learns: chains go on ("update"), or begin anew ("fit")."""

    job: str
    state: Literal["running", "done", "failed", "cancelled"]
    done: Number
    total: Number
    seconds: float
    error: str | None
    how: Literal["update", "fit"] | None  # null until the clicks are read


class ErrorAnswer(Struct):
    """What was wanted and what came."""

    error: str


def check_name(name: str, what: str) -> None:
    """Refuse a name that cannot be stored."""
    if not is_name(name):
        raise ServiceError(
            422, f"the name of {what} must have 1 to {MAX_NAME} letters, got {name[:40]!r}"
        )


def is_name(name: str) -> bool:
    """Can it be stored: is it short, without NUL, and can it be written as UTF-8?"""
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return 1 <= len(name) <= MAX_NAME and "\0" not in name


def read_times(
    times: Sequence[float | str] | None, clicks: Sequence[str]
) -> Sequence[float] | None:
    """When each click was, in seconds since 1970; None where no times were given."""
    if times is None:
        return None
    if len(times) != len(clicks):
        raise ServiceError(
            422, f"times must have one for each click ({len(clicks)}), got {len(times)}"
        )
    if not times:
        return []
    try:
        read = given_times(times)
    except ValueError as error:
        raise ServiceError(422, f"times: {error}") from None
    if read is None or any(time != time for time in read):
        raise ServiceError(422, "times must have one for each click, and some are empty")
    return [float(time) for time in read]
