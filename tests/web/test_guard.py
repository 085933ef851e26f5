"""Who may ask, how much, how often."""

import asyncio
import http.client
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import httpx
import pytest

from pseudomallows.web.app import all_endpoints
from pseudomallows.web.guard import LOOPBACK, RateLimit
from pseudomallows.web.jobs.refits import Refits
from pseudomallows.web.models.model import Model
from pseudomallows.web.run_service import hosts_of
from pseudomallows.web.service import Limits
from webhelp import (
    LONG_WAIT,
    RIGHT,
    TOKEN,
    client_of,
    clock_of_limits,
    make_app,
    pairs_in,
    recommend_bytes,
    talk,
    wait_until,
)

BODIES = {  # what the addresses ask for, so that nothing but the token is missing
    "ClicksRequest": b'{"clicks": ["item 1"]}',
    "RecommendRequest": b'{"clicks": ["item 1"]}',
    "text/csv": b"user,item\nzoe,item 2\nzoe,item 3\nbob,item 2\n",
}
ENDS = ["/", "//", "/.", "/..", "%0a", "%0d", "%00", "%09", "%20", "%7f", "%0d%0a", ";x", "%3bx"]
ENDS += ["?x=1", "%3fx", "%2f", "%2e", "%23", ".json", "%ff", "%c0%af", "%25%30%61", "%e2%80%a8"]


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
    for endpoint in all_endpoints():
        path, body = filled(endpoint, job)
        for method in {"POST", "DELETE", "PUT", "PATCH", endpoint.method} - {"GET"}:
            for raw in mangled(path):
                yield method, raw, body


def state_of(service):
    """All that a write can change."""
    jobs = {name: job.state for name, job in service.refits.jobs.items()}
    return sorted(pairs_in(service.store.blocking)), jobs, service.versions.numbers()


def is_question(method, raw):
    path = unquote(raw.partition("?")[0])
    return method == "POST" and path.endswith(("/recommend", "/recommend/batch"))


def check_refused(method, raw, status):
    """400 and 401, or nothing is there: so the handler was never reached."""
    if not is_question(method, raw):
        assert status in (400, 401, 404, 405), (method, raw, status)


@pytest.fixture
def long_jobs(monkeypatch):
    monkeypatch.setattr(Refits, "command", (sys.executable, "-c", "import time; time.sleep(60)"))


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
    (job,) = service.refits.jobs
    for endpoint in all_endpoints():
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


def test_only_the_right_token_will_do(model, monkeypatch):
    monkeypatch.setattr(Refits, "command", (sys.executable, "-c", ""))
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
            assert b"authorization must come only once" in said
        for name in (b"Host: localhost", b"Origin: http://localhost"):
            said = talk(client.port, recommend_bytes(head=(name + b"\r\n") * 2))
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
    assert b" 400 " in talk(client.port, recommend_bytes(host=b"evil.example")).splitlines()[0]


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
    said = talk(client.port, recommend_bytes()).lower()
    assert b"content-security-policy: default-src 'self'" in said


# Limits


def test_a_large_body_is_refused_before_it_is_read(model):
    limits = Limits(body=1000, upload=2000)
    with client_of(model, limits=limits) as client:
        for path, size in (
            ("/recommend", 1001),
            ("/recommend/batch", 1001),
            ("/upload", 2001),
            ("/users/x/clicks", 1001),
        ):
            assert client.post(path, content=b" " * size).status_code == 413
            parts = (b" " * 100 for _ in range(50))  # no length is given
            answer = client.post(path, content=parts)
            assert answer.status_code == 413
            assert "bytes" in answer.json()["error"]
        said = talk(client.port, recommend_bytes(b"", length=10**12))
        assert b" 413 " in said.splitlines()[0]
        assert client.post("/recommend", content=b" " * 1000).status_code == 400


def test_a_client_that_asks_too_often_is_told_to_wait(model, monkeypatch):
    clock_of_limits(monkeypatch)
    with client_of(model, limits=Limits(rate=2.0)) as client:
        answers = [client.get("/healthz") for _ in range(12)]
        statuses = [answer.status_code for answer in answers]
        assert statuses == [200] * 4 + [429] * 8
        assert answers[-1].headers["retry-after"] == "1"


