"""The options of a run, for TensorBoard's table of runs."""

import json

import tensorflow as tf
from tensorboard.plugins.hparams import api

from kseq.one_line import escaped_line
from kseq.runs.run_directory import read_json


def write_hyperparameters(run):
    """Writes the config of a run to the default `tf.summary` writer.

    TensorBoard's HPARAMS tab then has a row for the run, under its name, with
    its options and the scores of the same writer.

    Args:
        run: `RunDirectory`; nothing is written if it has no config.
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
