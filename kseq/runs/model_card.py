"""The README of a run: what was trained, on what, and how to use it."""

import json
import re
import shlex
import time
from collections.abc import Sequence
from typing import NamedTuple

import kseq
from kseq.runs.run_directory import read_json

_WEIGHTS = {
    "average": "The mean of several checkpoints, the last of them of step {:,}."
    " The validation scores are those of the best single checkpoint.",
    "best": "Those of step {:,}, the best on the validation data.",
    "last": "Those of step {:,}, the last that was saved.",
}


_NO_TEST = (
    "On the validation data, by which the weights were chosen, and the "
    "temperature of the probabilities, if they have one. `kseq evaluate` gives "
    "the scores on other data."
)


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
        origin: str, of what the model was converted, if it was not trained
            here.
    """

    step: int
    total_steps: int
    parameters: int
    command: list[str]
    best: dict | None = None
    signatures: dict[str, str] | None = None
    examples: int | None = None
    facts: Sequence[str] = ()
    origin: str = ""


class TaskDescription(NamedTuple):
    """A model in words.

    Args:
        description: str, what it does.
        signatures: dict, name of a signature -> its inputs and outputs, in
            Markdown.
        command_line, python, json: str, how an input is given on the command
            line, in Python and in a request.
        data: str, what the model reads.
        limits: list of sentences.
        classes: how they are used, a str, and a list of them; or None.
    """

    description: str
    signatures: dict[str, str]
    command_line: str
    python: str
    json: str
    data: str = "text"
    limits: Sequence[str] = ()
    classes: tuple[str, list[str]] | None = None


def model_card(run, progress, task=None):
    """Describes a run in Markdown.

    What users have named, such as files and labels, is in blocks of code,
    where Markdown and HTML mean nothing.

    Args:
        run: `RunDirectory`.
        progress: `Progress`.
        task: `TaskDescription`; None if it is not known.

    Returns:
        str.
    """
    config = read_json(run.config) if run.config.is_file() else {}
    parts = [
        f"# {_escaped(run.path.resolve().name)}",
        _model(run, task, progress),
    ]
    if not progress.origin:
        parts += [
            "## Data\n\n" + _data(config, progress),
            "## Validation scores\n\n" + _scores(progress),
        ]
    if task is not None:
        parts += [
            "## Use\n\n" + _use(run, task),
            "## Limits\n\n" + _limits(task, progress),
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


def with_scores(card, title, lines, is_test=True):
    """A model card with the scores of the export.

    Args:
        card: str, see `model_card`.
        title: str, which model and how many examples.
        lines: list of str, the scores; they replace those that are there.
        is_test: bool, whether the examples are test data, and not those of
            validation.
    """
    scores = _block([title, *lines])
    if is_test:
        return _with_section(card, "Test scores", scores)
    return _with_section(
        card, "Scores of the export", f"{_NO_TEST}\n\n{scores}"
    )


def with_weights(card, name, step):
    """A model card that says which weights of a run are used.

    Args:
        card: str, see `model_card`.
        name: "average", "best" or "last".
        step: int, that of the checkpoint; 0 of a model that was converted.
    """
    if not step:
        return card
    return _with_section(card, "Weights", _WEIGHTS[name].format(step))


def with_learning_curve(card, name):
    """A model card that shows a picture, the file of this name beside it."""
    picture = f"![Losses and scores over the steps]({name})"
    return _with_section(card, "Learning curve", picture)


def _with_section(card, title, text):
    """A card with this section before that on its use, replaced or new."""
    head, *sections = re.split(r"^(?=## )", card, flags=re.MULTILINE)
    sections = [part for part in sections if not part.startswith(f"## {title}")]
    names = [part.split("\n")[0] for part in sections]
    place = names.index("## Use") if "## Use" in names else len(names)
    section = f"## {title}\n\n{text}\n\n"
    return "".join([head, *sections[:place], section, *sections[place:]])


def _model(run, task, progress):
    description = task.description if task is not None else "A model"
    model = "unknown"
    if run.model.is_file():
        model = read_json(run.model)["class_name"]
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    made = f"trained with kseq {kseq.__version__}"
    how = (
        f"Trained: {progress.step:,} of {progress.total_steps:,} steps, "
        f"until {now}"
    )
    if progress.origin:
        made = f"converted by kseq {kseq.__version__}"
        how = (
            f"Converted from the {_escaped(progress.origin)}, {now}. Its "
            "authors' licence, data and scores are those of that model"
        )
    return (
        f"{description}, {made}.\n\n"
        f"- Model: {_escaped(model)}, {progress.parameters:,} parameters\n"
        f"- {how}\n\nThe command:\n\n" + _block([shlex.join(progress.command)])
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
    rows = [f"| `{key}` | {text} |" for key, text in task.signatures.items()]
    mount = f"{name}:/models/{name}"
    return "\n\n".join(
        [
            "On the command line, one output line per input line:",
            _block([f"kseq predict {shlex.quote(path)} {task.command_line}"]),
            "In Python:",
            _block(
                [
                    "import kseq",
                    f"model = kseq.load({path!r})",
                    f"answers = model({task.python})",
                ]
            ),
            "As a SavedModel for TensorFlow Serving:",
            _block(
                [
                    f"kseq export {shlex.quote(path)}",
                    "docker run -p 8501:8501 -v "
                    f'"$PWD"/saved_models/{shlex.quote(mount)} '
                    f"-e MODEL_NAME={shlex.quote(name)} tensorflow/serving",
                    f"""curl -d '{{"instances": {task.json}}}' """
                    + shlex.quote(f"localhost:8501/v1/models/{name}:predict"),
                ]
            ),
            "Its signatures:",
            "\n".join(
                ["| signature | inputs and outputs |", "|---|---|", *rows]
            ),
        ]
    )


def _limits(task, progress):
    scores = (
        f"The scores hold for {task.data} similar to that above; evaluate "
        "it on yours. The best weights were chosen on the validation data."
    )
    if progress.origin:
        scores = "No score was measured here: evaluate it on your data."
    limits = "\n".join(f"- {limit}" for limit in (scores, *task.limits))
    if task.classes is None:
        return limits
    intro, classes = task.classes
    return "\n\n".join([limits, intro, _block(classes)])


def _block(lines):
    """Lines of code: one line stays one line, and means nothing else.

    It must follow a paragraph: after a list it would be a part of the list.
    """
    return "\n".join("    " + _one_line(str(line)) for line in lines)


def _one_line(text):
    return "".join(c if c.isprintable() else " " for c in text)


def _escaped(text):
    return re.sub(r"([\\`*_{}\[\]()#+!|~<>&-])", r"\\\1", _one_line(text))
