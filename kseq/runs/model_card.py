"""The README of a run: what was trained, on what, and how to use it."""

import json
import re
import shlex
import time
from collections.abc import Sequence
from typing import NamedTuple

import kseq
from kseq.runs.run_directory import read_json
from kseq.runs.signature_texts import (
    OF_ANSWERS,
    OF_DRAWN,
    OF_LABELS,
    OF_TAGS,
    OF_TEXT,
    OF_VECTORS,
    VARIED,
)

_TEST = "Test scores"

# What a model takes: on the command line, in Python and in JSON.
_INPUTS = {
    "text": ("< FILE", '["..."]', '["..."]'),
    "prompt": ("< FILE", '["..."]', '["..."]'),
    "turns": ("< DIALOGUES", '[["...", "..."]]', '[["...", "..."]]'),
    "features": ("--features FILE.npz < NAMES", "[features]", "[[[0.5, ...]]]"),
    "frames": ("--features FILE.npz < NAMES", "[frames]", "[[[0.5, ...]]]"),
    "image": ("< PATHS", '[open("a.jpg", "rb").read()]', '[{"b64": "..."}]'),
    "vectors": ("< SEQUENCES", "[vectors]", "[[[0.5, ...]]]"),
    "audio": ("< PATHS", '[open("a.wav", "rb").read()]', '[{"b64": "..."}]'),
}


class Progress(NamedTuple):
    """The progress of a run.

    Args:
        step: int, steps done.
        total_steps: int.
        parameters: int, of the model.
        command: list of str, which started it.
        best: dict, `step` and scores, see `kseq.training.metrics_log`; or None.
        signatures: dict, name of a score -> how it was computed.
        examples: int, on which it was validated, or None.
        facts: lines of text about the data.
    """

    step: int
    total_steps: int
    parameters: int
    command: list[str]
    best: dict | None = None
    signatures: dict[str, str] | None = None
    examples: int | None = None
    facts: Sequence[str] = ()


def model_card(run, progress):
    """Describes a run in Markdown.

    What users have named, such as files and labels, is in blocks of code,
    where Markdown and HTML mean nothing.

    Args:
        run: `RunDirectory`.
        progress: `Progress`.

    Returns:
        str.
    """
    config = read_json(run.config) if run.config.is_file() else {}
    task = run.read_task() if run.task.is_file() else None
    parts = [
        f"# {_escaped(run.path.resolve().name)}",
        _model(run, task, progress),
        "## Data\n\n" + _data(config, progress),
        "## Validation scores\n\n" + _scores(progress),
    ]
    if task is not None:
        parts += [
            "## Use\n\n" + _use(run, task),
            "## Limits\n\n" + _limits(task),
        ]
    options = [
        f"{name} = {json.dumps(config[name], ensure_ascii=False)}"
        for name in config
    ]
    if options:
        parts.append("## Options\n\n" + _block(options))
    if run.environment.is_file():
        environment = read_json(run.environment)
        lines = [f"{name} {environment[name]}" for name in environment]
        parts.append("## Environment\n\n" + _block(lines))
    return "\n\n".join(parts) + "\n"


def with_test_scores(card, title, lines):
    """A model card with the scores on the test data.

    Args:
        card: str, see `model_card`.
        title: str, which model and how many examples.
        lines: list of str, the scores; they replace those that are there.
    """
    head, *sections = re.split(r"^(?=## )", card, flags=re.MULTILINE)
    sections = [part for part in sections if not part.startswith(f"## {_TEST}")]
    names = [part.split("\n")[0] for part in sections]
    place = names.index("## Use") if "## Use" in names else len(names)
    test = f"## {_TEST}\n\n{_block([title, *lines])}\n\n"
    return "".join([head, *sections[:place], test, *sections[place:]])


def _model(run, task, progress):
    kind = "A model"
    if task is not None:
        kind, _ = _kind(task)
    model = "unknown"
    if run.model.is_file():
        model = read_json(run.model)["class_name"]
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return (
        f"{kind}, trained with kseq {kseq.__version__}.\n\n"
        f"- Model: {_escaped(model)}, {progress.parameters:,} parameters\n"
        f"- Trained: {progress.step:,} of {progress.total_steps:,} steps, "
        f"until {now}\n\nThe command:\n\n"
        + _block([shlex.join(progress.command)])
    )


def _kind(task):
    """A description of the model in words, and its signatures."""
    if "labels" in task:
        return "A model that answers with a label", OF_LABELS
    if "tags" in task:
        return "A model that tags each word", OF_TAGS
    if "answers" in task:
        return "A model that selects from known answers", OF_ANSWERS
    if task.get("input") == "vectors":
        return "A model that answers with bits", OF_VECTORS
    is_varied = task.get("input") in VARIED
    return (
        "A model that answers with a text",
        OF_DRAWN if is_varied else OF_TEXT,
    )


