"""Runs, opened with their model code."""

import contextlib

import kseq.models  # noqa: F401, registers the classes that model.json names
from kseq.check_integers import check_integers
from kseq.data import Tokenizer
from kseq.loading.described_model import described_model
from kseq.one_line import escaped_line
from kseq.progress import progress
from kseq.runs import RunDirectory, RunError, best_weights
from kseq.runs.checkpoint_files import (
    assign,
    numbered,
    read_newest,
)
from kseq.serving.classifier import Classifier
from kseq.serving.generator import Generator
from kseq.serving.object_config import (
    input_name,
    preprocessor_from_config,
    search_from_config,
)
from kseq.serving.retriever import Retriever
from kseq.serving.tagger import Tagger
from kseq.serving.transducer import Transducer
from kseq.user_error import ArgumentError

# What is in the task of a model that needs no search: its answers, in words.
_KNOWN = {
    "labels": "labels",
    "tags": "tags",
    "answers": "texts that it knows",
    "vectors": "bits",
}
# What answers with classes, by their name in the task: what serves them, and
# what their model has.
_OF_CLASSES = {
    "labels": (Classifier, "explain"),
    "tags": (Tagger, "num_tags"),
}


def load_run(run, *, weights=None, search=None):
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
    served = _served(run, weights, search)
    if run.readme.is_file():
        served.model_card = run.readme.read_text("utf-8", "replace")
    return served


def _served(run, weights, search):
    task = _task(run)
    config = task.get("preprocessor")
    for name, known in _KNOWN.items():
        if (name in task or name == task.get("input")) and search is not None:
            raise RunError(
                f"{run.path} returns {known}; a search is only for models that "
                "generate text."
            )
    reads_text = input_name(config) in ("text", "prompt", "turns")
    tokenizers = [_tokenizer(run, "source")] if reads_text else []
    preprocessor = _made(
        run.task, preprocessor_from_config, config, *tokenizers
    )
    if input_name(config) == "vectors":
        model = load_model(run, weights=weights)
        _check_kind(run, model, "weightings")
        return _made(_task_path(run), Transducer, model, preprocessor)
    if getattr(preprocessor, "network", None) is not None:
        preprocessor.network.load(run.path / "network.npz")
    for name, (served, needed) in _OF_CLASSES.items():
        if name not in task:
            continue
        model = load_model(run, weights=weights)
        _check_kind(run, model, needed)
        for tokenizer in tokenizers:
            _check_vocabulary(run, model, "source", tokenizer, "vocab_size")
        return _made(_task_path(run), served, model, preprocessor, task[name])
    target = _tokenizer(run, "target")
    if "answers" in task:
        return _retriever(run, task, weights, preprocessor, target)
    search = search or search_of_run(run)
    model = load_model(run, weights=weights)
    _check_kind(run, model, "decode_step")
    for tokenizer in tokenizers:
        _check_vocabulary(run, model, "source", tokenizer, "source_vocab_size")
    _check_features(run, model, preprocessor)
    _check_vocabulary(run, model, "target", target, "target_vocab_size")
    return _made(
        run.path,
        Generator,
        model,
        preprocessor,
        target,
        search,
        max_length=task["max_length"],
        training_length=task.get("training_length", 0),
        stop=task.get("stop", ()),
    )


def _retriever(run, task, weights, preprocessor, target):
    answers = _answers(run, task["answers"])
    model = load_model(run, weights=weights)
    _check_kind(run, model, "encode_target")
    _check_features(run, model, preprocessor)
    source = preprocessor.tokenizer
    _check_vocabulary(run, model, "source", source, "source_vocab_size")
    is_one = model.target_vocab_size is None
    size = "source_vocab_size" if is_one else "target_vocab_size"
    _check_vocabulary(run, model, "target", target, size)
    retriever = _made(
        run.answers,
        Retriever,
        model,
        preprocessor,
        target,
        answers,
        max_length=task["max_length"],
    )
    _ = retriever.index  # now, and not while it answers
    return retriever


