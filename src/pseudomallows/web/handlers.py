"""The handlers, with their addresses: each is given what was asked, asks the service, answers.

A handler answers with a struct, or with JSON that is made already, or with a response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from ..show.report import report as write_report
from . import types
from .endpoints import Answer, endpoint, json_response
from .errors import ServiceError
from .models import summary

if TYPE_CHECKING:
    from .service import Service

REPORT_POLICY = (  # the report has its own styles inside, and no scripts
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
MANY_ITEMS = 20_000  # names, searched in a millisecond; a million hold up others for 0.05 s
STAYS = "a model that has learned from these clicks knows them until the next refit"

# Recommendations


@endpoint(
    "POST", "/recommend", asks=types.RecommendRequest, answers=types.RecommendAnswer, writes=False
)
async def recommend(service: Service, request: Request, asked: types.RecommendRequest) -> Answer:
    """The best items for someone's clicks."""
    return await service.recommend(asked)


@endpoint(
    "POST", "/recommend/batch", asks=types.BatchRequest, answers=types.BatchAnswer, writes=False
)
async def recommend_batch(service: Service, request: Request, asked: types.BatchRequest) -> Answer:
    """The best items for several users."""
    if len(asked.users) > 1:
        request.app.charge(request.scope, len(asked.users) - 1)
    n_rows = sum(user.k for user in asked.users)
    if n_rows > types.MAX_ROWS:
        words = f"k must add up to at most {types.MAX_ROWS:,}, got {n_rows:,}: ask twice"
        raise ServiceError(422, words)
    return _told(*await service.recommend_batch(asked.users))


@endpoint(
    "GET",
    "/users/{user}/recommendations",
    query=types.UserQuery,
    answers=types.RecommendAnswer,
    errors=(404,),
    writes=False,
)
async def recommend_user(
    service: Service, request: Request, asked: types.UserQuery, user: str
) -> Answer:
    """The best items for a user."""
    types.check_name(user, "a user")
    return _told(*await service.recommend_user(user, asked))


def _told(answer: bytes, is_whole: bool) -> Response:
    """An answer that says if the store could not be asked."""
    return json_response(answer, headers=None if is_whole else {"X-Stored-Clicks": "missing"})


@endpoint(
    "POST",
    "/users/{user}/clicks",
    asks=types.ClicksRequest,
    answers=types.ClicksAnswer,
    errors=(507,),
    writes=True,
)
async def add_clicks(
    service: Service, request: Request, asked: types.ClicksRequest, user: str
) -> Answer:
    """Store new clicks of a user."""
    times = types.read_times(asked.times, asked.clicks)
    return types.ClicksAnswer(user, await service.add_clicks(user, asked.clicks, times))


# The model


@endpoint(
    "GET",
    "/consensus",
    query=types.ClusterQuery,
    answers=types.ConsensusAnswer,
    errors=(404,),
    writes=False,
)
async def consensus(service: Service, request: Request, asked: types.ClusterQuery) -> Answer:
    """The consensus of a cluster; the first is 0."""
    make = partial(summary.consensus, cluster=asked.cluster)
    return await service.once(("consensus", asked.cluster), make)


@endpoint("GET", "/clusters", answers=types.ClustersAnswer, writes=False)
async def clusters(service: Service, request: Request) -> Answer:
    """The clusters, each with its share and its best items."""
    return await service.once("clusters", summary.clusters)


@endpoint("GET", "/items", query=types.ItemsQuery, answers=types.ItemsAnswer, writes=False)
async def items(service: Service, request: Request, asked: types.ItemsQuery) -> Answer:
    """Items by name, the most clicked first."""
    find = partial(summary.items, service.model, asked.search, asked.limit)
    is_large = len(service.model.item_names) > MANY_ITEMS
    return await service.slow(find) if is_large else find()


@endpoint("GET", "/model", answers=types.ModelAnswer, writes=False)
async def model(service: Service, request: Request) -> Answer:
    """What is served, and whether to trust it."""
    return service.about()


@endpoint("GET", "/check", answers=types.CheckAnswer, errors=(404,), writes=False)
async def check(service: Service, request: Request) -> Answer:
    """Whether the stated probabilities hold, on the clicks since the fit."""
    return await service.check()


