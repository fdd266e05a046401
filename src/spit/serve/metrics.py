"""Counts and times for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The figures of one service; each has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("spit_requests_total", "Answers by route and status.", ["route", "method", "status"],
                                registry=self.registry)
        self.seconds = Histogram("spit_request_seconds", "Seconds from the first byte of a request to its answer.",
                                 ["route"], buckets=SECONDS, registry=self.registry)
        self.batches = Histogram("spit_batch_jobs", "Jobs in a pass.", buckets=(1, 2, 4, 8, 16, 32, 64),
                                 registry=self.registry)
        self.work = Counter("spit_work_seconds_total", "Seconds in which the worker was busy.", registry=self.registry)
        self.taken = Gauge("spit_requests_taken", "Requests that are being answered.", registry=self.registry)
        self.waiting = Gauge("spit_jobs_waiting", "Jobs that wait for the worker.", registry=self.registry)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer, by the route's pattern, which does not grow with what users ask."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def observe_batch(self, jobs: int, seconds: float) -> None:
        """Count a batch of the worker."""
        self.batches.observe(jobs)
        self.work.inc(seconds)

    def text(self) -> bytes:
        """The figures as Prometheus reads them."""
        return generate_latest(self.registry)
