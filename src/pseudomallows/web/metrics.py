"""Counts and times of the requests, in the text format of Prometheus."""

import bisect
from collections import defaultdict

# Seconds, as Prometheus has them: 0.001, 0.0025, 0.005, 0.01, ..., 5.
EDGES = tuple(step * 10.0**power for power in range(-3, 1) for step in (1, 2.5, 5))


class Metrics:
    """What was asked, how it ended, how long it took."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = defaultdict(int)
        self.bins = [0] * (len(EDGES) + 1)
        self.seconds = 0.0

    def add(self, route: str, status: int, seconds: float) -> None:
        """One request."""
        self.counts[route, status] += 1
        self.bins[bisect.bisect_left(EDGES, seconds)] += 1
        self.seconds += seconds

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All of it; `gauges` are {name: (words, value)}."""
        lines = ["# HELP pseudomallows_requests_total Requests by route and status."]
        lines += ["# TYPE pseudomallows_requests_total counter"]
        for (route, status), count in sorted(self.counts.items()):
            labels = f'route="{route}",status="{status}"'
            lines.append(f"pseudomallows_requests_total{{{labels}}} {count}")
        lines += self._histogram()
        for name, (words, value) in gauges.items():
            lines += [f"# HELP pseudomallows_{name} {words}", f"# TYPE pseudomallows_{name} gauge"]
            lines.append(f"pseudomallows_{name} {value:g}")
        return "\n".join(lines) + "\n"

    def _histogram(self) -> list[str]:
        name, total = "pseudomallows_request_seconds", 0
        lines = [f"# HELP {name} Time to answer.", f"# TYPE {name} histogram"]
        for edge, count in zip((*map(str, EDGES), "+Inf"), self.bins, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{edge}"}} {total}')
        return [*lines, f"{name}_sum {self.seconds:.6f}", f"{name}_count {total}"]
