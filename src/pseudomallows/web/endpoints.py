"""An endpoint: a handler with its address, what it takes and answers, and whether it writes.

All of it is said in one place, by a decorator on the handler; the routes, the description and the
guard are made from it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .errors import ServiceError
from .types import encode

Answer: TypeAlias = Struct | bytes | Response
# of a `Service`, a request, the query or the body if it asks for one, and the names in the path
Handler = Callable[..., Awaitable[Answer]]
T = TypeVar("T", bound=Struct)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One address and its handler.

    `answers` and `asks` are types, or names of media types; `query` has a field for each parameter;
    `errors` are statuses besides those that any address may answer.
    """

    method: str
    path: str
    handler: Handler
    writes: bool  # does it change anything? Then it needs the token
    answers: Any
    asks: Any = None
    query: type[Struct] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    is_vital: bool = False  # answered even if there are too many connections

    def __post_init__(self) -> None:
        if self.writes and self.method == "GET":  # a link on any page is enough to ask it
            raise ValueError(f"GET {self.path} must not write: take POST or DELETE")

    @property
    def name(self) -> str:
        """That of the handler."""
        return self.handler.__name__

    @property
    def words(self) -> str:
        """What it does: the first line of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0].removesuffix(".")

    @property
    def takes_file(self) -> bool:
        """Is the body a file, which may be large?"""
        return isinstance(self.asks, str)

    async def answer(self, service: Any, request: Request) -> Response:
        """Read what is asked, and let the handler answer."""
        asked: list[Struct] = []
        if self.query is not None:
            asked = [_read_query(request, self.query)]
        elif self.asks is not None and not self.takes_file:
            asked = [await _read_body(request, self.asks)]
        answer = await self.handler(service, request, *asked, **request.path_params)
        if isinstance(answer, Response):
            return answer
        return json_response(answer if isinstance(answer, bytes) else encode(answer), self.status)


def endpoint(
    method: str, path: str, *, answers: Any, writes: bool, **more: Any
) -> Callable[[Handler], Endpoint]:
    """Make an endpoint of a handler; `more` are the other fields of :class:`Endpoint`."""

    def decorate(handler: Handler) -> Endpoint:
        return Endpoint(
            method=method, path=path, handler=handler, writes=writes, answers=answers, **more
        )

    return decorate


def endpoints_in(module: ModuleType) -> list[Endpoint]:
    """All endpoints of a module, in the order of its source."""
    return [value for value in vars(module).values() if isinstance(value, Endpoint)]


def json_response(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """An answer of JSON."""
    return Response(body, status, headers, media_type="application/json")


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


async def _read_body(request: Request, kind: type[T]) -> T:
    """The body as a type, or an error that says what is wrong; none at all asks for nothing."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise ServiceError(400, "the client disconnected before it had sent everything") from None
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise ServiceError(422, f"{kind.__name__}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServiceError(400, f"the body must be JSON: {error}") from None
