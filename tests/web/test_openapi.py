"""The description, and that the service keeps to it."""

import sys

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from pseudomallows.web.app import all_endpoints
from pseudomallows.web.jobs.refits import Refits
from webhelp import client_of


def test_the_description_says_who_needs_the_token(client):
    paths = client.get("/openapi.json").json()["paths"]
    said = {(m.upper(), p) for p, found in paths.items() for m in found if "security" in found[m]}
    endpoints = all_endpoints()
    assert said == {(e.method, e.path) for e in endpoints if e.writes}
    assert ("POST", "/refit") in said


def test_the_service_keeps_to_its_description(model, monkeypatch):
    """Schemathesis makes requests from the description, right ones and wrong ones."""
    monkeypatch.setattr(Refits, "command", (sys.executable, "-c", ""))
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
