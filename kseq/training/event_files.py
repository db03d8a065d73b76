"""The event files of a run, which TensorBoard reads."""

import json
import os

import tensorflow as tf
from tensorboard.plugins.hparams import api
from tensorflow.compat.v1 import Event, SessionLog

from kseq.runs.run_directory import read_json
from kseq.terminal import escaped_line

_PARTS = ("train", "validation")

_writers = {}  # of this process: path -> writer


def event_writer(run, part):
    """The event writer of a part of a run.

    All callbacks share it: of two event files that grow at the same time in
    one directory, TensorBoard reads the newer one alone. It stays open until
    `close_event_files`.

    Args:
        run: `RunDirectory`.
        part: "train" or "validation". TensorBoard shows a tag that both
            have in one chart.

    Returns:
        A `tf.summary.SummaryWriter`, to be flushed.
    """
    path = run.tensorboard / part
    if path not in _writers:
        _writers[path] = tf.summary.create_file_writer(os.fsencode(path))
    return _writers[path]


def start_event_files(run, step, repeats_validation=False):
    """Starts the event files of this process.

    If the run resumes, TensorBoard discards later steps in earlier files,
    because they are repeated.

    Args:
        run: `RunDirectory`.
        step: int, the last one that is not repeated.
        repeats_validation: bool, whether its validation is.
    """
    close_event_files(run)
    log = SessionLog(status=SessionLog.START)
    for part in _PARTS:
        is_repeated = repeats_validation and part == "validation"
        first = step if is_repeated else step + 1
        start = Event(step=first, session_log=log).SerializeToString()
        writer = event_writer(run, part)
        # tf.summary has no function for it.
        tf.raw_ops.ImportEvent(writer=writer._resource, event=start)
        writer.flush()


def close_event_files(run):
    """Closes the writers of a run; the next ones start new files."""
    for part in _PARTS:
        writer = _writers.pop(run.tensorboard / part, None)
        if writer is not None:
            writer.close()


def write_hyperparameters(run):
    """Writes the config of a run, if any, to the default `tf.summary` writer.

    TensorBoard's HPARAMS tab then has a row for the run, under its name, with
    its options and the scores of the same writer.
    """
    if not run.config.is_file():
        return
    values = {
        name: value if isinstance(value, bool | int | float) else _text(value)
        for name, value in read_json(run.config).items()
    }
    summary = api.hparams_pb(
        values, trial_id=escaped_line(run.path.resolve().name)
    )
    tf.summary.experimental.write_raw_pb(summary.SerializeToString(), step=0)


def _text(value):
    if isinstance(value, str):
        return escaped_line(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return json.dumps(value)
