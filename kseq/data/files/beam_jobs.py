"""Work in the workers of an Apache Beam pipeline."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kseq.data.files.data_error import DataError, ReadError
from kseq.user_error import UserError


def run_beam_jobs(
    function: Callable, jobs: Sequence, options: Sequence[str]
) -> Iterator[int]:
    """Calls a function with each job, wherever a runner of Beam calls it.

    Jobs and functions are those of `run_jobs`; the workers reach the paths in
    the jobs, for example on a disk that all mount.

    Args:
        function: of a module, whose argument can be pickled.
        jobs: arguments of the function. The error of one is written to
            its `part`, a path, with the end ".error".
        options: of the pipeline, for example `["--runner=FlinkRunner"]`; none
            for Beam's own runner in this process.

    Yields:
        The number of each job, when all are done.

    Raises:
        DataError: Beam is not installed; or that of the function.
        UserError: the pipeline fails.
    """
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError:
        raise DataError(
            "Preparing with Apache Beam needs the package apache-beam: pip "
            "install 'kseq[beam]'"
        ) from None
    for job in jobs:
        _error_of(job).unlink(missing_ok=True)
    try:
        with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
            _ = (
                pipeline
                | beam.Create(list(jobs))
                | beam.Reshuffle()  # or one worker could get all of them
                | beam.Map(_call, function)
            )
    except Exception as error:  # each runner has its own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(
            f"The Apache Beam pipeline has failed: {lines[-1]:.500}. What is "
            "finished is kept."
        ) from error
    for number, job in enumerate(jobs):
        if _error_of(job).is_file():
            raise DataError(_error_of(job).read_text("utf-8"))
        yield number


def _call(job, function):
    """Leaves the message of an error in a file: Beam would try again."""
    try:
        function(job)
    except ReadError:
        raise  # perhaps it can be read then
    except UserError as error:
        _error_of(job).write_text(str(error), "utf-8")


def _error_of(job):
    return Path(f"{job.part}.error")
