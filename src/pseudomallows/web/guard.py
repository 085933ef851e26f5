"""What stands before the routes: who may ask, how much, how often; and how errors are told."""

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from .errors import ServiceError
from .served import encode
from .service import Buckets, Service
from .types import ErrorAnswer

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
WRITES = re.compile(r"/users/.*|/refit|/upload|/uploads/.*|/jobs/.*", re.DOTALL)


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
        self.app, self.service, self.names = app, service, names
        self.hosts = None if hosts is None else hosts | names
        rate = service.limits.rate
        self.buckets = Buckets(rate) if rate > 0 else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope["app"] = self  # so that a wrong method is an error of ours
        started, status = time.perf_counter(), 0
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_ours(message.get("headers", []))
            await send(message)

        try:
            try:
                self._check(scope, headers)
                body = _Body(scope, headers, receive, self.service)
                await self.app(scope, body.receive, send_guarded)
            except Exception as error:
                if status:  # too late for words
                    log.exception("while an answer was sent")
                    raise
                await _send_error(_known(error), send_guarded)
        finally:
            route = scope.get("template", "other")
            self.service.metrics.add(route, status or 500, time.perf_counter() - started)

    def _check(self, scope: Message, headers: dict[str, bytes]) -> None:
        host = headers.get("host", b"").decode("latin-1")
        if self.hosts is not None and without_port(host) not in self.hosts:
            raise ServiceError(
                400, "Host must be a name of this machine, such as localhost; see --name"
            )
        origin = headers.get("origin", b"").decode("latin-1")
        site = origin.partition("://")[2]
        if origin and site != host and without_port(site) not in self.names:
            raise ServiceError(403, "a page of another site must not ask here (Origin)")
        client = (scope.get("client") or ("",))[0]
        if self.buckets is not None and not self.buckets.take(client):
            raise ServiceError(429, "too many requests: wait a second", {"Retry-After": "1"})
        is_write = scope["method"] in ("POST", "DELETE", "PUT", "PATCH")
        if is_write and WRITES.fullmatch(scope["path"]):
            self._check_token(headers)

    def _check_token(self, headers: dict[str, bytes]) -> None:
        token = self.service.token
        if token is None:
            return
        given = headers.get("authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + token.encode()):
            raise ServiceError(
                401,
                "this needs the token of the service, as the header `Authorization: Bearer TOKEN`",
                {"WWW-Authenticate": "Bearer"},
            )


class _Body:
    """The body of a request, up to its limits of size and time."""

    def __init__(
        self, scope: Message, headers: dict[str, bytes], receive: Receive, service: Service
    ):
        limits, is_upload = service.limits, scope["path"] == "/upload"
        self.most = limits.upload if is_upload else limits.body
        self.seconds = limits.seconds * (10 if is_upload else 1)
        self._receive, self._size, self._has_all = receive, 0, False
        self._deadline = time.monotonic() + self.seconds
        length = headers.get("content-length", b"0")
        if length.isdigit() and int(length) > self.most:
            raise self._too_large()

    async def receive(self) -> Message:
        if self._has_all:
            return await self._receive()  # waits until the client goes
        left = self._deadline - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(left, 0.001))
        except TimeoutError:
            words = f"the request did not come within {self.seconds:g} seconds"
            raise ServiceError(408, words, {"Connection": "close"}) from None
        self._size += len(message.get("body", b""))
        self._has_all = not message.get("more_body", False)
        if self._size > self.most:
            raise self._too_large()
        return message

    def _too_large(self) -> ServiceError:
        words = f"the body must have at most {self.most:,} bytes"
        return ServiceError(413, words, {"Connection": "close"})


def without_port(host: str) -> str:
    """The name in a Host header.

    >>> without_port("localhost:8000"), without_port("[::1]:8000")
    ('localhost', '[::1]')
    """
    return re.sub(r":\d*$", "", host) if not host.endswith("]") else host


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    given = {name.lower() for name, _ in headers}
    return [*headers, *(pair for pair in RAW_HEADERS if pair[0] not in given)]


def _known(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, HTTPException):
        words = WORDS.get(error.status_code, "this cannot be answered")
        return ServiceError(error.status_code, words, dict(error.headers or {}))
    log.error("a request failed", exc_info=error)
    return ServiceError(500, "something went wrong here; the log of the service says what")


async def _send_error(error: ServiceError, send: Send) -> None:
    body = encode(ErrorAnswer(error.words))
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
