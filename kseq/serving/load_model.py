"""The model of a run, made again."""

import keras

import kseq.models  # noqa: F401, registers the classes that model.json names
from kseq.runs.checkpoint_files import numbered, read_newest
from kseq.runs.run_directory import RunDirectory, RunError, read_json


def load_model(run, dtype="float32", weights="best"):
    """Makes the model of a run again, with its weights.

    Args:
        run: `RunDirectory`, or its path.
        dtype: dtype policy, whatever the model was trained in.
        weights: "best", "last" or "average".

    Returns:
        The `keras.Model`, not compiled.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    if not isinstance(run, RunDirectory):
        run = RunDirectory(run)
    if not run.exists() or not run.model.is_file():
        raise RunError(f"{run.path} is not a run with a model.")
    newest = read_newest(run.checkpoints / weights)
    if newest is None:
        raise RunError(f"{run.path} has no whole checkpoint {weights!r}.")

    description = read_json(run.model)
    description.pop("compile_config", None)
    if "dtype" in description["config"]:
        description["config"]["dtype"] = dtype
    model = keras.saving.deserialize_keras_object(description, safe_mode=True)

    values = numbered(newest[1], "vars")
    for variable, value in zip(model.variables, values, strict=True):
        variable.assign(value)
    return model
