"""Clients that hold connections, drip, flood or never read: others are answered meanwhile."""

import contextlib
import http.client
import ipaddress
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from pseudomallows.web import connections
from pseudomallows.web.service import Limits
from webhelp import LONG_WAIT, Process, client_of, clock_of_limits, make_model, talk, wait_until

ME, OTHER = "127.0.0.1", "127.0.0.2"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
MODEL = b"GET /model HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
MIN_ASKED = 10  # hostile requests that must have been answered


@pytest.fixture
def quick_looks(monkeypatch):
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.6)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.1)


def clock_of_connections(monkeypatch):
    """The time by which connections are looked at, to be moved by hand; they are, all the time."""
    clock = SimpleNamespace(seconds=100.0, n_looks=0)

    def tell():
        clock.n_looks += 1
        return clock.seconds

    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=tell))
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.02)
    return clock


def hold(stack, port, number, first=b"", source=ME):
    """Connections that are not closed."""
    made = []
    for _ in range(number):
        made.append(socket.create_connection((ME, port), 20, source_address=(source, 0)))
        stack.enter_context(made[-1])
        made[-1].sendall(first)
    return made


def status_of(said):
    return int(said.split(b" ", 2)[1])


# How many


def test_a_thousand_idle_connections_of_one_client_shut_nobody_out(model, monkeypatch):
    monkeypatch.setattr(connections, "WAIT_SECONDS", 600.0)
    with client_of(model) as client, contextlib.ExitStack() as stack:
        hold(stack, client.port, 1000)
        for source in (OTHER, ME):
            assert status_of(talk(client.port, HEALTH, source=source)) == 200
        assert status_of(talk(client.port, MODEL, source=OTHER)) == 200
        said = talk(client.port, MODEL)
        assert status_of(said) == 503
        head, _, body = said.partition(b"\r\n\r\n")
        assert b"\r\nretry-after: 1" in head.lower()
        assert b"\r\nconnection: close" in head.lower()
        assert "too many connections" in json.loads(body)["error"]


def test_the_total_has_room_for_the_health_check(model, monkeypatch):
    monkeypatch.setattr(connections, "ROOM", 3)
    with client_of(model, 5) as client, contextlib.ExitStack() as stack:
        held = hold(stack, client.port, 5)
        late = hold(stack, client.port, 10, source=OTHER)
        assert b" 503 " in late[0].recv(1000)  # the oldest made room for the newest
        assert status_of(talk(client.port, HEALTH)) == 200
        assert status_of(talk(client.port, MODEL, source=OTHER)) == 503
        held[0].close()
        wait_until(lambda: status_of(talk(client.port, MODEL, source=OTHER)) == 200)


def test_places_are_free_again_once_connections_are_closed(model):
    with client_of(model, 1000, 3) as client:
        for _ in range(3):
            with contextlib.ExitStack() as stack:
                hold(stack, client.port, 20)
                assert status_of(talk(client.port, MODEL)) == 503
            wait_until(lambda: status_of(talk(client.port, MODEL)) == 200)


def test_a_named_proxy_may_have_many_connections(model):
    with (
        client_of(model, 1000, 3, [ipaddress.ip_network(ME)]) as client,
        contextlib.ExitStack() as stack,
    ):
        for source in (ME, OTHER):
            hold(stack, client.port, 20, source=source)
        assert status_of(talk(client.port, MODEL)) == 200
        assert status_of(talk(client.port, MODEL, source=OTHER)) == 503


def test_a_busy_connection_is_kept_and_an_idle_one_is_not(model, monkeypatch):
    now = clock_of_connections(monkeypatch)
    with client_of(model) as client, contextlib.ExitStack() as stack:
        idle, busy = hold(stack, client.port, 2)
        for _ in range(5):
            busy.sendall(HEALTH)
            said = b""
            while b'"ok"' not in said:
                said += busy.recv(10_000)
                assert said
            wait_until(lambda n_looks=now.n_looks: now.n_looks > n_looks + 4)  # at both
            now.seconds += 0.9 * connections.WAIT_SECONDS
        assert idle.recv(1) == b""


