"""The app: each handler reads, asks the service, writes."""

import hashlib
import mimetypes
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from .errors import ServiceError
from .guard import Guard, admit
from .intake import check_name
from .model import encode
from .openapi import Endpoint, as_page, describe
from .service import Limits, Service
from .types import (
    MAX_K,
    MAX_LISTED,
    ClicksAnswer,
    ClicksRequest,
    ClustersAnswer,
    ConsensusAnswer,
    HealthAnswer,
    ItemsAnswer,
    JobAnswer,
    ModelAnswer,
    RecommendAnswer,
    RecommendRequest,
    RefitAnswer,
    RefitRequest,
    RemovedAnswer,
    UploadAnswer,
    UploadRow,
    UploadsAnswer,
)

PAGE = Path(__file__).parent / "page"
PLAIN = (
    "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>pseudomallows</title>"
    "<h1>pseudomallows</h1><p>The service runs. <a href='/docs'>What it answers</a>.</p></html>"
)
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)
STAYS = "a model that has learned from these clicks knows them until the next refit"
K = {"type": "integer", "minimum": 1, "maximum": MAX_K, "default": 10}
T = TypeVar("T")


def make_app(
    model: str | os.PathLike[str],
    store: str,
    token: str | None = None,
    limits: Limits | None = None,
    refit_every: float | None = None,
    hosts: frozenset[str] | None = None,
    names: frozenset[str] = frozenset(),
) -> Guard:
    """An ASGI app that serves a saved model.

    Parameters
    ----------
    model : path
        A model that was fitted to clicks and saved; newer versions beside it, in MODEL.d, come
        first.
    store : str
        Where new clicks go: a file of SQLite, or ``postgresql://...``.
    token : str, optional
        Asked of everyone who writes.
    limits : Limits, optional
        Of sizes, times and rates.
    refit_every : float, optional
        Seconds between two refits, if there are new clicks; default never.
    hosts : set of str, optional
        Names of this machine that a request may use; default any.
    names : set of str, optional
        More such names, whose pages may ask as well.
    """
    service = Service(model, store, token, limits, refit_every)
    return guard_of(service, hosts, names)


def guard_of(
    service: Service,
    hosts: frozenset[str] | None = None,
    names: frozenset[str] = frozenset(),
) -> Guard:
    """The app of a service."""
    routes = [_route(endpoint, service) for endpoint in all_endpoints(service)]

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    router = Router(routes, redirect_slashes=False, lifespan=lifespan)
    return Guard(router, service, hosts, names)


def all_endpoints(service: Service) -> list[Endpoint]:
    """Every address there is: those of the description, the description itself, and the page."""
    described = Handlers(service).endpoints()
    description, files = describe(described), _page_files()
    text, page = msgspec.json.encode(description), as_page(description)

    async def openapi(request: Request) -> Response:
        return Response(text, media_type="application/json")

    async def docs(request: Request) -> Response:
        return Response(page, media_type="text/html")

    return [
        *described,
        Endpoint("GET", "/openapi.json", openapi, "The description"),
        Endpoint("GET", "/docs", docs, "The description, as a page"),
        Endpoint("GET", "/", _sender(files, "index.html"), "The page"),
        Endpoint("GET", "/static/{name}", _sender(files), "The files of the page"),
    ]


def _route(endpoint: Endpoint, service: Service) -> Route:
    async def handle(request: Request) -> Response:
        request.scope["template"] = f"{endpoint.method} {endpoint.path}"
        return await endpoint.handler(admit(request, endpoint, service))

    return Route(endpoint.path.replace("}", ":path}"), handle, methods=[endpoint.method])


