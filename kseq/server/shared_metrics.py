"""Prometheus metrics of several processes at one port."""

import contextlib
import threading

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from kseq.files.atomic_write import partial_path


class SharedMetrics:
    """The metrics of all workers, each with its number as the label `worker`.

    Any of them may be asked. Each writes its own to a file, once a second and
    when it is asked, and reads the others from theirs, so that a counter never
    goes back from one answer to the next. Those of a worker that is not ready
    are left out.

    Args:
        metrics: `Metrics` of this process.
        worker: `kseq.commands.serve_workers.Worker`.
    """

    def __init__(self, metrics, worker):
        self._metrics = metrics
        self._worker = worker
        self._writing = threading.Lock()

    def write(self):
        """Writes the file of this worker, if the disk takes it."""
        part = partial_path(self._worker.file)
        with self._writing, contextlib.suppress(OSError):
            part.write_bytes(self._metrics.text())
            part.replace(self._worker.file)

    def text(self):
        """Prometheus' text format, bytes."""
        self.write()
        return prometheus_client.generate_latest(self)

    def collect(self):
        """The metrics of all workers, for `generate_latest`."""
        found = {}
        for path in sorted(self._worker.folder.glob("*.worker")):
            for metric in _metrics_of(path):
                samples = _of_worker(path.stem, metric.samples)
                metric.samples = []
                found.setdefault(metric.name, metric).samples += samples
        return found.values()


def _of_worker(number, samples):
    return [
        sample._replace(labels={**sample.labels, "worker": number})
        for sample in samples
    ]


def _metrics_of(path):
    with contextlib.suppress(OSError):  # the worker has just died
        return list(text_string_to_metric_families(path.read_text("utf-8")))
    return []