def _data(config, progress):
    train = _paths(config.get("train"))
    held_out = _paths(config.get("validation"))
    if not train:
        lines = ["training    the built-in corpus of the recipe"]
    else:
        lines = [f"training    {path}" for path in train]
        lines += [f"validation  {path}" for path in held_out]
        if not held_out:
            lines.append("validation  held out of training")
    if progress.examples is not None:
        lines.append(f"validated on {progress.examples:,} examples")
    return _block([*lines, *progress.facts])


def _paths(value):
    paths = value if isinstance(value, list) else [value]
    return [path for path in paths if path]


def _scores(progress):
    if progress.best is None:
        return "Not validated yet."
    signatures = progress.signatures or {}
    rows = ["| score | value | signature |", "|---|---|---|"]
    for key, value in progress.best.items():
        if key.startswith("val_"):
            name = key.removeprefix("val_")
            signature = _escaped(signatures.get(name, ""))
            rows.append(f"| {_escaped(name)} | {value:.4g} | {signature} |")
    step = progress.best["step"]
    return f"Of the best weights, those of step {step:,}:\n\n" + "\n".join(rows)


def _use(run, task):
    path, name = str(run.path), run.path.resolve().name
    signatures = dict(_kind(task)[1])
    if run.model.is_file():
        config = read_json(run.model)["config"]
        if not _can_explain(config, task):
            signatures.pop("explain", None)
    source = task["input"] if task.get("input") in [*_INPUTS] else "text"
    read, python, instances = _INPUTS[source]
    rows = [
        f"| `{key}` | {text.format(source)} |"
        for key, text in signatures.items()
    ]
    mount = f"{name}:/models/{name}"
    return "\n\n".join(
        [
            "On the command line, one output line per input line:",
            _block([f"kseq predict {shlex.quote(path)} {read}"]),
            "In Python:",
            _block(
                [
                    "import kseq",
                    f"model = kseq.load({path!r})",
                    f"answers = model({python})",
                ]
            ),
            "As a SavedModel for TensorFlow Serving:",
            _block(
                [
                    f"kseq export {shlex.quote(path)}",
                    "docker run -p 8501:8501 -v "
                    f'"$PWD"/saved_models/{shlex.quote(mount)} '
                    f"-e MODEL_NAME={shlex.quote(name)} tensorflow/serving",
                    f"""curl -d '{{"instances": {instances}}}' """
                    + shlex.quote(f"localhost:8501/v1/models/{name}:predict"),
                ]
            ),
            "Its signatures:",
            "\n".join(
                ["| signature | inputs and outputs |", "|---|---|", *rows]
            ),
        ]
    )


def _can_explain(config, task):
    """Whether a model has attention, or a memory, that can be shown."""
    if task.get("input") == "vectors":
        return config["cell"]["class_name"] == "NeuralTuringMachine"
    has_none = config.get("attention", "") is None
    return not has_none and task.get("input") != "prompt"


def _limits(task):
    preprocessor = task.get("preprocessor") or {}
    what = "data" if task.get("input") == "vectors" else "text"
    limits = [
        f"The scores hold for {what} similar to that above; evaluate it on "
        "yours. The best weights were chosen on the validation data.",
    ]
    if "max_words" in preprocessor:
        limits.append(
            f"A sentence of more than {preprocessor['max_words']} words is "
            "cut, and marked `truncated`."
        )
    if "max_length" in preprocessor:
        limits.append(
            f"An input of more than {preprocessor['max_length']} tokens is "
            "cut, and marked `truncated`."
        )
    for name, what in (("labels", "text"), ("tags", "word")):
        if name in task:
            intro = f"It assigns one of these {name} to any {what}:"
            return "\n\n".join([_list(limits), intro, _block(task[name])])
    if "answers" in task:
        limits.append(
            f"It always returns the nearest of {task['answers']:,} answers, "
            "even if none fits."
        )
        return _list(limits)
    if "max_length" in task:
        limits.append(
            f"An answer has at most {task['max_length']} tokens. It can be "
            "fluent and wrong."
        )
    return _list(limits)


def _list(items):
    return "\n".join(f"- {item}" for item in items)


def _block(lines):
    """Lines of code: one line stays one line, and means nothing else.

    It must follow a paragraph: after a list it would be a part of the list.
    """
    return "\n".join("    " + _one_line(str(line)) for line in lines)


def _one_line(text):
    return "".join(c if c.isprintable() else " " for c in text)


def _escaped(text):
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&-])", r"\\\1", _one_line(text))
