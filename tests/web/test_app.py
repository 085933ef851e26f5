"""The app: addresses besides those of the handlers."""

from webhelp import client_of


def test_health_metrics_page_and_description(model):
    with client_of(model) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        text = client.get("/metrics").text
        assert 'pseudomallows_requests_total{route="GET /healthz",status="200"}' in text
        assert "pseudomallows_stored_clicks" in text
        assert "<h1>" in client.get("/docs").text
        description = client.get("/openapi.json").json()
        assert description["openapi"] == "3.1.0"
        assert "post" in description["paths"]["/recommend"]
        assert "RecommendRequest" in description["components"]["schemas"]


def test_the_files_of_the_page_are_sent_once_and_nothing_else(model):
    with client_of(model) as client:
        for path, kind in (("/", "text/html"), ("/static/main.js", "text/javascript")):
            answer = client.get(path)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(kind)
            again = client.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        for name in ("none.js", "..%2Fapp.py", "%2e%2e%2fapp.py", ""):
            assert client.get(f"/static/{name}").status_code == 404
