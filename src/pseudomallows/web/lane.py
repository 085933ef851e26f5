"""The fast lane: the commonest request, answered without the machinery for all others.

A request for recommendations that came whole, in one piece, and has the plainest form there is, is
answered where its bytes arrive. Anything else, a byte out of the ordinary included, goes to the
server's own parser and the app, which answer the same.

Here, too, clients that do not finish a request are let go.
"""

import functools
import re
import time
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from .errors import ServiceError
from .guard import RAW_HEADERS, Guard, without_port
from .types import RecommendRequest

START = b"POST /recommend HTTP/1.1\r\n"
TEMPLATE = "POST /recommend"
LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)"
)
PLAIN = {b"host", b"content-length", b"content-type", b"accept", b"accept-encoding", b"user-agent"}
PLAIN |= {b"accept-language", b"connection", b"authorization", b"cache-control", b"pragma"}
MAX_HEAD = 2000
WAIT_SECONDS, LOOK_SECONDS = 15.0, 2.0  # for a request to come whole; between two looks
decode = msgspec.json.Decoder(RecommendRequest).decode
OUR_HEADERS = b"".join(b"%s: %s\r\n" % pair for pair in RAW_HEADERS)
ANSWER = (
    b"HTTP/1.1 200 OK\r\n%scontent-type: application/json\r\n" + OUR_HEADERS + b"content-length: %d"
    b"\r\n\r\n%s"
)


@functools.lru_cache(1024)
def read_head(head: bytes) -> tuple[str, int] | None:
    """Host and length of the body, if every line is of a plain kind and stands once.

    >>> read_head(b"Host: localhost\\r\\nContent-Length: 2")
    ('localhost', 2)
    >>> read_head(b"Host: localhost\\r\\nContent-Length: 2\\r\\nTransfer-Encoding: chunked")
    """
    found: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n"):
        match = LINE.fullmatch(line)
        if match is None or match[1].lower() not in PLAIN or match[1].lower() in found:
            return None
        found[match[1].lower()] = match[2]
    length = found.get(b"content-length", b"")
    if not re.fullmatch(rb"\d{1,7}", length) or b"host" not in found:
        return None
    if found.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    return found[b"host"].decode("ascii"), int(length)


def make_lane(guard: Guard) -> type[H11Protocol]:
    """The protocol of the server, with the fast lane for this app."""
    return type("Lane", (_Lane,), {"guard": guard})


class _Lane(H11Protocol):
    guard: Guard
    _since: float
    _date: tuple[Any, bytes] = (None, b"")

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = time.monotonic()
        self._look = self.loop.call_later(LOOK_SECONDS, self._look_for_idlers)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _look_for_idlers(self) -> None:
        """Close, if no request has come whole for long, however many bytes dripped in."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > WAIT_SECONDS:
            self.transport.close()
            return
        self._look = self.loop.call_later(LOOK_SECONDS, self._look_for_idlers)

    def data_received(self, data: bytes) -> None:
        if data.startswith(START) and self._is_between_requests():
            started = time.perf_counter()
            answer = self._answer(data)
            if answer is not None:
                self._unset_keepalive_if_required()
                self.transport.write(ANSWER % (self._default_headers(), len(answer), answer))
                self._since = time.monotonic()
                seconds = time.perf_counter() - started
                self.guard.service.metrics.add(TEMPLATE, 200, seconds)
                return
        super().data_received(data)

    def _is_between_requests(self) -> bool:
        return (
            (self.cycle is None or self.cycle.response_complete)
            and self.conn.our_state is h11.IDLE
            and self.conn.their_state is h11.IDLE
            and not self.conn.trailing_data[0]
            and not self.flow.write_paused
        )

    def _answer(self, data: bytes) -> bytes | None:
        """The answer, or None if this is for the others."""
        head, _, body = data[len(START) :].partition(b"\r\n\r\n")
        found = read_head(head) if len(head) <= MAX_HEAD else None
        guard = self.guard
        if found is None or found[1] != len(body) or len(body) > guard.service.limits.body:
            return None
        if guard.hosts is not None and without_port(found[0]) not in guard.hosts:
            return None
        client = self.client[0] if self.client else ""
        if guard.buckets is not None and not guard.buckets.take(client):
            return None
        answer = self._quick_answer(body)
        if answer is None and guard.buckets is not None:
            guard.buckets.give_back(client)  # the others will take it
        return answer

    def _quick_answer(self, body: bytes) -> bytes | None:
        try:
            asked = decode(body)
            return self.guard.service.served.quick_answer(asked.clicks, asked.k)
        except (msgspec.MsgspecError, UnicodeDecodeError, ServiceError):
            return None

    def _default_headers(self) -> bytes:
        """Those of the server, such as the date; it makes a new list every second."""
        headers = self.server_state.default_headers
        if self._date[0] is not headers:
            self._date = (headers, b"".join(b"%s: %s\r\n" % (n, v) for n, v in headers))
        return self._date[1]
