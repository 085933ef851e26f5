"""The handlers, with their addresses: each reads, asks the service, writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from ..show.report import report as write_report
from .endpoints import endpoint
from .errors import ServiceError
from .models import summary
from .types import (
    MAX_ROWS,
    BatchAnswer,
    BatchRequest,
    CheckAnswer,
    ClicksAnswer,
    ClicksRequest,
    ClusterQuery,
    ClustersAnswer,
    ConsensusAnswer,
    HealthAnswer,
    ItemsAnswer,
    ItemsQuery,
    JobAnswer,
    ModelAnswer,
    RecommendAnswer,
    RecommendRequest,
    RefitAnswer,
    RefitRequest,
    RemovedAnswer,
    TableQuery,
    UploadAnswer,
    UploadQuery,
    UploadsAnswer,
    UserQuery,
    check_name,
    encode,
    read_times,
)

if TYPE_CHECKING:
    from .service import Service

REPORT_POLICY = (  # the report has its own styles inside, and no scripts
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
STAYS = "a model that has learned from these clicks knows them until the next refit"
MISSING = {"X-Stored-Clicks": "missing"}
T = TypeVar("T", bound=msgspec.Struct)

# Recommendations


@endpoint("POST", "/recommend", asks=RecommendRequest, answers=RecommendAnswer, writes=False)
async def recommend(service: Service, request: Request) -> Response:
    """The best items for someone's clicks."""
    return _json(await service.recommend(await _read(request, RecommendRequest)))


@endpoint("POST", "/recommend/batch", asks=BatchRequest, answers=BatchAnswer, writes=False)
async def recommend_batch(service: Service, request: Request) -> Response:
    """The best items for several users."""
    asked = await _read(request, BatchRequest)
    if len(asked.users) > 1:
        request.app.charge(request.scope, len(asked.users) - 1)
    n_rows = sum(user.k for user in asked.users)
    if n_rows > MAX_ROWS:
        raise ServiceError(422, f"k must add up to at most {MAX_ROWS:,}, got {n_rows:,}: ask twice")
    answer, is_whole = await service.recommend_batch(asked.users)
    return _json(answer, headers=None if is_whole else MISSING)


@endpoint(
    "GET",
    "/users/{user}/recommendations",
    query=UserQuery,
    answers=RecommendAnswer,
    errors=(404,),
    writes=False,
)
async def recommend_user(service: Service, request: Request) -> Response:
    """The best items for a user."""
    asked, user = _read_query(request, UserQuery), request.path_params["user"]
    check_name(user, "a user")
    answer, is_whole = await service.recommend_user(user, asked)
    return _json(answer, headers=None if is_whole else MISSING)


@endpoint(
    "POST",
    "/users/{user}/clicks",
    asks=ClicksRequest,
    answers=ClicksAnswer,
    errors=(507,),
    writes=True,
)
async def add_clicks(service: Service, request: Request) -> Response:
    """Store new clicks of a user."""
    asked, user = await _read(request, ClicksRequest), request.path_params["user"]
    times = read_times(asked.times, asked.clicks)
    clicks = await service.add_clicks(user, asked.clicks, times)
    return _json(encode(ClicksAnswer(user, clicks)))


# The model


@endpoint(
    "GET", "/consensus", query=ClusterQuery, answers=ConsensusAnswer, errors=(404,), writes=False
)
async def consensus(service: Service, request: Request) -> Response:
    """The consensus of a cluster; the first is 0."""
    cluster = _read_query(request, ClusterQuery).cluster
    make = partial(summary.consensus, cluster=cluster)
    return _json(await service.once(("consensus", cluster), make))


@endpoint("GET", "/clusters", answers=ClustersAnswer, writes=False)
async def clusters(service: Service, request: Request) -> Response:
    """The clusters, each with its share and its best items."""
    return _json(await service.once("clusters", summary.clusters))


@endpoint("GET", "/items", query=ItemsQuery, answers=ItemsAnswer, writes=False)
async def items(service: Service, request: Request) -> Response:
    """Items by name, the most clicked first."""
    asked = _read_query(request, ItemsQuery)
    return _json(encode(summary.items(service.model, asked.search, asked.limit)))


@endpoint("GET", "/model", answers=ModelAnswer, writes=False)
async def model(service: Service, request: Request) -> Response:
    """What is served, and whether to trust it."""
    return _json(encode(await service.about()))


@endpoint("GET", "/check", answers=CheckAnswer, errors=(404,), writes=False)
async def check(service: Service, request: Request) -> Response:
    """Whether the stated probabilities hold, on the clicks since the fit."""
    return _json(encode(await service.check()))


# How the service is


@endpoint("GET", "/healthz", answers=HealthAnswer, writes=False, is_vital=True)
async def healthz(service: Service, request: Request) -> Response:
    """Whether it runs and can keep clicks."""
    problem = service.store.health.problem
    if problem is not None:
        raise ServiceError(503, f"clicks cannot be kept: {problem}")
    return _json(encode(HealthAnswer("ok")))


@endpoint("GET", "/metrics", answers="text/plain", writes=False)
async def metrics(service: Service, request: Request) -> Response:
    """Counts and times, for Prometheus."""
    return Response(await service.metrics_text(), media_type="text/plain")


