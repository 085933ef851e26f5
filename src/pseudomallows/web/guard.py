"""What comes before the routes: who may ask, how much, how often; and how errors are answered."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
import urllib.parse
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from .connections import asking, client_of
from .endpoints import Endpoint
from .errors import RETRY, ServiceError
from .types import MAX_HEAD, ErrorAnswer, encode

if TYPE_CHECKING:
    from .service import Service

log = logging.getLogger("pseudomallows")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
WORDS = {404: "there is nothing at this address", 405: "this address does not take this method"}
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ONCE = frozenset((b"host", b"origin", b"authorization", b"content-length"))  # they decide


class Guard:
    """The app that the server runs.

    `hosts` are the names by which a request may call this machine (None: any); pages of the sites
    `names` may ask, too, as those behind a proxy do.
    """

    def __init__(
        self,
        app: App,
        service: Service,
        hosts: frozenset[str] | None = None,
        names: frozenset[str] = frozenset(),
    ):
        self.app, self.service = app, service
        self.names = frozenset(name.lower() for name in names)
        self.hosts = None if hosts is None else frozenset(map(str.lower, hosts)) | self.names
        rate = service.limits.rate
        self.rate_limit = RateLimit(rate) if rate > 0 else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope["app"] = self  # so that a wrong method is an error of ours
        started, status = time.perf_counter(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_ours(message.get("headers", []), _is_late(scope))
            await send(message)

        try:
            try:
                self._check(scope)
                await self.app(scope, receive, send_guarded)
            except Exception as error:
                if status:  # too late for words
                    log.exception("while an answer was sent")
                    raise
                await _send_error(_known(error), send_guarded)
        finally:
            route = scope.get("template", "other")
            self.service.metrics.add(route, status or 500, time.perf_counter() - started)

    def _check(self, scope: Message) -> None:
        """Refuse what no address takes: by its head, and by who asks how often."""
        if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
            raise ServiceError(
                400, "the service speaks HTTP/1.0 and HTTP/1.1", {"Connection": "close"}
            )
        _check_path(scope)
        headers = _read_headers(scope)
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self.hosts is not None and without_port(host) not in self.hosts:
            raise ServiceError(
                400, "Host must be a name of this machine, such as localhost; see --name"
            )
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        site = origin.partition("://")[2]
        if origin and site != host and without_port(site) not in self.names:
            raise ServiceError(403, "pages of other sites may not ask here (Origin)")
        self.charge(scope)

    def charge(self, scope: Message, n_requests: int = 1) -> None:
        """Count so many requests for who asks, or refuse them."""
        client = client_of((scope.get("client") or ("",))[0])
        asking.set(client)
        if self.rate_limit is not None and not self.rate_limit.take(client, n_requests):
            raise ServiceError(429, "too many requests: wait a second", RETRY)


def _check_path(scope: Message) -> None:
    """Refuse what is not text: two names must never fall together."""
    raw_path = scope.get("raw_path") or scope["path"].encode()
    for part, what in ((raw_path, "path"), (scope["query_string"], "query")):
        try:
            urllib.parse.unquote_to_bytes(part).decode()
        except UnicodeDecodeError:
            shown = part[:80].decode("latin-1")
            raise ServiceError(
                400, f"the {what} must be UTF-8, percent-encoded, got {shown!r}"
            ) from None
    if CONTROL.search(scope["path"]):
        raise ServiceError(
            400, f"the path must have no control characters, got {scope['path'][:80]!r}"
        )


def _read_headers(scope: Message) -> dict[bytes, bytes]:
    """The headers; those that decide must come once."""
    headers: dict[bytes, bytes] = {}
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    for name, value in scope["headers"]:
        if name in ONCE and name in headers:
            raise ServiceError(400, f"the header {name.decode()} must come only once")
        headers[name] = value
        size += len(name) + len(value)
    if size > MAX_HEAD:
        raise ServiceError(431, f"the head of a request must have at most {MAX_HEAD:,} bytes")
    return headers


def admit(request: Request, endpoint: Endpoint, service: Service) -> Request:
    """The request, for the handler of its address: if it may ask, and with a limit
    to its body."""
    if _is_late(request.scope) and not endpoint.is_vital:
        raise ServiceError(503, "too many connections: close some, or try again later", RETRY)
    if endpoint.writes and service.token is not None:
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, b"Bearer " + service.token.encode()):
            raise ServiceError(
                401,
                "this needs the token of the service, as the header `Authorization: Bearer TOKEN`",
                {"WWW-Authenticate": "Bearer"},
            )
    return Request(request.scope, _Body(request, endpoint, service).receive)


def _is_late(scope: Message) -> bool:
    """Did its connection come when there were too many?"""
    return bool(scope.get("state", {}).get("is_late"))


class RateLimit:
    """How often each client may ask: `rate` times a second, and twice as often for a moment."""

    MAX_CLIENTS = 10_000  # remembered; whoever has not asked for longest is forgotten

    def __init__(self, rate: float):
        self.rate, self._clients = rate, dict[str, tuple[float, float]]()

    def take(self, client: str, n_requests: int = 1) -> bool:
        """May this client ask now? Whoever asks for more than is left pays later."""
        now, most = time.monotonic(), max(1.0, 2 * self.rate)
        left, last = self._clients.pop(client, (most, now))
        left = min(most, left + (now - last) * self.rate)
        self._clients[client] = (left - n_requests if left >= 1 else left, now)
        if len(self._clients) > self.MAX_CLIENTS:
            del self._clients[next(iter(self._clients))]
        return left >= 1


class _Body:
    """The body of a request, up to its limits of size and time."""

    def __init__(self, request: Request, endpoint: Endpoint, service: Service):
        limits, takes_file = service.limits, endpoint.takes_file
        self.most = limits.upload if takes_file else limits.body
        self.seconds = limits.seconds * (10 if takes_file else 1)
        self._receive, self._size, self._has_all = request.receive, 0, False
        self._deadline = asyncio.get_running_loop().time() + self.seconds
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self.most:
            raise self._too_large()

    async def receive(self) -> Message:
        """The next part of the body."""
        if self._has_all:
            return await self._receive()  # waits until the client goes
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            words = f"the request did not come within {self.seconds:g} seconds"
            raise ServiceError(408, words, {"Connection": "close"}) from None
        self._size += len(message.get("body", b""))
        self._has_all = not message.get("more_body", False)
        if self._size > self.most:
            raise self._too_large()
        return message

    def _too_large(self) -> ServiceError:
        """For a body beyond its limit."""
        words = f"the body must have at most {self.most:,} bytes"
        return ServiceError(413, words, {"Connection": "close"})


def without_port(host: str) -> str:
    """The name in a Host header.

    >>> without_port("localhost:8000"), without_port("[::1]:8000")
    ('localhost', '[::1]')
    """
    return re.sub(r":\d*$", "", host) if not host.endswith("]") else host


def _with_ours(headers: Any, is_last: bool) -> list[tuple[bytes, bytes]]:
    """Headers with those that every answer has; `is_last`: the connection ends with it."""
    given = {name.lower() for name, _ in headers}
    ours = [*RAW_HEADERS, (b"connection", b"close")] if is_last else RAW_HEADERS
    return [*headers, *(pair for pair in ours if pair[0] not in given)]


def _known(error: Exception) -> ServiceError:
    """An error in words for the client; what we did not foresee goes to the log."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, HTTPException):
        words = WORDS.get(error.status_code, "this cannot be answered")
        return ServiceError(error.status_code, words, dict(error.headers or {}))
    log.error("a request failed", exc_info=error)
    return ServiceError(500, "something went wrong here; the log of the service says what")


async def _send_error(error: ServiceError, send: Send) -> None:
    """Answer with an error."""
    body = encode(ErrorAnswer(error.words))
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
