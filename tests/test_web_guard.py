"""Who may ask, how much, how often; and clients that behave badly."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import checks

import pseudomallows as pm
from pseudomallows import cli
from pseudomallows.web import lane
from pseudomallows.web.app import make_app
from pseudomallows.web.guard import LOOPBACK
from pseudomallows.web.jobs import Jobs
from pseudomallows.web.lane import read_head
from pseudomallows.web.serve import find_token
from pseudomallows.web.service import Buckets, Limits
from webhelp import Client, Process, make_model

TOKEN = "a token of some length"
WRITES = [("POST", "/users/x/clicks"), ("POST", "/refit"), ("POST", "/upload")]
WRITES += [("DELETE", "/jobs/x"), ("POST", "/users/a/b/clicks")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("guard") / "m.pm"
    make_model(path, method="pseudo", n_clusters=2)
    return path


@contextlib.contextmanager
def client_of(model, **more):
    store = model.parent / f"{time.monotonic_ns()}.sqlite"
    with Client(make_app(model, str(store), **more)) as client:
        yield client


@pytest.fixture(scope="module")
def client(model):
    with client_of(model, hosts=LOOPBACK) as client:
        yield client


def talk(port, *parts, pause=0.0, seconds=5.0):
    """All that a server says to some bytes, in pieces, until it falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        said = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            while part := connection.recv(65536):
                said += part
                connection.settimeout(0.3)
        return said


def ask(body=b'{"clicks":["item 1"],"k":2}', head=b"", host=b"localhost", length=None):
    length = len(body) if length is None else length
    return (b"POST /recommend HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s") % (
        host,
        length,
        head,
        body,
    )


# Tokens, hosts, origins


def test_writing_needs_the_token_and_reading_does_not(model, monkeypatch):
    monkeypatch.setattr(Jobs, "command", (sys.executable, "-c", ""))
    with client_of(model, token=TOKEN) as client:
        for method, path in WRITES:
            for given_token in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "ü"):
                headers = {} if given_token is None else {"Authorization": given_token.encode()}
                answer = client.request(method, path, headers=headers)
                assert answer.status_code == 401, (path, given_token)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in answer.text
        right = {"Authorization": f"Bearer {TOKEN}"}
        clicks = {"clicks": ["item 1"]}
        assert client.post("/users/x/clicks", json=clicks, headers=right).status_code == 200
        assert client.post("/refit", headers=right).status_code == 202
        assert client.post("/recommend", json=clicks).status_code == 200
        assert client.get("/model").json()["has_token"] is True


