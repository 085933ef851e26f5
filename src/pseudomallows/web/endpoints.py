"""An endpoint: a handler with its address, what it takes and answers, and whether it writes.

All of it is said in one place, by a decorator on the handler; the routes, the description and the
guard are made from it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Any, Request], Awaitable[Response]]  # of a `Service` and a request


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
