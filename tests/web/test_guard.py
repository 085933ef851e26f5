"""Who may ask, how much, how often; and clients that behave badly."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import unquote

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

import pseudomallows as pm
from pseudomallows.cli import parser as cli
from pseudomallows.web import connections
from pseudomallows.web.app import all_endpoints, make_app
from pseudomallows.web.guard import LOOPBACK
from pseudomallows.web.jobs import Jobs
from pseudomallows.web.openapi import Endpoint
from pseudomallows.web.run import find_token
from pseudomallows.web.service import Buckets, Limits
from webhelp import Client, Process, make_model, talk

TOKEN = "a token of some length"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
BODIES = {  # what the addresses ask for, so that nothing but the token is missing
    "ClicksRequest": b'{"clicks": ["item 1"]}',
    "RecommendRequest": b'{"clicks": ["item 1"]}',
    "text/csv": b"user,item\nzoe,item 2\nzoe,item 3\nbob,item 2\n",
}
ENDS = ["/", "//", "/.", "/..", "%0a", "%0d", "%00", "%09", "%20", "%7f", "%0d%0a", ";x", "%3bx"]
ENDS += ["?x=1", "%3fx", "%2f", "%2e", "%23", ".json", "%ff", "%c0%af", "%25%30%61", "%e2%80%a8"]


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


def ask(body=b'{"clicks":["item 1"],"k":2}', head=b"", host=b"localhost", length=None):
    length = len(body) if length is None else length
    return (b"POST /recommend HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n%s") % (
        host,
        length,
        head,
        body,
    )


# Tokens, hosts, origins


def mangled(path):
    """The path as it is, and as someone might write it to get past a check."""
    letters = "".join(f"%{ord(c):02x}" if c.isalpha() else c for c in path)
    first, rest = path[:1], path[1:]
    return [
        path,
        *(path + end for end in ENDS),
        *(start + path for start in ("/", "/.", "/x/..", "/%2e%2e", "/%0a", "http://localhost")),
        *(path.replace("/", slash) for slash in ("//", "/./", "/%2e/", "/%0a")),
        *(first + rest.replace("/", slash) for slash in ("%2f", "%5c", "%252f")),
        *(path.upper(), path.title(), letters, letters.upper(), path.replace("e", "%65", 1)),
    ]


def filled(endpoint, job):
    """The address, with names in the place of {user} and the like, and a body for it."""
    path = endpoint.path.replace("{user}", "ann").replace("{job}", job)
    kind = getattr(endpoint.asks, "__name__", endpoint.asks)
    return re.sub(r"\{.*?\}", "x", path), BODIES.get(kind, b"{}")


def hostile_requests(service, job):
    """Every method that may write, at every address there is, mangled in every way."""
    for endpoint in all_endpoints(service):
        path, body = filled(endpoint, job)
        for method in {"POST", "DELETE", "PUT", "PATCH", endpoint.method} - {"GET"}:
            for raw in mangled(path):
                yield method, raw, body


def state_of(service):
    """All that a write can change."""
    jobs = {name: job.state for name, job in service.jobs._jobs.items()}
    return sorted(service.keeper.store.all_clicks()), jobs, service.versions.numbers()


def is_question(method, raw):
    return method == "POST" and unquote(raw.partition("?")[0]).endswith("/recommend")


def check_refused(method, raw, status):
    """400 and 401, or nothing is there: so the handler was never reached."""
    if not is_question(method, raw):
        assert status in (400, 401, 404, 405), (method, raw, status)


@pytest.fixture
def long_jobs(monkeypatch):
    monkeypatch.setattr(Jobs, "command", (sys.executable, "-c", "import time; time.sleep(60)"))


def test_no_mangled_path_writes_without_the_token(model, long_jobs):
    """Over a socket."""
    with client_of(model, token=TOKEN) as client:
        service = client.app.service
        job = client.post("/refit", headers=RIGHT).json()["job"]
        before, n_asked = state_of(service), 0
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
        for method, raw, body in hostile_requests(service, job):
            connection.request(method, raw, body)
            answer = connection.getresponse()
            answer.read()
            check_refused(method, raw, answer.status)
            n_asked += 1
        connection.close()
        assert n_asked > 2000
        assert state_of(service) == before
        check_that_the_token_lets_in(client, service)


def check_that_the_token_lets_in(client, service):
    """The twin: with the token, each of the plain paths gets to its handler, and clicks, a file
    and the end of a job change what is there."""
    (job,) = service.jobs._jobs
    for endpoint in all_endpoints(service):
        if endpoint.writes:
            path, body = filled(endpoint, job)
            before = state_of(service)
            query = "?refit=false" if endpoint.takes_file else ""
            assert client.request(endpoint.method, path, content=body).status_code == 401
            assert state_of(service) == before
            answer = client.request(endpoint.method, path + query, content=body, headers=RIGHT)
            assert answer.status_code not in (400, 401, 405), path
            if endpoint.path in ("/users/{user}/clicks", "/upload", "/jobs/{job}"):
                assert answer.is_success
                assert state_of(service) != before, path


def test_no_mangled_path_gets_past_the_app_itself(model, long_jobs):
    """The same, straight to the app, which cannot rely on a server's parser."""
    app = make_app(model, str(model.parent / f"{time.monotonic_ns()}.sqlite"), token=TOKEN)

    async def ask(method, raw, body):
        path, _, query = raw.partition("?")
        scope = {"type": "http", "method": method, "path": unquote(path), "headers": []}
        scope |= {"raw_path": path.encode(), "query_string": query.encode(), "client": ("x", 1)}
        statuses = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            statuses.append(message.get("status"))

        await app(scope, receive, send)
        return statuses[0]

    async def ask_all():
        await app.service.start()
        try:
            job = (await app.service.refit(None, None)).name
            before = state_of(app.service)
            for method, raw, body in hostile_requests(app.service, job):
                check_refused(method, raw, await ask(method, raw, body))
            assert state_of(app.service) == before
        finally:
            await app.service.stop()

    asyncio.run(ask_all())