def test_another_site_or_a_strange_host_is_refused(client):
    body = {"clicks": ["item 1"]}
    answer = client.post("/users/x/clicks", json=body, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    own = f"http://127.0.0.1:{client.port}"
    assert client.post("/recommend", json=body, headers={"Origin": own}).status_code == 200
    for path in ("/model", "/"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert answer.status_code == 400  # a name that was made to point here
    assert b" 400 " in talk(client.port, ask(host=b"evil.example")).splitlines()[0]


def test_a_name_behind_a_proxy_is_allowed(model):
    with client_of(model, hosts=LOOPBACK, names=frozenset(["shop.example"])) as client:
        site = {"Origin": "https://shop.example", "Host": "shop.example"}
        for headers in (site, {"Origin": "https://shop.example"}, {"Host": "shop.example:80"}):
            assert client.get("/healthz", headers=headers).status_code == 200
        assert client.get("/healthz", headers={"Origin": "http://localhost"}).status_code == 403
        assert client.get("/healthz", headers={"Origin": "null"}).status_code == 403
        assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 400


def test_every_answer_has_the_headers_and_no_page_has_a_script_inside(client):
    for path in ("/", "/docs", "/model", "/nothing", "/openapi.json"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
        assert not re.search(r"<script(?![^>]*\bsrc=)", answer.text)
    said = talk(client.port, ask()).lower()
    assert b"content-security-policy: default-src 'self'" in said


def test_a_public_address_needs_a_token(model, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("PSEUDOMALLOWS_TOKEN", raising=False)
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert cli.main(["serve", str(model), "--host", "0.0.0.0", *store]) == 1
    assert "a token is needed" in capsys.readouterr().err
    (tmp_path / "token").write_text("short")
    assert cli.main(["serve", str(model), "--token-file", str(tmp_path / "token"), *store]) == 1
    assert "16 or more" in capsys.readouterr().err
    assert cli.main(["serve", str(model), "--refit-every", "0", *store]) == 1
    assert cli.main(["serve", str(tmp_path / "none.pm"), *store]) == 1
    assert not (tmp_path / "s.sqlite").exists()


def test_where_the_token_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("PSEUDOMALLOWS_TOKEN", TOKEN)
    assert find_token(None) == TOKEN
    (tmp_path / "token").write_text(f"{TOKEN} 2\n")
    assert find_token(str(tmp_path / "token")) == f"{TOKEN} 2"
    monkeypatch.delenv("PSEUDOMALLOWS_TOKEN")
    assert find_token(None) is None


# Limits


def test_a_large_body_is_refused_before_it_is_read(model):
    limits = Limits(body=1000, upload=2000)
    with client_of(model, limits=limits) as client:
        for path, size in (("/recommend", 1001), ("/upload", 2001), ("/users/x/clicks", 1001)):
            assert client.post(path, content=b" " * size).status_code == 413
            parts = (b" " * 100 for _ in range(50))  # no length is given
            answer = client.post(path, content=parts)
            assert answer.status_code == 413
            assert "bytes" in answer.json()["error"]
        said = talk(client.port, ask(b"", length=10**12))
        assert b" 413 " in said.splitlines()[0]
        assert client.post("/recommend", content=b" " * 1000).status_code == 400


def test_a_client_that_asks_too_often_is_told_to_wait(model):
    with client_of(model, limits=Limits(rate=2.0)) as client:
        answers = [client.get("/healthz") for _ in range(12)]
        statuses = [answer.status_code for answer in answers]
        assert statuses[:4] == [200] * 4
        assert 429 in statuses
        assert answers[-1].headers["retry-after"] == "1"
        said = talk(client.port, ask())
        assert b" 429 " in said.splitlines()[0]  # the fast lane, too


def test_buckets_fill_again_and_their_number_is_limited(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    buckets = Buckets(10.0)
    assert [buckets.take("a") for _ in range(21)] == [True] * 20 + [False]
    assert buckets.take("b")
    now[0] += 0.11
    assert [buckets.take("a") for _ in range(2)] == [True, False]
    for number in range(Buckets.MAX_CLIENTS + 10):
        buckets.take(str(number))
    assert len(buckets._clients) == Buckets.MAX_CLIENTS


def test_a_slow_body_is_cut_off(model):
    with client_of(model, limits=Limits(seconds=0.3)) as client:
        said = talk(client.port, ask(length=1000), pause=0.8)
        assert b" 408 " in said.splitlines()[0]


def test_slow_clients_do_not_stop_others_and_are_let_go(model, monkeypatch):
    """Headers byte by byte, from many connections."""
    monkeypatch.setattr(lane, "WAIT_SECONDS", 0.6)
    monkeypatch.setattr(lane, "LOOK_SECONDS", 0.1)
    with client_of(model) as client, contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=5))
            for _ in range(50)
        ]
        started, dropped = time.monotonic(), 0
        for byte in b"POST /recommend HTTP/1.1\r\nHost:":
            for connection in list(slow):
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    slow.remove(connection)
                    dropped += 1
            asked = time.monotonic()
            assert client.post("/recommend", json={"clicks": []}).status_code == 200
            assert time.monotonic() - asked < 2
            time.sleep(0.05)
        assert dropped == 50
        assert time.monotonic() - started < 20
        assert client.get("/healthz").status_code == 200


# The fast lane


def both_ways(port, *requests):
    """The answers to the same bytes by the fast lane and by the parser of the server."""
    whole = talk(port, *requests)
    halves = talk(port, *(part for r in requests for part in (r[:7], r[7:])), pause=0.05)
    return [re.sub(rb"(?i)date: [^\r]*\r\n", b"", said) for said in (whole, halves)]


def headers_of(said):
    head = said.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
    return head[0], sorted(head[1:])


@pytest.mark.parametrize(
    "request_",
    [
        ask(),
        ask(head=b"Content-Type: application/json\r\nAccept: */*\r\nConnection: keep-alive\r\n"),
        ask(head=b"Connection: close\r\n"),
        ask(head=b"X-Strange: yes\r\n"),
        ask(head=b"Expect: 100-continue\r\n"),
        ask(head=b"Content-Length: 5\r\n"),
        ask(b'{"clicks":[]}\r\n', head=b"Transfer-Encoding: chunked\r\n"),
        ask(head=b"Accept : x\r\n"),
        ask(head=b"Accept: x\r\n folded\r\n"),
        ask(head=b"Accept: \xff\r\n"),
        ask(length=5),
        ask(b'{"clicks":["gold"]}'),
        ask(b"{"),
        ask(b'{"clicks":["item 1"],"k":1001}'),
        ask() + ask(),
        ask() + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ask().replace(b"\r\n", b"\n"),
        ask(host=b"localhost\r\nHost: localhost"),
    ],
    ids=lambda r: repr(r[25:80]),
)
def test_the_fast_lane_answers_as_the_parser_does(client, request_):
    fast, slow = both_ways(client.port, request_)
    assert fast.startswith(b"HTTP/1.1 ")
    assert headers_of(fast) == headers_of(slow)
    assert fast.partition(b"\r\n\r\n")[2].lower() == slow.partition(b"\r\n\r\n")[2].lower() or (
        fast.count(b"HTTP/1.1 200") == slow.count(b"HTTP/1.1 200") == 2
    )


def test_the_fast_lane_is_taken(client, monkeypatch):
    """And given up in the middle of nothing: lane, parser and lane again on one connection."""
    taken = []
    whole = lane._Lane._answer
    monkeypatch.setattr(
        lane._Lane, "_answer", lambda self, data: taken.append(whole(self, data)) or taken[-1]
    )
    said = talk(client.port, ask(), ask(head=b"X-Strange: yes\r\n"), ask(), pause=0.2)
    bodies = re.findall(rb'\{"recommendations.*?\]\}(?=HTTP|$)', said)
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
    assert [answer is None for answer in taken] == [False, True, False]


@given(st.binary(max_size=60))
def test_only_plain_heads_are_read(junk):
    found = read_head(b"Host: localhost\r\nContent-Length: 5\r\n" + junk)
    if found is not None:
        assert found == ("localhost", 5)
        assert re.fullmatch(rb"[a-zA-Z-]+: ?[\x20-\x7e]+(\r\n[a-zA-Z-]+: ?[\x20-\x7e]+)*", junk)
        assert b"transfer-encoding" not in junk.lower()


@pytest.mark.parametrize(
    "junk", [b"\x00" * 50, b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01", b"A" * 40_000]
)
def test_junk_is_refused_and_the_service_goes_on(client, junk):
    said = talk(client.port, junk)
    assert said == b"" or b" 400 " in said.splitlines()[0]
    assert client.get("/healthz").status_code == 200


# The description


def test_the_service_keeps_to_its_description(model, monkeypatch):
    """Schemathesis makes requests from the description, right ones and wrong ones."""
    monkeypatch.setattr(Jobs, "command", (sys.executable, "-c", ""))
    with client_of(model) as client:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{client.port}/openapi.json")
        wanted = [
            checks.not_a_server_error,
            schemathesis.specs.openapi.checks.status_code_conformance,
            schemathesis.specs.openapi.checks.content_type_conformance,
            schemathesis.specs.openapi.checks.response_schema_conformance,
        ]
        n_asked = 0
        for result in schema.get_all_operations():
            operation = result.ok()

            @settings(
                max_examples=15,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def run(case):
                nonlocal n_asked
                n_asked += 1
                case.call_and_validate(checks=wanted)

            run()
        assert n_asked > 100


# As a process


def test_ctrl_c_is_a_clean_end(model, tmp_path):
    with Process(model, tmp_path / "s.sqlite", env={"PSEUDOMALLOWS_TOKEN": TOKEN}) as service:
        assert service.ask("/refit", {})[0] == 401
        status, _ = service.ask(
            "/users/a/clicks", {"clicks": ["item 1"]}, headers={"Authorization": f"Bearer {TOKEN}"}
        )
        assert status == 200
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(timeout=20) == 130
        assert "Traceback" not in service.log.read_text()
        assert TOKEN not in service.log.read_text()
        assert "MB made" in service.log.read_text()
    assert os.path.exists(tmp_path / "s.sqlite")


def test_a_port_in_use_is_one_clear_line(client, model, tmp_path):
    words = ["serve", str(model), "--port", str(client.port), "--store", str(tmp_path / "s")]
    done = subprocess.run(
        [sys.executable, "-m", "pseudomallows", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert f"port {client.port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_service_without_web_libraries_says_what_to_install(model, tmp_path):
    text = (
        "import sys; sys.modules['uvicorn'] = None; from pseudomallows.cli import main; "
        f"sys.exit(main(['serve', {str(model)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'pseudomallows[web]'" in done.stderr


def test_the_answers_of_a_process_are_those_of_the_library(model, tmp_path):
    posterior = pm.load(model)
    with Process(model, tmp_path / "s.sqlite", "--rate", "1000") as service:
        said = talk(service.port, ask(b'{"clicks":["item 1","item 4"],"k":5}'))
        answer = json.loads(said.partition(b"\r\n\r\n")[2])
        expected = pm.recommend(posterior, 5, clicks={"x": ["item 1", "item 4"]}).to_rows()
        assert [(r["item"], repr(r["probability"])) for r in answer["recommendations"]] == [
            (r["item"], repr(r["probability"])) for r in expected
        ]
