"""The description of the service for machines (OpenAPI 3.1) and, as a page, for people."""

from http import HTTPStatus
from typing import Any

import msgspec

from .._version import __version__
from ..show.page import render
from .endpoints import Endpoint
from .types import MAX_NAME, ErrorAnswer

SOME = ["an item"]
EXAMPLES: dict[str, Any] = {  # of what is asked, by its type or media type
    "RecommendRequest": {"clicks": SOME, "k": 3, "reasons": True},
    "BatchRequest": {"users": [{"id": "somebody", "clicks": SOME, "k": 3}]},
    "ClicksRequest": {"clicks": SOME},
    "RefitRequest": {"clusters": None, "method": None},
    "text/csv": "user,item\nanna,tea\nben,tea",
}


def describe(endpoints: list[Endpoint]) -> dict[str, Any]:
    """The description, from the types."""
    types = [t for e in endpoints for t in (e.answers, e.asks) if isinstance(t, type)]
    every = list(dict.fromkeys([*types, ErrorAnswer]))
    refs, components = msgspec.json.schema_components(
        every, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(every, refs, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pseudomallows",
            "version": __version__,
            "description": "Recommendations with probabilities, from a saved model.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    """One address; `schemas[type]` says where the schema of a type is."""
    operation: dict[str, Any] = {
        "summary": endpoint.words,
        "operationId": endpoint.name,
        "parameters": _parameters(endpoint),
        "responses": {str(endpoint.status): _content(endpoint.answers, schemas, "the answer")},
    }
    errors = {400, 408, 413, 429, 431, 503}  # the guard may answer so to any request
    errors |= {*endpoint.errors, *((401,) if endpoint.writes else ())}
    errors |= {422} if (endpoint.query or endpoint.asks) is not None else set()
    for status in sorted(errors):
        operation["responses"][str(status)] = _content(
            ErrorAnswer, schemas, HTTPStatus(status).phrase
        )
    if endpoint.asks is not None:
        body = _content(endpoint.asks, schemas, "what is asked")
        operation["requestBody"] = {"required": True, "content": body["content"]}
        name = endpoint.asks if isinstance(endpoint.asks, str) else endpoint.asks.__name__
        ((_, content),) = body["content"].items()
        content["example"] = EXAMPLES[name]
    if endpoint.writes:
        operation["security"] = [{"token": []}, {}]
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """Those of the query, then that of the path."""
    rows = []
    if endpoint.query is not None:
        described = msgspec.json.schema(endpoint.query)["$defs"]
        fields = described[endpoint.query.__name__]["properties"]
        rows = [
            {"name": n, "in": "query", "required": False, "schema": s} for n, s in fields.items()
        ]
    if "{" in endpoint.path:
        name = endpoint.path.partition("{")[2].partition("}")[0]
        schema = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
        rows.append({"name": name, "in": "path", "required": True, "schema": schema})
    return rows


def _content(kind: Any, schemas: dict[Any, Any], words: str) -> dict[str, Any]:
    """A body: of a type, or of a media type."""
    if isinstance(kind, str):
        return {"description": words, "content": {kind: {"schema": {"type": "string"}}}}
    return {"description": words, "content": {"application/json": {"schema": schemas[kind]}}}


def as_page(description: dict[str, Any]) -> str:
    """The description as a page to read and, where scripts run, to try."""
    return render("addresses.html", **description)
