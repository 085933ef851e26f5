"""Connections: how many there may be, how long they may idle, how long a head may be.

All of it before a request has come whole; what the request may do is for `guard`.
"""

import asyncio
import functools
import ipaddress
import time
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .types import MAX_HEAD, ErrorAnswer, encode

MAX_CONNECTIONS = 1000  # a few MB in all, and within the open files that most systems grant
MAX_OF_CLIENT = 100  # of them, so that ten clients are needed to shut others out
# for connections beyond that, which may ask for vital addresses and get a 503 otherwise: each stays
# for 3 seconds at most, so that 16 a second are answered
ROOM = 50
WAIT_SECONDS = 15.0  # for the head of a request: the longest, 16 KB, then comes at 1 KB a second
TAKE_SECONDS = 60.0  # for a client to take any bytes of its answer: the system holds many of them
LOOK_SECONDS = 1.0  # between two looks at a connection: little beside the seconds above

asking: ContextVar[str] = ContextVar("asking", default="")  # the client of this request
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Connections:
    """All connections of a server.

    Those of `proxies` have many clients behind them, and count only in the total.
    """

    def __init__(
        self,
        most: int = MAX_CONNECTIONS,
        most_of_client: int = MAX_OF_CLIENT,
        proxies: Sequence[Network] = (),
    ):
        self.most, self.most_of_client, self.proxies = most, most_of_client, proxies
        self._in_time: dict[Connection, str] = {}
        self._of_client: Counter[str] = Counter()
        self._late: dict[Connection, None] = {}  # oldest first
        self._is_proxy = functools.lru_cache(1024)(lambda client: is_in(client, proxies))

    def add(self, connection: "Connection", address: str) -> bool:
        """Count a connection; False if it came too late, when there were too many."""
        client = client_of(address)
        is_full = len(self._in_time) >= self.most or (
            self._of_client[client] >= self.most_of_client and not self._is_proxy(address)
        )
        if not is_full:
            self._in_time[connection] = client
            self._of_client[client] += 1
            return True
        self._late[connection] = None
        if len(self._late) > ROOM:
            oldest = next(iter(self._late))
            del self._late[oldest]
            oldest.refuse(503, "too many connections: close some, or try again later")
        return False

    def remove(self, connection: "Connection") -> None:
        """The end of a connection."""
        self._late.pop(connection, None)
        client = self._in_time.pop(connection, None)
        if client is not None:
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]


@functools.lru_cache(1024)
def client_of(address: str) -> str:
    """To whom an address counts: an IPv6 network of /64 is one client, as it is one machine's.

    >>> client_of("10.0.0.7"), client_of("2001:db8::7:1"), client_of("::ffff:10.0.0.7")
    ('10.0.0.7', '2001:db8::/64', '10.0.0.7')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))


def is_in(client: str, networks: Sequence[Network]) -> bool:
    """Is an address in one of some networks?

    >>> is_in("10.0.0.7", [ipaddress.ip_network("10.0.0.0/24")]), is_in("", [])
    (True, False)
    """
    try:
        return any(ipaddress.ip_address(client) in network for network in networks)
    except ValueError:
        return False


def make_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """The protocol of a server."""
    return type("Counted", (Connection,), {"registry": connections})


class Connection(HttpToolsProtocol):
    """One connection; `cycle` is its last request.

    uvicorn would read a head, or what is around the chunks of a body, of any length: `_n_extra`
    counts the bytes of a request that are not of its body. Requests that come while others wait are
    read up to a limit; with the answer of the last one the connection ends.
    """

    registry: Connections
    transport: asyncio.Transport
    _n_extra = 0
    _is_full = _has_head = False

    def __init__(self, config: Any, server_state: Any, app_state: Any, _loop: Any = None):
        self._state = app_state | {"is_late": False}  # a request takes it along
        super().__init__(config, server_state, self._state, _loop)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # when the last request came, and when bytes of an answer were last taken
        self._asked = self._taken = time.monotonic()
        self._request: Any = None
        self._n_left = 0  # bytes of an answer that the client has not taken
        client = (transport.get_extra_info("peername") or ("",))[0]
        self._state["is_late"] = not self.registry.add(self, client)
        self._look = self.loop.call_later(LOOK_SECONDS, self._look_after)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        self.registry.remove(self)
        super().connection_lost(exc)

    def _look_after(self) -> None:
        """Close, if for long no request has come whole, however many bytes dripped in, or if the
        client does not take its answer."""
        now, n_left = time.monotonic(), self.transport.get_write_buffer_size()
        if not n_left or n_left != self._n_left:
            self._taken, self._n_left = now, n_left
        if self.cycle is not self._request or self._is_answering():
            self._asked, self._request = now, self.cycle
        # beyond the limit, connections hold the last room there is
        patience = 2.0 if self._state["is_late"] else WAIT_SECONDS
        if now - self._taken > TAKE_SECONDS:
            self.transport.abort()
        elif now - self._asked > patience:
            self.transport.close()  # once all is taken
        self._look = self.loop.call_later(LOOK_SECONDS, self._look_after)

    def _is_answering(self) -> bool:
        """Is an answer on its way?"""
        return self.cycle is not None and not self.cycle.response_complete

    def refuse(self, status: int, words: str) -> None:
        """Say why, and close."""
        if self.transport.is_closing():
            return
        body = encode(ErrorAnswer(words))
        again = b"retry-after: 1\r\n" if status == 503 else b""
        head = b"HTTP/1.1 %d Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
        rest = b"%scontent-length: %d\r\n\r\n%s" % (again, len(body), body)
        self.transport.write(head % status + rest)
        self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= 10:  # browsers send none before they have the answer
            self._is_full, self.cycle.keep_alive = True, False
            raise ValueError  # the parser reads no further
        self._n_extra, self._has_head = 0, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # what comes after a body (trailers) is no header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._has_head = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_extra = max(0, self._n_extra - 2 * len(body))  # chunks have sizes: some is right
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_extra = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is said to bytes that are no request, in JSON, as all errors; nothing, if they were
        only too many: the requests that wait are answered."""
        if not self._is_full:
            self.refuse(400, msg)

    def data_received(self, data: bytes) -> None:
        if self._is_full:
            self.flow.pause_reading()
            return
        self._n_extra += len(data)
        super().data_received(data)
        if not self._is_full and self._n_extra > MAX_HEAD:
            self.refuse(431, f"the head of a request must have at most {MAX_HEAD:,} bytes")
