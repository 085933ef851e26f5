"""Run the service: check the address, make all ready, open the port."""

import gc
import ipaddress
import logging
import os
import resource
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from .app import app_of
from .connections import (
    MAX_CONNECTIONS,
    MAX_OF_CLIENT,
    ROOM,
    WAIT_SECONDS,
    Connections,
    Network,
    make_protocol,
)
from .guard import LOOPBACK, Guard
from .jobs.uploads import DEFAULT_LIMITS, UploadLimits
from .service import Limits, Service
from .types import MAX_HEAD

log = logging.getLogger("pseudomallows")
MIN_TOKEN = 16  # characters: if hexadecimal, 64 bits, billions of years at 100 guesses a second
SPARE_FILES = 200  # of the process, besides connections: the store, the model, pipes to jobs


def serve(
    model: str,
    *,
    host: str,
    port: int,
    store: str,
    token: str | None = None,
    refit_every: float | None = None,
    rate: float | None = None,
    names: Sequence[str] = (),
    trusted_proxies: str | None = None,
    max_of_client: int = MAX_OF_CLIENT,
    uploads: UploadLimits = DEFAULT_LIMITS,
    quiet: bool = False,
) -> None:
    """Serve a model until interrupted; the options are those of `pseudomallows serve`."""
    is_local = is_loopback(host)
    if not is_local and token is None:
        raise ValueError(
            f"{host} can be reached from outside, so a token is needed: give --token-file, or set "
            "PSEUDOMALLOWS_TOKEN"
        )
    if refit_every is not None and not refit_every > 0:
        raise ValueError(f"--refit-every must be above 0 seconds, got {refit_every:g}")
    if max_of_client < 1:
        raise ValueError(f"--max-connections-per-client must be 1 or more, got {max_of_client}")
    proxies = read_proxies(trusted_proxies)
    if rate is None:
        rate = 0.0 if is_local else 100.0  # a second: more than a person makes
    _set_up_log(quiet)
    opened = _bind(host, port)
    try:
        limits = Limits(rate=rate, uploads=uploads)
        service = Service(model, store, token, limits, refit_every)
        app = app_of(service, hosts_of(host, names), frozenset(names))
        _run(opened, app, Connections(room_for_connections(), max_of_client, proxies))
    finally:
        opened.close()


def hosts_of(host: str, names: Sequence[str]) -> frozenset[str] | None:
    """What a request may have as its Host, besides the names; None: anything.

    >>> hosts_of("0.0.0.0", ["shop.example"]), hosts_of("0.0.0.0", [])
    (frozenset({'0.0.0.0'}), None)
    """
    own = frozenset((f"[{host}]" if ":" in host else host,))
    if is_loopback(host):
        return LOOPBACK | own
    return own if names else None


def _run(opened: socket.socket, app: Guard, connections: Connections) -> None:
    """Open the port, and answer until interrupted."""
    model, (host, port) = app.service.model, opened.getsockname()[:2]
    log.info("%s, version %d", repr(model.posterior).splitlines()[0], model.number)
    log.info("open http://%s:%d", host, port)
    gc.collect()
    gc.freeze()  # what is there by now stays, and need not be looked through again
    uvicorn.Server(make_config(app, host, port, connections)).run(sockets=[opened])


def room_for_connections() -> int:
    """How many connections there may be: fewer, if the system grants fewer open files."""
    wanted = MAX_CONNECTIONS + ROOM + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MAX_CONNECTIONS
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return max(1, granted - ROOM - SPARE_FILES)


def _bind(host: str, port: int) -> socket.socket:
    """Take the port, but listen only when all is ready."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except (OSError, OverflowError) as error:
        raise ValueError(f"cannot open port {port} of {host}: {error}") from None
    return opened


def make_config(
    app: Guard, host: str, port: int, connections: Connections | None = None
) -> uvicorn.Config:
    """How the server runs an app."""
    connections = connections or Connections()
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=make_protocol(connections),
        loop="asyncio",  # uvloop takes one newcomer a turn: under load they wait for seconds
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=bool(connections.proxies),
        forwarded_allow_ips=[str(network) for network in connections.proxies],
        timeout_keep_alive=int(WAIT_SECONDS),
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=MAX_HEAD,
    )


def read_proxies(text: str | None) -> list[Network]:
    """The networks of proxies whose X-Forwarded-For is believed.

    >>> read_proxies("10.0.0.2, 10.1.0.0/16")[1]
    IPv4Network('10.1.0.0/16')
    """
    networks: list[Network] = []
    for word in text.split(",") if text is not None else []:
        try:
            networks.append(ipaddress.ip_network(word.strip()))
        except ValueError as error:
            raise ValueError(
                f"--trusted-proxies must be addresses, such as 10.0.0.2 or 10.0.0.0/24: {error}"
            ) from None
    return networks


def _set_up_log(quiet: bool) -> None:
    """Lines on standard error; only warnings, if quiet."""
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("pseudomallows: %(message)s"))
        log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)


def is_loopback(host: str) -> bool:
    """Can the address be reached from this machine only?

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_token(path: str | None) -> str | None:
    """The token in a file, else that of the environment, else none."""
    if path is not None:
        token = Path(path).read_text(encoding="utf-8").strip()
        where = path
    else:
        token, where = os.environ.get("PSEUDOMALLOWS_TOKEN", "").strip(), "PSEUDOMALLOWS_TOKEN"
        if not token:
            return None
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise ValueError(f"the token in {where} must have {MIN_TOKEN} or more plain characters")
    return token