def test_a_client_may_ask_again_later_and_few_clients_are_remembered(monkeypatch):
    now = clock_of_limits(monkeypatch)
    limit = RateLimit(10.0)
    assert [limit.take("a") for _ in range(21)] == [True] * 20 + [False]
    assert limit.take("b")
    now[0] += 0.11
    assert [limit.take("a") for _ in range(2)] == [True, False]
    for number in range(RateLimit.MAX_CLIENTS + 10):
        limit.take(str(number))
    assert limit.take("a")  # who had asked too often is forgotten


def test_a_slow_body_is_cut_off(model):
    with client_of(model, limits=Limits(seconds=0.3)) as client:
        said = talk(client.port, recommend_bytes(length=1000), pause=0.8)
        assert b" 408 " in said.splitlines()[0]


def test_a_network_of_ipv6_is_one_client(model, tmp_path, monkeypatch):
    """Straight to the app, as a machine with many addresses would ask."""
    clock_of_limits(monkeypatch)
    app = make_app(model, str(tmp_path / "s.sqlite"), limits=Limits(rate=2.0))

    async def ask(address):
        transport = httpx.ASGITransport(app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/healthz")).status_code

    async def ask_all(addresses):
        try:
            return [await ask(address) for address in addresses]
        finally:
            await app.service.stop()

    many = [f"2001:db8::{n}" for n in range(1, 9)]
    others = ["2001:db8:0:1::1", "::ffff:10.0.0.7", "::ffff:10.0.0.8"]
    statuses = asyncio.run(ask_all([*many, *others]))
    assert statuses == [200] * 4 + [429] * 4 + [200] * 3


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "127.0.0.1"])
def test_with_names_no_other_host_is_accepted(model, host):
    """DNS rebinding: a page whose name leads to this machine reads nothing, whatever the address
    that the service listens on."""
    hosts, names = hosts_of(host, ["shop.example"]), frozenset(["shop.example"])
    with client_of(model, hosts=hosts, names=names, token=TOKEN) as client:
        own = f"[{host}]" if ":" in host else host
        for good in ("shop.example", "Shop.Example:8000", own, f"{own}:8000"):
            assert client.get("/healthz", headers={"Host": good}).status_code == 200, good
        for bad in ("evil.example", "shop.example.evil.example", ""):
            headers = {"Host": bad, "Origin": f"http://{bad}"}
            for path in ("/users/user 1/recommendations", "/recommendations.csv"):
                answer = client.get(path, headers=headers)
                assert answer.status_code == 400, bad
                assert "--name" in answer.json()["error"]


# What a client may take from the others


def test_a_batch_costs_as_many_requests_as_it_has_users(model, monkeypatch):
    now = clock_of_limits(monkeypatch)
    users = [{"id": "x", "clicks": ["item 1"]}] * 30
    with client_of(model, limits=Limits(rate=10.0)) as client:
        assert client.post("/recommend/batch", json={"users": users}).status_code == 200
        for seconds, status in ((0.0, 429), (1.0, 429), (0.2, 200)):  # 10 were beyond the limit
            now[0] += seconds
            answer = client.post("/recommend/batch", json={"users": users})
            assert answer.status_code == status


def test_one_client_leaves_places_for_slow_answers_of_others(model, monkeypatch):
    """And what is kept needs no place."""
    answer, gate = Model.answer, threading.Event()

    def slow_answer(self, *asked):
        gate.wait(LONG_WAIT)
        return answer(self, *asked)

    with client_of(model, limits=Limits(waiting=4)) as client, ThreadPoolExecutor(8) as pool:
        for path in ("/model", "/clusters", "/consensus"):
            assert client.get(path).status_code == 200
        monkeypatch.setattr(Model, "answer", slow_answer)
        try:
            asks = [{"clicks": [], "k": 3, "exclude": [f"item {n}"]} for n in range(6)]
            sent = [pool.submit(client.post, "/recommend", json=each) for each in asks]
            wait_until(lambda: sum(each.done() for each in sent) == 4)
            assert {each.result().status_code for each in sent if each.done()} == {503}
            for path in ("/model", "/clusters", "/consensus"):
                assert client.get(path).status_code == 200
            said = pool.submit(
                talk, client.port, recommend_bytes(b'{"clicks":[],"k":4,"reasons":true}'),
                source="127.0.0.2",
            )  # fmt: skip
            time.sleep(0.3)
            assert not said.done()  # it waits for its turn
        finally:
            gate.set()
        assert said.result().startswith(b"HTTP/1.1 200")
        assert sum(each.result().status_code == 200 for each in sent) == 2
