"""Counts and times of the requests."""

from pseudomallows.web.metrics import Metrics


def test_the_text_has_counts_a_histogram_and_gauges():
    metrics = Metrics()
    for seconds in (0.0005, 0.03, 0.03, 99.0):
        metrics.add("GET /x", 200, seconds)
    metrics.add("GET /x", 404, 0.0005)
    lines = metrics.text({"size": ("How large.", 2.5)}).splitlines()
    for line in (
        'pseudomallows_requests_total{route="GET /x",status="200"} 4',
        'pseudomallows_requests_total{route="GET /x",status="404"} 1',
        'pseudomallows_request_seconds_bucket{le="0.001"} 2',
        'pseudomallows_request_seconds_bucket{le="0.05"} 4',
        'pseudomallows_request_seconds_bucket{le="5.0"} 4',
        'pseudomallows_request_seconds_bucket{le="+Inf"} 5',
        "pseudomallows_request_seconds_count 5",
        "# TYPE pseudomallows_size gauge",
        "pseudomallows_size 2.5",
    ):
        assert line in lines