# Learning


@endpoint(
    "POST",
    "/refit",
    asks=RefitRequest,
    answers=RefitAnswer,
    status=202,
    errors=(409,),
    writes=True,
)
async def refit(service: Service, request: Request) -> Response:
    """Learn from all clicks, old and new."""
    asked = await _read(request, RefitRequest, default=b"{}")
    started = await service.refit(asked.clusters, asked.method)
    return _json(encode(RefitAnswer(started.name)), 202)


@endpoint(
    "POST",
    "/upload",
    query=UploadQuery,
    asks="text/csv",
    answers=UploadAnswer,
    status=202,
    errors=(409, 507),
    writes=True,
)
async def upload(service: Service, request: Request) -> Response:
    """Store the clicks of a file, and learn from them."""
    with_refit = _read_query(request, UploadQuery).refit
    if with_refit:
        service.refits.check_free()
    with service.uploads.place() as path:
        await _save(request, path)
        answer = await service.uploads.take(path, service.model.codes.keys())
    if with_refit:
        answer.job = (await service.refit(None, None)).name
    return _json(encode(answer), 202)


@endpoint("GET", "/uploads", answers=UploadsAnswer, writes=False)
async def uploads(service: Service, request: Request) -> Response:
    """The uploads, newest first."""
    rows = await service.store.ask(lambda store: store.uploads())
    return _json(encode(UploadsAnswer(rows)))


@endpoint("DELETE", "/uploads/{upload}", answers=RemovedAnswer, errors=(404, 507), writes=True)
async def remove_upload(service: Service, request: Request) -> Response:
    """Remove the clicks that an upload brought."""
    n_removed = await service.remove_upload(request.path_params["upload"])
    return _json(encode(RemovedAnswer(n_removed, STAYS)))


@endpoint("DELETE", "/users/{user}", answers=RemovedAnswer, errors=(404, 422, 507), writes=True)
async def remove_user(service: Service, request: Request) -> Response:
    """Remove the stored clicks of a user."""
    n_removed = await service.remove_user(request.path_params["user"])
    return _json(encode(RemovedAnswer(n_removed, STAYS)))


@endpoint("GET", "/jobs/{job}", answers=JobAnswer, errors=(404,), writes=False)
async def job(service: Service, request: Request) -> Response:
    """How far a refit is."""
    return _json(encode(service.refits.get(request.path_params["job"]).answer()))


@endpoint("DELETE", "/jobs/{job}", answers=JobAnswer, errors=(404,), writes=True)
async def cancel(service: Service, request: Request) -> Response:
    """Cancel a refit."""
    cancelled = await service.refits.cancel(request.path_params["job"])
    return _json(encode(cancelled.answer()))


# Downloads


@endpoint("GET", "/recommendations.csv", query=TableQuery, answers="text/csv", writes=False)
async def table(service: Service, request: Request) -> Response:
    """The best items of all users of the model."""
    asked = _read_query(request, TableQuery)
    parts = service.model.recommendations_csv(asked.k, safe_csv=not asked.raw)
    name = {"Content-Disposition": 'attachment; filename="recommendations.csv"'}
    return StreamingResponse(_beside(service, parts), media_type="text/csv", headers=name)


async def _beside(service: Service, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Parts of an answer, each made beside the requests."""
    while (part := await service.slow(lambda: next(parts, None))) is not None:
        yield part


@endpoint("GET", "/report.html", answers="text/html", writes=False)
async def report(service: Service, request: Request) -> Response:
    """A page about the model."""
    page = await service.once("report", partial(summary.page, write=write_report))
    headers = {
        "Content-Disposition": 'attachment; filename="report.html"',
        "Content-Security-Policy": REPORT_POLICY,
    }
    return Response(page, media_type="text/html", headers=headers)


# Reading and writing


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer of JSON."""
    return Response(body, status, headers, media_type="application/json")


async def _save(request: Request, path: Path) -> None:
    """Write the body to a file as it comes."""
    try:
        with path.open("wb") as stream:
            async for part in request.stream():
                stream.write(part)
    except ClientDisconnect:
        raise ServiceError(400, "the client disconnected before it had sent everything") from None
    except OSError as error:
        words = f"the service cannot keep the file while it reads it: {error.strerror}"
        raise ServiceError(507, words) from None


def _read_query(request: Request, kind: type[T]) -> T:
    """The query as a type, or an error that says what is wrong; of what comes again the last
    counts, but for lists of names."""
    query = request.query_params
    given: dict[str, Any] = dict(query.items())
    given |= {name: query.getlist(name) for name in ("exclude", "only") if name in given}
    try:
        known = {name: given[name] for name in kind.__struct_fields__ if name in given}
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"the query {str(query)[:80]!r}: {error}") from None


async def _read(request: Request, kind: type[T], default: bytes = b"") -> T:
    """The body as a type, or an error that says what is wrong."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise ServiceError(400, "the client disconnected before it had sent everything") from None
    try:
        return msgspec.json.decode(body or default, type=kind)
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"{kind.__name__}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceError(400, f"the body must be JSON: {error}") from None
