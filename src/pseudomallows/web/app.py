"""The app: routes made from the endpoints, behind the guard; and the files of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.staticfiles import StaticFiles

from . import handlers
from .endpoints import Endpoint, endpoint, endpoints_in
from .guard import Guard, admit
from .openapi import as_page, describe

if TYPE_CHECKING:
    from .service import Service

PAGE = Path(__file__).parent / "page"


def app_of(
    service: Service,
    hosts: frozenset[str] | None = None,
    names: frozenset[str] = frozenset(),
) -> Guard:
    """The app (ASGI) of a service: `hosts` are names of this machine that a request may use, by
    default any, and `names` more of them, whose pages may ask as well."""
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
        return await endpoint.answer(service, admit(request, endpoint, service))

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
    files = StaticFiles(directory=PAGE)

    async def send(name: str, request: Request) -> Response:
        answer = await files.get_response(name, request.scope)
        answer.headers["Cache-Control"] = "no-cache"  # ask whether there is a newer one
        return answer

    @endpoint("GET", "/", answers="text/html", writes=False)
    async def index(service: Service, request: Request) -> Response:
        """The page."""
        return await send("index.html", request)

    @endpoint("GET", "/static/{name}", answers="application/octet-stream", writes=False)
    async def static(service: Service, request: Request, name: str) -> Response:
        """The files of the page."""
        return await send(name, request)

    return [index, static]
