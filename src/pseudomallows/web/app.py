"""The app: routes made from the endpoints, behind the guard; and the files of the page."""

import hashlib
import mimetypes
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from . import handlers
from .endpoints import Endpoint, endpoint, endpoints_in
from .errors import ServiceError
from .guard import Guard, admit
from .openapi import as_page, describe
from .service import Limits, Service

PAGE = Path(__file__).parent / "page"
PLAIN = (  # where the files of the page were left out
    "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>pseudomallows</title>"
    "<h1>pseudomallows</h1><p>The service runs. <a href='/docs'>What it answers</a>.</p></html>"
)


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
    return app_of(service, hosts, names)


def app_of(
    service: Service,
    hosts: frozenset[str] | None = None,
    names: frozenset[str] = frozenset(),
) -> Guard:
    """The app of a service."""
    routes = [_route(endpoint, service) for endpoint in all_endpoints()]

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    router = Router(routes, redirect_slashes=False, lifespan=lifespan)
    return Guard(router, service, hosts, names)


def _route(endpoint: Endpoint, service: Service) -> Route:
    """The route of an endpoint: first the guard, then the handler."""

    async def handle(request: Request) -> Response:
        request.scope["template"] = f"{endpoint.method} {endpoint.path}"
        return await endpoint.handler(service, admit(request, endpoint, service))

    return Route(endpoint.path.replace("}", ":path}"), handle, methods=[endpoint.method])


def all_endpoints() -> list[Endpoint]:
    """Every address there is: those of the handlers, their description, and the page."""
    described = endpoints_in(handlers)
    return [*described, *_description_of(described), *_page()]


def _description_of(endpoints: list[Endpoint]) -> list[Endpoint]:
    """The description, made once."""
    description = describe(endpoints)
    text, page = msgspec.json.encode(description), as_page(description)

    @endpoint("GET", "/openapi.json", answers="application/json", writes=False)
    async def openapi(service: Service, request: Request) -> Response:
        """The description."""
        return Response(text, media_type="application/json")

    @endpoint("GET", "/docs", answers="text/html", writes=False)
    async def docs(service: Service, request: Request) -> Response:
        """The description, as a page."""
        return Response(page, media_type="text/html")

    return [openapi, docs]


def _page() -> list[Endpoint]:
    """The page and its files."""
    files = _page_files()

    @endpoint("GET", "/", answers="text/html", writes=False)
    async def index(service: Service, request: Request) -> Response:
        """The page."""
        if "index.html" not in files:
            return Response(PLAIN, media_type="text/html")
        return _send(request, *files["index.html"])

    @endpoint("GET", "/static/{name}", answers="application/octet-stream", writes=False)
    async def static(service: Service, request: Request) -> Response:
        """The files of the page."""
        name = request.path_params["name"]
        if name not in files:
            raise ServiceError(404, "there is no such file")
        return _send(request, *files[name])

    return [index, static]


def _page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page, read once: nothing else can be asked for."""
    files = {}
    for path in sorted(PAGE.rglob("*")) if PAGE.is_dir() else []:
        kind = mimetypes.guess_type(path.name)[0]
        if path.is_file() and kind is not None and path.suffix != ".py":
            files[path.relative_to(PAGE).as_posix()] = (path.read_bytes(), kind)
    return files


def _send(request: Request, body: bytes, kind: str) -> Response:
    """A file, or word that the client has it already."""
    mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": mark, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)