# How the service is


@endpoint("GET", "/healthz", answers=types.HealthAnswer, writes=False, is_vital=True)
async def healthz(service: Service, request: Request) -> Answer:
    """Whether it runs and can keep clicks."""
    problem = service.store.health.problem
    if problem is not None:
        raise ServiceError(503, f"clicks cannot be kept: {problem}")
    return types.HealthAnswer("ok")


@endpoint("GET", "/metrics", answers="text/plain", writes=False)
async def metrics(service: Service, request: Request) -> Answer:
    """Counts and times, for Prometheus."""
    return Response(await service.metrics_text(), media_type="text/plain")


# Learning


@endpoint(
    "POST",
    "/refit",
    asks=types.RefitRequest,
    answers=types.RefitAnswer,
    status=202,
    errors=(409,),
    writes=True,
)
async def refit(service: Service, request: Request, asked: types.RefitRequest) -> Answer:
    """Learn from all clicks, old and new."""
    return types.RefitAnswer((await service.refit(asked.clusters, asked.method)).name)


@endpoint(
    "POST",
    "/upload",
    query=types.UploadQuery,
    asks="text/csv",
    answers=types.UploadAnswer,
    status=202,
    errors=(409, 507),
    writes=True,
)
async def upload(service: Service, request: Request, asked: types.UploadQuery) -> Answer:
    """Store the clicks of a file, and learn from them."""
    if asked.refit:
        service.refits.check_free()
    with service.uploads.place() as path:
        await _save(request, path)
        answer = await service.uploads.take(path, service.model.codes.keys())
    if asked.refit:
        answer.job = (await service.refit(None, None)).name
    return answer


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


@endpoint("GET", "/uploads", answers=types.UploadsAnswer, writes=False)
async def uploads(service: Service, request: Request) -> Answer:
    """The uploads, newest first."""
    return types.UploadsAnswer(await service.store.ask(lambda store: store.uploads()))


@endpoint(
    "DELETE", "/uploads/{upload}", answers=types.RemovedAnswer, errors=(404, 507), writes=True
)
async def remove_upload(service: Service, request: Request, upload: str) -> Answer:
    """Remove the clicks that an upload brought."""
    return types.RemovedAnswer(await service.remove_upload(upload), STAYS)


@endpoint(
    "DELETE", "/users/{user}", answers=types.RemovedAnswer, errors=(404, 422, 507), writes=True
)
async def remove_user(service: Service, request: Request, user: str) -> Answer:
    """Remove the stored clicks of a user."""
    return types.RemovedAnswer(await service.remove_user(user), STAYS)


@endpoint("GET", "/jobs/{job}", answers=types.JobAnswer, errors=(404,), writes=False)
async def job(service: Service, request: Request, job: str) -> Answer:
    """How far a refit is."""
    return service.refits.get(job).answer()


@endpoint("DELETE", "/jobs/{job}", answers=types.JobAnswer, errors=(404,), writes=True)
async def cancel(service: Service, request: Request, job: str) -> Answer:
    """Cancel a refit."""
    return (await service.refits.cancel(job)).answer()


# Downloads


@endpoint("GET", "/recommendations.csv", query=types.TableQuery, answers="text/csv", writes=False)
async def table(service: Service, request: Request, asked: types.TableQuery) -> Answer:
    """The best items of all users of the model."""
    parts = service.model.recommendations_csv(asked.k, safe_csv=not asked.raw)
    name = {"Content-Disposition": 'attachment; filename="recommendations.csv"'}
    return StreamingResponse(_beside(service, parts), media_type="text/csv", headers=name)


async def _beside(service: Service, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Parts of an answer, each made beside the requests."""
    while (part := await service.slow(lambda: next(parts, None))) is not None:
        yield part


@endpoint("GET", "/report.html", answers="text/html", writes=False)
async def report(service: Service, request: Request) -> Answer:
    """A page about the model."""
    page = await service.once("report", partial(summary.page, write=write_report))
    headers = {
        "Content-Disposition": 'attachment; filename="report.html"',
        "Content-Security-Policy": REPORT_POLICY,
    }
    return Response(page, media_type="text/html", headers=headers)
