"""Endpoints: all is said at the handler, and the guard, the routes and the description follow."""

import pytest
from starlette.responses import Response

from pseudomallows.web import handlers
from pseudomallows.web.app import all_endpoints
from pseudomallows.web.endpoints import Text, Whole, YesOrNo, endpoint, endpoints_in
from pseudomallows.web.errors import ServiceError
from webhelp import RIGHT, TOKEN, client_of


class Query:
    """A request with a query."""

    def __init__(self, **given):
        self.query_params = given


async def shout(service, request):
    """Say it loudly.

    What is said is kept.
    """
    service.shouted = request.path_params["word"].upper()
    return Response(service.shouted)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_an_endpoint_of_ones_own_that_writes_needs_the_token(model, monkeypatch, method):
    """Added as one would add it: a handler in the module of the handlers, and nothing else."""
    decorate = endpoint(method, "/shout/{word}", answers="text/plain", writes=True)
    monkeypatch.setattr(handlers, "shout", decorate(shout), raising=False)
    with client_of(model, token=TOKEN) as client:
        for headers in ({}, {"Authorization": "Bearer another token of some length"}):
            assert client.request(method, "/shout/hey", headers=headers).status_code == 401
        assert not hasattr(client.app.service, "shouted")
        answer = client.request(method, "/shout/hey", headers=RIGHT)
        assert (answer.status_code, answer.text) == (200, "HEY")
        assert client.app.service.shouted == "HEY"
        said = client.get("/openapi.json").json()["paths"]["/shout/{word}"][method.lower()]
        assert (said["operationId"], said["summary"]) == ("shout", "Say it loudly")
        assert "security" in said
        assert "401" in said["responses"]
        label = f'route="{method} /shout/{{word}}",status="401"'
        assert f"{{{label}}} 2" in client.get("/metrics").text


def test_an_endpoint_that_does_not_write_needs_no_token(model, monkeypatch):
    decorate = endpoint("POST", "/shout/{word}", answers="text/plain", writes=False)
    monkeypatch.setattr(handlers, "shout", decorate(shout), raising=False)
    with client_of(model, token=TOKEN) as client:
        assert client.post("/shout/hey").text == "HEY"
        assert (
            "security" not in client.get("/openapi.json").json()["paths"]["/shout/{word}"]["post"]
        )


def test_whether_it_writes_must_be_said_and_a_get_does_not():
    with pytest.raises(TypeError, match="writes"):
        endpoint("POST", "/shout", answers="text/plain")
    with pytest.raises(ValueError, match="GET /shout must not write"):
        endpoint("GET", "/shout", answers="text/plain", writes=True)(shout)


def test_one_address_that_is_no_get_writes_nothing():
    """Whoever adds another says so here."""
    found = {(e.method, e.path) for e in all_endpoints() if e.method != "GET" and not e.writes}
    assert found == {("POST", "/recommend")}


def test_every_endpoint_has_words_and_an_address_of_its_own():
    addresses = [(e.method, e.path) for e in all_endpoints()]
    assert len(set(addresses)) == len(addresses) > 20
    assert all(e.words for e in all_endpoints())
    names = [e.name for e in endpoints_in(handlers)]
    assert len(set(names)) == len(names)


def test_parameters_are_read_as_they_are_described():
    k = Whole("k", 10, 1, 1000)
    assert k.schema() == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10}
    assert [k.read(Query(**given)) for given in ({}, {"k": "1"}, {"k": "1000"})] == [10, 1, 1000]
    for wrong in ("0", "1001", "-1", "+1", "1.0", "", " 1", "\u0661", "0x1", "1" * 20):
        with pytest.raises(ServiceError, match="k must be a whole number from 1 to 1000"):
            k.read(Query(k=wrong))
    raw = YesOrNo("raw", False)
    assert [raw.read(Query(**g)) for g in ({}, {"raw": "true"}, {"raw": "false"})] == [
        False,
        True,
        False,
    ]
    with pytest.raises(ServiceError, match="raw must be true or false, got 'yes'"):
        raw.read(Query(raw="yes"))
    assert (Text("search").read(Query()), Text("search").read(Query(search="te"))) == ("", "te")
