"""The app: addresses besides those of the handlers."""


def test_health_metrics_page_and_description(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    text = client.get("/metrics").text
    assert 'pseudomallows_requests_total{route="GET /healthz",status="200"}' in text
    assert "pseudomallows_stored_clicks" in text
    assert "<h1>" in client.get("/docs").text
    assert "<" in client.get("/").text
    description = client.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    assert "post" in description["paths"]["/recommend"]
    assert "RecommendRequest" in description["components"]["schemas"]
