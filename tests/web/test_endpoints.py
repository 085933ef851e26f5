"""Endpoints: all is said at the handler, and the guard, the routes and the description follow."""

import pytest
from starlette.responses import Response

from pseudomallows.web import handlers
from pseudomallows.web.app import all_endpoints
from pseudomallows.web.endpoints import endpoint, endpoints_in
from webhelp import RIGHT, TOKEN, client_of


async def shout(service, request, word):
    """Say it loudly.

    What is said is kept.
    """
    service.shouted = word.upper()
    return Response(service.shouted)


def test_the_guard_asks_for_the_token_of_an_endpoint_of_ones_own(model, monkeypatch):
    """Added as one would add it: a handler in the module of the handlers, and nothing else."""
    methods, path = ("POST", "PUT", "PATCH", "DELETE"), "/shout/{word}"
    for method in methods:
        added = endpoint(method, path, answers="text/plain", writes=True)(shout)
        monkeypatch.setattr(handlers, f"shout_{method}", added, raising=False)
    free = endpoint("POST", "/whisper/{word}", answers="text/plain", writes=False)(shout)
    monkeypatch.setattr(handlers, "whisper", free, raising=False)
    with client_of(model, token=TOKEN) as client:
        for method in methods:
            for headers in ({}, {"Authorization": "Bearer another token of some length"}):
                assert client.request(method, "/shout/hey", headers=headers).status_code == 401
        assert not hasattr(client.app.service, "shouted")
        for method in methods:
            answer = client.request(method, f"/shout/{method}", headers=RIGHT)
            assert (answer.status_code, answer.text) == (200, method)
            assert client.app.service.shouted == method
        assert client.post("/whisper/hey").text == "HEY"  # the twin: it does not write
        said = client.get("/openapi.json").json()["paths"]
        for method in methods:
            one = said[path][method.lower()]
            assert (one["operationId"], one["summary"]) == ("shout", "Say it loudly")
            assert "security" in one
            assert "401" in one["responses"]
            label = f'route="{method} {path}",status="401"'
            assert f"{{{label}}} 2" in client.get("/metrics").text
        assert "security" not in said["/whisper/{word}"]["post"]


def test_whether_it_writes_must_be_said_and_a_get_does_not():
    with pytest.raises(TypeError, match="writes"):
        endpoint("POST", "/shout", answers="text/plain")
    with pytest.raises(ValueError, match="GET /shout must not write"):
        endpoint("GET", "/shout", answers="text/plain", writes=True)(shout)


def test_two_addresses_that_are_no_get_write_nothing():
    """Whoever adds another says so here."""
    found = {(e.method, e.path) for e in all_endpoints() if e.method != "GET" and not e.writes}
    assert found == {("POST", "/recommend"), ("POST", "/recommend/batch")}


def test_every_endpoint_has_words_and_an_address_of_its_own():
    addresses = [(e.method, e.path) for e in all_endpoints()]
    assert len(set(addresses)) == len(addresses) > 20
    assert all(e.words for e in all_endpoints())
    names = [e.name for e in endpoints_in(handlers)]
    assert len(set(names)) == len(names)


def test_parameters_are_read_as_they_are_described(client):
    (k, *_) = client.get("/openapi.json").json()["paths"]["/recommendations.csv"]["get"][
        "parameters"
    ]
    assert (k["name"], k["in"]) == ("k", "query")
    assert k["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}
    items = client.get("/items").json()["items"]
    for limit in (1, 3):
        assert client.get("/items", params={"limit": limit}).json()["items"] == items[:limit]
    assert client.get("/items", params={"search": items[0]["item"]}).json()["items"] == items[:1]
    for wrong in ("0", "1001", "-1", "+1", "", " 1", "\u0661", "0x1", "1" * 20):
        answer = client.get("/items", params={"limit": wrong})
        assert answer.status_code == 422
        assert "Expected `int`" in answer.json()["error"]
        assert "$.limit" in answer.json()["error"]
    assert client.get("/recommendations.csv", params={"raw": "true"}).status_code == 200
    said = client.get("/recommendations.csv", params={"raw": "yes"}).json()["error"]
    assert said == "the query 'raw=yes': Expected `bool`, got `str` - at `$.raw`"
