"""An endpoint: a handler with its address, what it takes and answers, and whether it writes.

All of it is said in one place, by a decorator on the handler; the routes, the description and the
guard are made from it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import Response

from .errors import ServiceError

Handler = Callable[[Any, Request], Awaitable[Response]]  # of a `Service` and a request


class Parameter(Protocol):
    """A parameter of a query."""

    @property
    def name(self) -> str:
        """As the client writes it."""

    def schema(self) -> dict[str, Any]:
        """For the description."""


class Text(NamedTuple):
    """Any text, by default none."""

    name: str

    def schema(self) -> dict[str, Any]:
        """For the description."""
        return {"type": "string"}

    def read(self, request: Request) -> str:
        """What the client gave."""
        return request.query_params.get(self.name, "")


class Texts(NamedTuple):
    """Any number of texts: the name comes again with each."""

    name: str

    def schema(self) -> dict[str, Any]:
        """For the description."""
        return {"type": "array", "items": {"type": "string"}}

    def read(self, request: Request) -> list[str] | None:
        """What the client gave; None for nothing."""
        return request.query_params.getlist(self.name) or None


class Whole(NamedTuple):
    """A whole number from `low` to `high`."""

    name: str
    default: int
    low: int
    high: int

    def schema(self) -> dict[str, Any]:
        """For the description."""
        limits = {"minimum": self.low, "maximum": self.high}
        return {"type": "integer", **limits, "default": self.default}

    def read(self, request: Request) -> int:
        """What the client gave, checked."""
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        is_number = text.isascii() and text.isdecimal() and len(text) < 10
        if not (is_number and self.low <= int(text) <= self.high):
            wanted = f"a whole number from {self.low} to {self.high}"
            raise ServiceError(422, f"{self.name} must be {wanted}, got {text[:40]!r}")
        return int(text)


class YesOrNo(NamedTuple):
    """True or false."""

    name: str
    default: bool

    def schema(self) -> dict[str, Any]:
        """For the description."""
        return {"type": "boolean", "default": self.default}

    def read(self, request: Request) -> bool:
        """What the client gave, checked."""
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        if text not in ("true", "false"):
            raise ServiceError(422, f"{self.name} must be true or false, got {text[:40]!r}")
        return text == "true"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One address and its handler.

    `answers` and `asks` are types, or names of media types; `errors` are statuses besides those
    that any address may answer.
    """

    method: str
    path: str
    handler: Handler
    writes: bool  # does it change anything? Then it needs the token
    answers: Any
    asks: Any = None
    query: tuple[Parameter, ...] = ()
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
