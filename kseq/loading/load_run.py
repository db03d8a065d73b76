"""Runs, opened with their model code."""

import os
from typing import TYPE_CHECKING

import keras

import kseq.models  # noqa: F401, registers the classes that model.json names
from kseq.answers import types_of_task
from kseq.loading.described_model import described_model
from kseq.loading.opened_run import OpenedRun, task_path
from kseq.runs import RunDirectory, RunError, best_weights
from kseq.runs.checkpoint_files import (
    WEIGHTS,
    assign,
    read_weights,
    step_of,
)
from kseq.runs.model_card import with_weights
from kseq.serving.object_config import search_from_config
from kseq.terminal import escaped_line, progress

if TYPE_CHECKING:
    from kseq.decoding import Search
    from kseq.serving.saved_model import Served


def load_run(
    run: RunDirectory | str | os.PathLike,
    *,
    weights: str | None = None,
    search: "Search | None" = None,
) -> "Served":
    """Opens what a run serves.

    Args:
        run: `RunDirectory`, or its path.
        weights: "average", "best" or "last", see `load_model`.
        search: how answers are found; that of the run if None.

    Returns:
        A `Generator`, `Classifier`, `Tagger`, `Retriever` or `Transducer`.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    run = _run(run)
    task = _task(run)
    source, answer = types_of_task(task)
    if answer.without_search and search is not None:
        raise RunError(
            f"{run.path} returns {answer.without_search}; a search is only for "
            "models that generate text."
        )
    weights = _weights(run, weights)
    opened = OpenedRun(
        run,
        task,
        source.has_tokenizer,
        load_model=lambda: _loaded(run, weights, "float32"),
        search=search or search_of_run(run),
    )
    served = answer.serve(opened)
    if run.readme.is_file():
        card = run.readme.read_text("utf-8", "replace")
        step = step_of(opened.checkpoint)
        served.model_card = with_weights(card, weights, step)
    return served


def search_of_run(
    run: RunDirectory | str | os.PathLike,
) -> "Search | None":
    """The search that a run was saved with; None where it has none.

    Args:
        run: `RunDirectory`, or its path.
    """
    run = _run(run)
    config = _task(run).get("search")
    return config and OpenedRun.made(task_path(run), search_from_config, config)


def load_model(
    run: RunDirectory | str | os.PathLike,
    *,
    weights: str | None = None,
    dtype: str | keras.DTypePolicy = "float32",
) -> keras.Model:
    """Makes the model of a run, with its weights.

    Args:
        run: `RunDirectory`, or its path.
        weights: "average", "best" or "last"; by default the first of these that
            exists. An average from which training has resumed, to a later
            `best`, is skipped, with a warning on standard error.
        dtype: dtype policy or its name, whatever the model was trained in.

    Returns:
        The `keras.Model`, not compiled.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    run = _run(run)
    model, _ = _loaded(run, _weights(run, weights), dtype)
    return model


def _weights(run, name):
    if name not in (None, *WEIGHTS):
        raise RunError(
            f'weights must be "average", "best" or "last". Received: '
            f"weights={name!r}"
        )
    return name or best_weights(run)


def _loaded(run, weights, dtype):
    """The model, and the path of its checkpoint."""
    if not run.model.is_file():
        raise RunError(f"{run.path} is not a run with a model.")
    with progress(f"Loading {escaped_line(run.path)}"):
        path, values = read_weights(run, weights)
        description = run.read_model()
        description.pop("compile_config", None)
        if "dtype" in description["config"]:
            description["config"]["dtype"] = dtype
        model = described_model(description, run.model, values)
        assign(path, model.variables, values)
    return model, path


def _task(run):
    """What `task.json` says; RunError unless it says what the run answers."""
    task = run.read_task()
    _, answer = types_of_task(task)
    if not answer.is_intact(task):
        raise RunError(
            f"{task_path(run)} is broken: it has no labels, tags or "
            "max_length, or a wrong training_length or length_ratio."
        )
    return task


def _run(run: RunDirectory | str | os.PathLike) -> RunDirectory:
    return run if isinstance(run, RunDirectory) else RunDirectory(run)