def test_slow_clients_do_not_stop_others_and_are_let_go(model, monkeypatch):
    """Headers byte by byte, from many connections."""
    now = clock_of_connections(monkeypatch)
    with client_of(model) as client, contextlib.ExitStack() as stack:
        slow = hold(stack, client.port, 50)
        for byte in b"POST /recommend HTTP/1.1\r\nHost:":
            for connection in slow:
                connection.sendall(bytes([byte]))  # they are all there
            assert client.post("/recommend", json={"clicks": []}).status_code == 200
            now.seconds += 0.02 * connections.WAIT_SECONDS
        now.seconds += connections.WAIT_SECONDS
        assert [connection.recv(1) for connection in slow] == [b""] * 50
        assert client.get("/healthz").status_code == 200


# Who asks


def statuses(port, source, addresses):
    """Of requests that say whom they are for."""
    connection = http.client.HTTPConnection(ME, port, source_address=(source, 0), timeout=LONG_WAIT)
    with contextlib.closing(connection):
        found = []
        for address in addresses:
            connection.request("GET", "/healthz", headers={"X-Forwarded-For": address})
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
        return found


def test_a_forged_address_does_not_help_against_the_rate(model, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn's own variable
    clock_of_limits(monkeypatch)
    proxy = [ipaddress.ip_network(OTHER)]
    many = [f"10.0.0.{number}" for number in range(30)]
    forged = [f"10.1.0.{number}, 10.9.9.9" for number in range(30)]  # as a proxy adds its client
    for proxies in ([], proxy):
        with client_of(model, 1000, 100, proxies, limits=Limits(rate=2.0)) as client:
            assert statuses(client.port, ME, many).count(200) < 10
            from_proxy = statuses(client.port, OTHER, many).count(200)
            assert from_proxy == 30 if proxies else from_proxy < 10
            assert statuses(client.port, OTHER, forged).count(200) < 10


# What they send


@pytest.mark.parametrize(
    "junk", [b"\x00" * 50, b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01", b"A" * 40_000]
)
def test_junk_is_refused_and_the_service_goes_on(model, junk):
    with client_of(model) as client:
        said = talk(client.port, junk)
        assert said == b"" or status_of(said) in (400, 431)
        assert client.get("/healthz").status_code == 200


START = b"POST /recommend HTTP/1.1\r\nHost: localhost\r\n"
BODY = b'{"clicks":["item 1"],"k":2}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
DOUBTFUL = {  # requests in which two readers may see different ends
    "two lengths": START + LENGTH + b"Content-Length: 5\r\n\r\n" + BODY,
    "two equal lengths": START + LENGTH + LENGTH + b"\r\n" + BODY,
    "length and chunks": START + LENGTH + CHUNKED + b"\r\n" + CHUNKS,
    "a sign": START + b"Content-Length: +27\r\n\r\n" + BODY,
    "unknown coding": START + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "coding twice": START + CHUNKED + b"Transfer-Encoding: identity\r\n\r\n" + CHUNKS,
    "space before colon": START + LENGTH + b"Accept : x\r\n\r\n" + BODY,
    "a strange size": START + CHUNKED + b"\r\n0x1b\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a name with a newline": START + LENGTH + b"A\nB: x\r\n\r\n" + BODY,
    "no host": START.replace(b"Host: localhost\r\n", b"") + LENGTH + b"\r\n" + BODY,
}
STRICT = {  # the standard allows them
    "folded": START + LENGTH + b"Accept: x\r\n folded\r\n\r\n" + BODY,
    "version": START.replace(b"1.1", b"3.9") + LENGTH + b"\r\n" + BODY,
    "bare newlines": (START + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + BODY,
}


@pytest.mark.parametrize("name", [*DOUBTFUL, *STRICT])
def test_a_request_with_two_readings_is_refused(model, name):
    with client_of(model, hosts=frozenset(["localhost"])) as client:
        said = talk(client.port, (DOUBTFUL | STRICT)[name])
        assert status_of(said) == 400
        assert said.count(b"HTTP/1.1") == 1
        for plain in (START + LENGTH + b"\r\n" + BODY, START + CHUNKED + b"\r\n" + CHUNKS):
            assert status_of(talk(client.port, plain)) == 200


def test_heads_and_what_stands_around_bodies_have_a_limit(model):
    with client_of(model) as client:
        long_head = START + b"X: " + b"x" * 20_000
        assert status_of(talk(client.port, long_head + b"\r\n\r\n")) == 431
        many = START + b"".join(b"X%d: y\r\n" % number for number in range(3000)) + b"\r\n"
        assert status_of(talk(client.port, many)) == 431
        for start in (long_head, START + CHUNKED + b"\r\n1;x=", START + CHUNKED + b"\r\n0\r\nX: "):
            said = talk(client.port, start, *[b"x" * 10_000] * 60, pause=0.01)
            assert said == b"" or status_of(said) in (400, 431)
        body = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"
        assert status_of(talk(client.port, START + CHUNKED + b"\r\n", body)) == 200
        file = b"user,item\n" + b"ann,item 1\nbob,item 2\n" * 45_000
        parts = (file[place : place + 500] for place in range(0, len(file), 500))
        assert client.post("/upload?refit=false", content=parts).status_code == 202


def test_who_does_not_read_an_answer_is_let_go(model, quick_looks, monkeypatch):
    monkeypatch.setattr(connections, "TAKE_SECONDS", 0.6)
    with client_of(model, 1) as client, contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.socket())
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((ME, client.port))
        deaf.settimeout(0.5)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                deaf.sendall(b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        wait_until(lambda: status_of(talk(client.port, MODEL)) == 200)  # there is room for one
        assert status_of(talk(client.port, MODEL)) == 200


def test_who_reads_an_answer_slowly_gets_all_of_it(model, quick_looks, monkeypatch):
    """Long after the service has closed its side; its transport has bytes left for 2 seconds."""
    monkeypatch.setattr(connections, "TAKE_SECONDS", 1.5)
    page = b"x" * 20_000_000
    monkeypatch.setattr("pseudomallows.web.models.summary.page", lambda model, write: page)
    asked = b"GET /report.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with client_of(model) as client, socket.create_connection((ME, client.port), 5) as slow:
        slow.sendall(asked)
        n_read, started = 0, time.monotonic()
        while part := slow.recv(200_000):
            n_read += len(part)
            time.sleep(0.05 if time.monotonic() - started < 2 else 0)
        assert n_read > len(page)


# All of it at once


class Hostile:
    """Clients that do their worst to a service until the end, and for ten answers at least."""

    def __init__(self, port, n_items, end):
        self.port, self.n_items, self.end = port, n_items, end
        self.n_asked = 0

    def is_over(self):
        """A busy machine may need longer to do any harm; but not for ever."""
        now = time.monotonic()
        return (now > self.end and self.n_asked > MIN_ASKED) or now > self.end + 60

    def ask(self, body, path="/recommend"):
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(ME, self.port, timeout=20)
            with contextlib.closing(connection):
                connection.request("POST", path, body)
                connection.getresponse().read()
        self.n_asked += 1

    def all_items(self, turn):
        clicks = [f"item {code}" for code in range(self.n_items)]
        self.ask(json.dumps({"clicks": clicks, "k": 1 + turn % 1000}))

    def many_ks(self, turn):
        n_clicks = turn * 7 % self.n_items
        clicks = [f"item {code}" for code in range(n_clicks)]
        self.ask(json.dumps({"clicks": clicks, "k": 1 + turn * 13 % 1000}))

    def nonsense(self, turn):
        bodies = [b"{", b"[" * 500_000, b'{"clicks":' * 50_000, b"\xff" * 1000, b'{"k": 1e999}']
        bodies.append(json.dumps({"clicks": [f"no {n}" for n in range(10_000)]}).encode())
        self.ask(bodies[turn % len(bodies)])

    def slow_heads(self, turn):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            hold(stack, self.port, 150, b"POST /recommend HT")
            time.sleep(0.2)

    def floods(self, turn):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for connection in hold(stack, self.port, 40, HEALTH * 40):
                connection.recv(1_000_000)

    def half_bodies(self, turn):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            hold(stack, self.port, 20, START + b"Content-Length: 900000\r\n\r\n{")
            time.sleep(0.2)

    def go_on(self, work):
        turn = 0
        while not self.is_over():
            work(turn)
            turn += 1


def check_health_under_attack(service, n_items, seconds, limit):
    """/healthz never takes longer than the limit, as another client sees it."""
    hostile = Hostile(service.port, n_items, time.monotonic() + seconds)
    works = [hostile.all_items, hostile.many_ks, hostile.nonsense, hostile.slow_heads]
    threads = [
        threading.Thread(target=hostile.go_on, args=(work,))
        for work in [*works, hostile.many_ks, hostile.half_bodies, hostile.floods]
    ]
    for thread in threads:
        thread.start()
    longest = 0.0
    while not hostile.is_over():
        started = time.monotonic()
        connection = http.client.HTTPConnection(ME, service.port, 60, source_address=(OTHER, 0))
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
        longest = max(longest, time.monotonic() - started)
        time.sleep(0.02)
    for thread in threads:
        thread.join(LONG_WAIT)
        assert not thread.is_alive()
    assert hostile.n_asked > MIN_ASKED
    assert longest < limit
    clicks = {"clicks": ["item 1"], "k": 3}
    assert service.ask("/recommend", clicks)[0] in (200, 503)
    assert "Traceback" not in service.log.read_text()


def test_a_short_attack_does_not_hold_up_the_health_check(model, tmp_path):
    """Other tests run beside this one, so the limit is for what hangs, not for what is slow."""
    with Process(model, tmp_path / "s.sqlite") as service:
        check_health_under_attack(service, 12, 1.5, limit=40.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pseudo", "mcmc", "personal"])
def test_a_long_attack_does_not_hold_up_the_health_check(tmp_path, method):
    """On a machine with nothing else to do."""
    make_model(tmp_path / "m.pm", method=method, n_users=300, n_items=300)
    with Process(tmp_path / "m.pm", tmp_path / "s.sqlite") as service:
        check_health_under_attack(service, 300, 20.0, limit=1.0)


# Requests before the answers


def test_pipelined_requests_of_one_client_stop_nobody(model):
    """Connections that ask again and again, and never read: few requests of each are read."""
    flood = memoryview(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50_000)
    with client_of(model, 1) as client, contextlib.ExitStack() as stack:
        deaf = hold(stack, client.port, 30)
        sent, deadline = [0] * len(deaf), time.monotonic() + 2
        for connection in deaf:
            connection.setblocking(False)
        while time.monotonic() < deadline or min(sent) < 50_000:
            for number, connection in enumerate(deaf):
                with contextlib.suppress(OSError):
                    sent[number] += connection.send(flood[sent[number] % 1000 :])
            asked = time.monotonic()
            assert status_of(talk(client.port, HEALTH, source=OTHER)) == 200
            assert time.monotonic() - asked < 15  # it was silent for 20 where all were read
        counts = client.app.service.metrics.counts
        assert counts["GET /", 200] <= len(deaf) * 500  # of 50,000 sent by each


def test_a_few_requests_at_once_are_all_answered(model):
    with client_of(model) as client:
        said = talk(client.port, HEALTH * 5, n_answers=5)
        assert said.count(b"HTTP/1.1 200") == 5
        said = talk(client.port, HEALTH * 1000, n_answers=1000)  # to the end
        assert said.count(b"HTTP/1.1 200") >= 10
        assert said.count(b"connection: close") == 1
        assert status_of(talk(client.port, HEALTH)) == 200


def test_trailers_are_no_headers(model):
    with client_of(model, token="a token of some length") as client:
        head = b"POST /users/ann/clicks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        token = b"Authorization: Bearer a token of some length\r\n"
        chunks = b'16\r\n{"clicks": ["item 1"]}\r\n0\r\n'
        start = head + b"Transfer-Encoding: chunked\r\n"
        assert status_of(talk(client.port, start + token + b"\r\n" + chunks + b"\r\n")) == 200
        assert status_of(talk(client.port, start + b"\r\n" + chunks + token + b"\r\n")) == 401
