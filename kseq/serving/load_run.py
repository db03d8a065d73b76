"""Runs, opened with their model code."""

import keras

import kseq.models  # noqa: F401, registers the classes that model.json names
from kseq.data import Tokenizer
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import (
    checkpoint_paths,
    numbered,
    read_newest,
)
from kseq.serving.classifier import Classifier
from kseq.serving.generator import Generator
from kseq.serving.object_config import (
    preprocessor_from_config,
    search_from_config,
)


def load_run(run, *, weights=None, search=None):
    """Makes what a run serves.

    Args:
        run: `RunDirectory`, or its path.
        weights: "average", "best" or "last"; the first of these that there
            is if None.
        search: how answers are found; that of the run if None.

    Returns:
        A `Generator` or a `Classifier`.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    run = _run(run)
    served = _served(run, weights, search)
    if run.readme.is_file():
        served.model_card = run.readme.read_text("utf-8", "replace")
    return served


def _served(run, weights, search):
    task = _task(run)
    if "labels" in task and search is not None:
        raise RunError(
            f"{run.path} answers with labels; a search is for models that "
            "answer with a text."
        )
    tokenizer = Tokenizer.load(run.tokenizer("source"))
    preprocessor = preprocessor_from_config(task.get("preprocessor"), tokenizer)
    model = load_model(run, weights=weights)
    if "labels" in task:
        try:
            return Classifier(model, preprocessor, task["labels"])
        except ValueError as error:
            raise RunError(f"{run.task} does not fit: {error}") from error
    return Generator(
        model,
        preprocessor,
        Tokenizer.load(run.tokenizer("target")),
        search or search_of_run(run),
        max_length=task["max_length"],
    )


def search_of_run(run):
    """The search that a run was saved with; None where it has none.

    Args:
        run: `RunDirectory`, or its path.
    """
    config = _task(_run(run)).get("search")
    return config and search_from_config(config)


def load_model(run, *, weights=None, dtype="float32"):
    """Makes the model of a run, with its weights.

    Args:
        run: `RunDirectory`, or its path.
        weights: "average", "best" or "last"; the first of these that there
            is if None.
        dtype: dtype policy, whatever the model was trained in.

    Returns:
        The `keras.Model`, not compiled.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    run = _run(run)
    if not run.model.is_file():
        raise RunError(f"{run.path} is not a run with a model.")
    weights = weights or _best_weights(run)
    newest = read_newest(run.checkpoints / weights)
    if newest is None:
        raise RunError(f"{run.path} has no whole checkpoint {weights!r}.")

    description = run.read_model()
    description.pop("compile_config", None)
    if "dtype" in description["config"]:
        description["config"]["dtype"] = dtype
    model = keras.saving.deserialize_keras_object(description, safe_mode=True)

    values = numbered(newest[1], "vars")
    for variable, value in zip(model.variables, values, strict=True):
        variable.assign(value)
    return model


def _task(run):
    """What `task.json` says; RunError unless it says what the run answers."""
    task = run.read_task()
    if isinstance(task, dict):
        labels, longest = task.get("labels"), task.get("max_length")
        if isinstance(labels, list) or (type(longest) is int and longest > 1):
            return task
    raise RunError(f"{run.task} is broken: it has no labels or max_length.")


def _run(run):
    return run if isinstance(run, RunDirectory) else RunDirectory(run)


def _best_weights(run):
    for name in ("average", "best"):
        if checkpoint_paths(run.checkpoints / name):
            return name
    return "last"