def _answers(run, count):
    """The lines of `answers.txt`; RunError unless it has `count`."""
    try:
        text = run.answers.read_bytes().decode("utf-8")
    except OSError as error:
        raise RunError(
            f"{run.answers} cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError as error:
        raise RunError(f"{run.answers} is broken: {error}") from None
    *answers, rest = text.split("\n")
    if rest or len(answers) != count:
        raise RunError(
            f"{run.answers} is broken: it has {len(answers)} lines, but "
            f"{run.task} says answers={count}."
        )
    return answers


def search_of_run(run):
    """The search that a run was saved with; None where it has none.

    Args:
        run: `RunDirectory`, or its path.
    """
    run = _run(run)
    config = _task(run).get("search")
    return config and _made(_task_path(run), search_from_config, config)


def load_model(run, *, weights=None, dtype="float32"):
    """Makes the model of a run, with its weights.

    Args:
        run: `RunDirectory`, or its path.
        weights: "average", "best" or "last"; by default the first of these that
            exists. An average from which training has resumed, to a later
            `best`, is skipped, with a warning on standard error.
        dtype: dtype policy, whatever the model was trained in.

    Returns:
        The `keras.Model`, not compiled.

    Raises:
        RunError: where there is no such run, or no such weights in it.
    """
    run = _run(run)
    if not run.model.is_file():
        raise RunError(f"{run.path} is not a run with a model.")
    weights = weights or best_weights(run)
    with progress(f"Loading {escaped_line(run.path)}"):
        return _with_weights(run, weights, dtype)


def _with_weights(run, weights, dtype):
    newest = read_newest(run.checkpoints / weights)
    if newest is None:
        raise RunError(f"{run.path} has no intact checkpoint {weights!r}.")

    path, tensors = newest
    values = numbered(tensors, "vars")
    description = run.read_model()
    description.pop("compile_config", None)
    if "dtype" in description["config"]:
        description["config"]["dtype"] = dtype
    model = described_model(description, run.model, values)
    assign(path, model.variables, values)
    return model


def _task(run):
    """What `task.json` says; RunError unless it says what the run answers."""
    task = run.read_task()
    if input_name(task.get("preprocessor")) == "vectors":
        return task
    if known := [name for name in _OF_CLASSES if name in task]:
        classes = task[known[0]]
        if isinstance(classes, list) and all(
            isinstance(name, str) for name in classes
        ):
            return task
    else:
        with contextlib.suppress(ArgumentError):
            check_integers(max_length=task.get("max_length"), minimum=2)
            trained = task.get("training_length", 0)
            check_integers(training_length=trained, minimum=0)
            return task
    raise RunError(
        f"{_task_path(run)} is broken: it has no labels, tags or max_length, "
        "or a wrong training_length."
    )


def _task_path(run):
    """For messages; version 0.1 had several files instead."""
    return run.task if run.task.is_file() else run.path


def _made(path, function, *arguments, **options):
    """Calls a function with what a file says; its errors name the file."""
    try:
        return function(*arguments, **options)
    except (ValueError, TypeError) as error:
        raise RunError(f"{path} does not fit: {error}") from error


def _tokenizer(run, name):
    path = run.tokenizer(name)
    if path.is_file() and not path.stat().st_size:
        raise RunError(f"{path} is empty.")
    return Tokenizer.load(path)


def _check_kind(run, model, attribute):
    if not hasattr(model, attribute):
        raise RunError(
            f"{_task_path(run)} does not fit {run.model}: "
            f"{type(model).__name__} has no {attribute}."
        )


def _check_vocabulary(run, model, name, tokenizer, attribute):
    size = getattr(model, attribute, tokenizer.vocab_size)
    if size != tokenizer.vocab_size:
        raise RunError(
            f"{run.tokenizer(name)} has {tokenizer.vocab_size} pieces, but "
            f"the model in {run.model} has {attribute}={size}: they do not "
            "belong together."
        )


def _check_features(run, model, preprocessor):
    expected = getattr(model, "source_dim", None)
    found = getattr(preprocessor, "num_features", None)
    if expected != found:
        raise RunError(
            f"{_task_path(run)} has num_features={found}, but the model in "
            f"{run.model} has source_dim={expected}: they do not belong "
            "together."
        )


def _run(run):
    return run if isinstance(run, RunDirectory) else RunDirectory(run)