class Handlers:
    """One method for each address."""

    def __init__(self, service: Service):
        self.service = service

    def endpoints(self) -> list[Endpoint]:
        """All addresses."""
        search = {"search": {"type": "string"}, "limit": K | {"maximum": MAX_LISTED, "default": 20}}
        cluster = {"cluster": {"type": "integer", "minimum": 0, "default": 0}}
        k, refit = {"k": K}, {"refit": {"type": "boolean", "default": True}}
        return [
            Endpoint(
                "POST",
                "/recommend",
                self.recommend,
                "The best items for someone's clicks",
                RecommendAnswer,
                asks=RecommendRequest,
                changes_nothing=True,
            ),
            Endpoint(
                "GET",
                "/users/{user}/recommendations",
                self.recommend_user,
                "The best items for a user",
                RecommendAnswer,
                query=k,
                errors=(404,),
            ),
            Endpoint(
                "POST",
                "/users/{user}/clicks",
                self.add_clicks,
                "Keep new clicks of a user",
                ClicksAnswer,
                asks=ClicksRequest,
                errors=(507,),
            ),
            Endpoint(
                "GET",
                "/consensus",
                self.consensus,
                "The consensus of a cluster",
                ConsensusAnswer,
                query=cluster,
                errors=(404,),
            ),
            Endpoint("GET", "/clusters", self.clusters, "The clusters", ClustersAnswer),
            Endpoint("GET", "/items", self.items, "Items by name", ItemsAnswer, query=search),
            Endpoint("GET", "/model", self.model, "What is served", ModelAnswer),
            Endpoint("GET", "/healthz", self.healthz, "Does it run", HealthAnswer, is_vital=True),
            Endpoint("GET", "/metrics", self.metrics, "Counts and times", "text/plain"),
            Endpoint(
                "POST",
                "/refit",
                self.refit,
                "Learn from all clicks, old and new",
                RefitAnswer,
                asks=RefitRequest,
                status=202,
                errors=(409,),
            ),
            Endpoint(
                "POST",
                "/upload",
                self.upload,
                "Keep the clicks of a file, and learn from them",
                UploadAnswer,
                asks="text/csv",
                query=refit,
                status=202,
                errors=(409, 507),
            ),
            Endpoint("GET", "/uploads", self.uploads, "The uploads, newest first", UploadsAnswer),
            Endpoint(
                "DELETE",
                "/uploads/{upload}",
                self.remove_upload,
                "Remove the clicks that an upload brought",
                RemovedAnswer,
                errors=(404, 507),
            ),
            Endpoint(
                "DELETE",
                "/users/{user}",
                self.remove_user,
                "Remove the stored clicks of a user",
                RemovedAnswer,
                errors=(404, 422, 507),
            ),
            Endpoint("GET", "/jobs/{job}", self.job, "A refit", JobAnswer, errors=(404,)),
            Endpoint(
                "DELETE",
                "/jobs/{job}",
                self.cancel,
                "Cancel a refit",
                JobAnswer,
                errors=(404,),
            ),
            Endpoint(
                "GET",
                "/recommendations.csv",
                self.table,
                "The best items of all users of the model",
                "text/csv",
                query=k | {"raw": {"type": "boolean", "default": False}},
            ),
            Endpoint("GET", "/report.html", self.report, "A page about the model", "text/html"),
        ]

    async def recommend(self, request: Request) -> Response:
        asked = await _read(request, RecommendRequest)
        return _json(await self.service.recommend(asked.clicks, asked.k))

    async def recommend_user(self, request: Request) -> Response:
        k, user = _whole(request, "k", 10, 1, MAX_K), request.path_params["user"]
        check_name(user, "a user")
        answer, is_whole = await self.service.recommend_user(user, k)
        return _json(answer, headers=None if is_whole else {"X-Stored-Clicks": "missing"})

    async def add_clicks(self, request: Request) -> Response:
        asked, user = await _read(request, ClicksRequest), request.path_params["user"]
        clicks = await self.service.add_clicks(user, asked.clicks)
        return _json(encode(ClicksAnswer(user, clicks)))

    async def consensus(self, request: Request) -> Response:
        cluster, served = _whole(request, "cluster", 0, 0, 10**6), self.service.served
        return _json(await self.service.slow(lambda: served.consensus(cluster)))

    async def clusters(self, request: Request) -> Response:
        return _json(await self.service.slow(self.service.served.clusters))

    async def items(self, request: Request) -> Response:
        search = request.query_params.get("search", "")
        limit = _whole(request, "limit", 20, 1, MAX_LISTED)
        return _json(encode(self.service.served.items(search, limit)))

    async def model(self, request: Request) -> Response:
        return _json(encode(await self.service.about()))

    async def healthz(self, request: Request) -> Response:
        problem = self.service.keeper.health.problem
        if problem is not None:
            raise ServiceError(503, f"clicks cannot be kept: {problem}")
        return _json(encode(HealthAnswer("ok")))

    async def metrics(self, request: Request) -> Response:
        return Response(await self.service.metrics_text(), media_type="text/plain")

    async def refit(self, request: Request) -> Response:
        asked = await _read(request, RefitRequest, default=b"{}")
        job = await self.service.refit(asked.clusters, asked.method)
        return _json(encode(RefitAnswer(job.name)), 202)

    async def upload(self, request: Request) -> Response:
        with_refit = _yes_or_no(request, "refit", True)
        if with_refit:
            self.service.jobs.check_free()
        with self.service.uploads.place(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "upload.csv"
            await _save(request, path)
            taken = await self.service.upload(path)
        job = await self.service.refit(None, None) if with_refit else None
        return _json(encode(UploadAnswer(job.name if job else None, *taken)), 202)

    async def uploads(self, request: Request) -> Response:
        found = await self.service.keeper.ask(lambda store: store.uploads())
        return _json(encode(UploadsAnswer([UploadRow(*row) for row in found])))

    async def remove_upload(self, request: Request) -> Response:
        n_removed = await self.service.remove_upload(request.path_params["upload"])
        return _json(encode(RemovedAnswer(n_removed, STAYS)))

    async def remove_user(self, request: Request) -> Response:
        n_removed = await self.service.remove_user(request.path_params["user"])
        return _json(encode(RemovedAnswer(n_removed, STAYS)))

    async def job(self, request: Request) -> Response:
        return _json(encode(self.service.jobs.get(request.path_params["job"]).answer()))

    async def cancel(self, request: Request) -> Response:
        job = await self.service.jobs.cancel(request.path_params["job"])
        return _json(encode(job.answer()))

    async def table(self, request: Request) -> Response:
        k, served = _whole(request, "k", 10, 1, MAX_K), self.service.served
        safe_csv = not _yes_or_no(request, "raw", False)
        name = {"Content-Disposition": 'attachment; filename="recommendations.csv"'}
        parts = self._parts(served.recommendations_csv(k, safe_csv))
        return StreamingResponse(parts, media_type="text/csv", headers=name)

    async def _parts(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        while True:
            part = await self.service.slow(lambda: next(parts, None))
            if part is None:
                return
            yield part

    async def report(self, request: Request) -> Response:
        page = await self.service.slow(self.service.report_page)
        headers = {
            "Content-Disposition": 'attachment; filename="report.html"',
            "Content-Security-Policy": REPORT_POLICY,
        }
        return Response(page, media_type="text/html", headers=headers)


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


async def _save(request: Request, path: Path) -> None:
    try:
        with path.open("wb") as stream:
            async for part in request.stream():
                stream.write(part)
    except ClientDisconnect:
        raise ServiceError(400, "the client went before it had sent all") from None
    except OSError as error:
        words = f"the service cannot keep the file while it reads it: {error.strerror}"
        raise ServiceError(507, words) from None


async def _read(request: Request, kind: type[T], default: bytes = b"") -> T:
    try:
        body = await request.body()
    except ClientDisconnect:
        raise ServiceError(400, "the client went before it had sent all") from None
    return parse(body or default, kind)


def parse(body: bytes, kind: type[T]) -> T:
    """The body of a request as a type, or an error that says what is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"{kind.__name__}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceError(400, f"the body must be JSON: {error}") from None


def _whole(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise ServiceError(
            422, f"{name} must be a whole number from {low} to {high}, got {text[:40]!r}"
        )
    return int(text)


def _yes_or_no(request: Request, name: str, default: bool) -> bool:
    text = request.query_params.get(name)
    if text is None:
        return default
    if text not in ("true", "false"):
        raise ServiceError(422, f"{name} must be true or false, got {text[:40]!r}")
    return text == "true"


# The page


def _page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page, read once: nothing else can be asked for."""
    files = {}
    for path in sorted(PAGE.rglob("*")) if PAGE.is_dir() else []:
        kind = mimetypes.guess_type(path.name)[0]
        if path.is_file() and kind is not None and path.suffix != ".py":
            files[path.relative_to(PAGE).as_posix()] = (path.read_bytes(), kind)
    return files


def _sender(files: dict[str, tuple[bytes, str]], name: str | None = None) -> Any:
    async def page(request: Request) -> Response:
        wanted = name or request.path_params["name"]
        if wanted not in files:
            if name is None:
                raise ServiceError(404, "there is no such file")
            return Response(PLAIN, media_type="text/html")
        body, kind = files[wanted]
        mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"ETag": mark, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)

    return page
