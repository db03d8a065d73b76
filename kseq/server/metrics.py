"""Prometheus metrics of a server."""

import threading

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_REQUESTS = (1, 2, 4, 8, 16, 32)
_VERSIONS = 4  # of a model whose requests are counted; older ones are dropped


class Metrics:
    """Counts requests, and reads versions and the queue when it is scraped.

    Requests are counted for each version of a model. The counters of all but
    the last four versions that answered are dropped, so that their number is
    bounded.

    Args:
        store: `ModelStore`.

    Attributes:
        observe_call: callable of the number of requests that a call answers.
        observe_wait: callable of the seconds that a request has waited.
    """

    def __init__(self, store):
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        labels = ("model", "version", "api", "status")
        self._counted = {}  # model -> dict, version -> labels of its requests
        self._counting = threading.Lock()
        self._requests = self._add(
            Counter,
            "kseq_requests",
            "Requests by model, version and status",
            labels,
        )
        self._seconds = self._add(
            Histogram,
            "kseq_request_seconds",
            "Seconds from a request to its answer",
            labels[:3],
            buckets=_SECONDS,
        )
        self.observe_call = self._add(
            Histogram,
            "kseq_batch_requests",
            "Requests that a call of the model answered",
            buckets=_REQUESTS,
        ).observe
        self.observe_wait = self._add(
            Histogram,
            "kseq_queue_seconds",
            "Seconds that a request waits for its call",
            buckets=_SECONDS,
        ).observe
        self._refused = self._add(
            Gauge,
            "kseq_refused_bytes",
            "Bytes of requests for which there was no memory, since the start",
        )
        self._waiting = self._add(
            Gauge, "kseq_waiting_requests", "Requests in the queue"
        )
        versions = self._add(
            Gauge,
            "kseq_model_version",
            "The newest version that is served, 0 for none",
            labels[:1],
        )
        for name in store.folders:
            versions.labels(name).set_function(
                lambda n=name: _version(store, n)
            )

    def watch(self, batcher, memory):
        """Adds the metrics of a `Batcher` and a `BodyMemory`."""
        self._waiting.set_function(lambda: batcher.waiting)
        self._refused.set_function(lambda: memory.refused)

    def observe(self, record):
        """Counts a request, a dict as in the access log."""
        version = record.get("version")  # None for a status, or an error
        model = record["model"], "" if version is None else f"{version}"
        api = "gRPC" if record["method"] == "gRPC" else "REST"
        labels = *model, api, str(record["status"])
        with self._counting:
            self._forget_older(*model, labels)
            self._requests.labels(*labels).inc()
            self._seconds.labels(*model, api).observe(record["seconds"])

    def _forget_older(self, model, version, labels):
        if not version:
            return
        counted = self._counted.setdefault(model, {})
        used = counted.pop(version, set()) | {labels}
        counted[version] = used  # the last one
        if len(counted) > _VERSIONS:
            oldest = next(iter(counted))
            gone = counted.pop(oldest)
            for each in gone:
                self._requests.remove(*each)
            for api in {api for *_, api, _ in gone}:
                self._seconds.remove(model, oldest, api)

    def text(self):
        """Prometheus' text format, bytes."""
        return prometheus_client.generate_latest(self._registry)

    def _add(self, kind, name, help, labels=(), **options):
        return kind(name, help, labels, registry=self._registry, **options)


def _version(store, name):
    newest = store.newest(name)
    return newest.version if newest else 0
