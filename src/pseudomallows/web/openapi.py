"""The description of the service for machines (OpenAPI 3.1) and, as a page, for people."""

import html
import json
import re
from typing import Any

import msgspec

from .._version import __version__
from .endpoints import Endpoint
from .types import MAX_NAME, ErrorAnswer

ERRORS = {
    400: "not understood",
    401: "no token, or a wrong one",
    404: "not there",
    408: "too slow",
    409: "not now",
    413: "too large",
    422: "understood, but wrong",
    429: "too often",
    431: "the head is too large",
    503: "not for the moment",
    507: "the disk is full",
}
CODE = re.compile("`{1,2}([^`]+)`{1,2}")  # in a docstring
SOME = ["an item"]
EXAMPLES: dict[str, Any] = {  # of what is asked, by its type or media type
    "RecommendRequest": {"clicks": SOME, "k": 3, "reasons": True},
    "BatchRequest": {"users": [{"id": "somebody", "clicks": SOME, "k": 3}]},
    "ClicksRequest": {"clicks": SOME},
    "RefitRequest": {"clusters": None, "method": None},
    "text/csv": "user,item\nanna,tea\nben,tea",
}
ALWAYS = (400, 408, 413, 429, 431, 503)  # the guard may answer so to any request


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
    errors = {*ALWAYS, *endpoint.errors, *((401,) if endpoint.writes else ())}
    errors |= {422} if endpoint.query or endpoint.asks is not None else set()
    for status in sorted(errors):
        operation["responses"][str(status)] = _content(ErrorAnswer, schemas, ERRORS[status])
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
    rows = [
        {"name": one.name, "in": "query", "required": False, "schema": one.schema()}
        for one in endpoint.query
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
    version = html.escape(__version__)
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        "<title>pseudomallows: addresses</title>",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="static/icon.svg" type="image/svg+xml">',
        '<link rel="stylesheet" href="static/style.css">',
        '<script type="module" src="static/docs.js"></script></head>',
        f'<body><main class="inside docs"><h1>pseudomallows {version}: all addresses</h1>',
        '<p class="lead">Read what each address takes and answers, and try it here. '
        'For machines: <a href="openapi.json">openapi.json</a>. '
        '<a href="./">Back to the page of the model</a>.</p>',
        "<form hidden>",
        '<label class="label" for="token">Token</label>',
        '<input id="token" type="password" autocomplete="off" spellcheck="false">',
        '<p class="soft small">Only for addresses that write, if the service has one.</p></form>',
    ]
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parts += _section(path, method.upper(), operation)
    parts.append("<h2>Types</h2><dl>")
    for name, schema in description["components"]["schemas"].items():
        rows = ", ".join(map(html.escape, schema.get("properties", {})))
        words = CODE.sub(r"<code>\1</code>", html.escape(schema.get("description", "")))
        parts.append(f"<dt><b>{html.escape(name)}</b></dt><dd>{words} <code>{rows}</code></dd>")
    return "\n".join([*parts, "</dl></main></body></html>"])


def _section(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    """One address, folded: what it takes and answers, and a form to send a request."""
    address, summary = html.escape(f"{method} {path}"), html.escape(operation["summary"])
    head = f'<details class="card"><summary><code>{address}</code> {summary}</summary>'
    return [head, *_page_rows(operation), *_form(path, method, operation), "</details>"]


def _page_rows(operation: dict[str, Any]) -> list[str]:
    """What an address takes and answers, and whether it needs the token."""
    rows = []
    if "requestBody" in operation:
        rows.append(f"<p>Takes {_media(operation['requestBody'])}</p>")
    rows += [
        f"<p>Answers {status}: {_media(answer)}</p>"
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    ]
    if "security" in operation:
        rows.append("<p>Needs the token, if the service has one.</p>")
    return rows


def _form(path: str, method: str, operation: dict[str, Any]) -> list[str]:
    """A form to send a request; hidden where no script could send it."""
    name, media, body = operation["operationId"], "", []
    if "requestBody" in operation:
        ((media, content),) = operation["requestBody"]["content"].items()
        example = content["example"]
        text = example if isinstance(example, str) else json.dumps(example, indent=2)
        body = [
            f'<label class="label" for="{name}-body">Body</label>',
            f'<textarea id="{name}-body" name="body" rows="{text.count(chr(10)) + 1}" '
            f'spellcheck="false">{html.escape(text)}</textarea>',
        ]
    writes = ' data-writes="true"' if "security" in operation else ""
    head = f'<form hidden data-method="{method}" data-path="{html.escape(path)}"'
    return [
        f'{head} data-media="{html.escape(media)}"{writes}>',
        *(_field(name, row) for row in operation["parameters"]),
        *body,
        f'<p class="actions"><button type="submit">Send {method}</button></p>',
        "<output></output></form>",
    ]


def _field(operation: str, row: dict[str, Any]) -> str:
    """The label and box of a parameter; what a query leaves empty is not sent."""
    name, place, schema = html.escape(row["name"]), row["in"], row["schema"]
    needed = " required" if row["required"] else ""
    default = json.dumps(schema["default"]) if "default" in schema else ""
    return (
        f'<label class="label" for="{operation}-{name}">{name}</label>'
        f'<input id="{operation}-{name}" name="{name}" data-in="{place}" type="text" '
        f'autocomplete="off" spellcheck="false" placeholder="{html.escape(default)}"{needed}>'
    )


def _media(part: dict[str, Any]) -> str:
    """Media type and type of a body."""
    ((media, content),) = part["content"].items()
    name = content["schema"].get("$ref", "").rpartition("/")[2]
    return f"<code>{html.escape(media)} {html.escape(name)}</code>"