def test_a_new_address_that_is_no_get_needs_the_token():
    assert Endpoint("POST", "/new", None, "").writes
    assert Endpoint("DELETE", "/new", None, "").writes
    assert not Endpoint("GET", "/new", None, "").writes
    assert not Endpoint("POST", "/new", None, "", changes_nothing=True).writes


def test_the_description_says_who_needs_the_token(client):
    paths = client.get("/openapi.json").json()["paths"]
    said = {(m.upper(), p) for p, found in paths.items() for m in found if "security" in found[m]}
    endpoints = all_endpoints(client.app.service)
    assert said == {(e.method, e.path) for e in endpoints if e.writes}
    assert ("POST", "/refit") in said


def test_only_the_right_token_will_do(model, monkeypatch):
    monkeypatch.setattr(Jobs, "command", (sys.executable, "-c", ""))
    with client_of(model, token=TOKEN) as client:
        for path in ("/users/x/clicks", "/users/a/b/clicks", "/refit", "/upload"):
            for given_token in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "ü"):
                headers = {} if given_token is None else {"Authorization": given_token.encode()}
                answer = client.post(path, headers=headers)
                assert answer.status_code == 401, (path, given_token)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in answer.text
        clicks = {"clicks": ["item 1"]}
        assert client.post("/users/x/clicks", json=clicks, headers=RIGHT).status_code == 200
        assert client.post("/refit", headers=RIGHT).status_code == 202
        assert client.post("/recommend", json=clicks).status_code == 200
        assert client.get("/model").json()["has_token"] is True


def test_a_header_that_decides_must_come_once(model):
    with client_of(model, token=TOKEN) as client:
        right = b"Authorization: Bearer %s\r\n" % TOKEN.encode()
        for more in (right + right, b"Authorization: Bearer x\r\n" + right):
            head = b"POST /refit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n%s\r\n"
            said = talk(client.port, head % more)
            assert b" 400 " in said.splitlines()[0]
            assert b"authorization must come once" in said
        for name in (b"Host: localhost", b"Origin: http://localhost"):
            said = talk(client.port, ask(head=(name + b"\r\n") * 2))
            assert b" 400 " in said.splitlines()[0]
        assert state_of(client.app.service)[1] == {}


def test_another_site_or_a_strange_host_is_refused(client):
    body = {"clicks": ["item 1"]}
    answer = client.post("/users/x/clicks", json=body, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    own = f"http://127.0.0.1:{client.port}"
    assert client.post("/recommend", json=body, headers={"Origin": own}).status_code == 200
    for path in ("/model", "/"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert answer.status_code == 400  # a name that was made to point here
        assert client.get(path, headers={"Host": "LocalHost"}).status_code == 200
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
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.6)
    monkeypatch.setattr(connections, "LOOK_SECONDS", 0.1)
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
