"""Prints the test scores of an export."""

import shlex
from pathlib import Path

from kseq.files.atomic_write import atomic_write
from kseq.files.json_files import read_json
from kseq.files.recorded_metrics import recorded_metrics
from kseq.pictures import learning_curve_picture
from kseq.runs.model_card import with_learning_curve, with_scores
from kseq.terminal import escaped_line, progress, single_line

_WIDTH = 60  # characters of a text that are printed


def report(path, evaluation, run, samples=5, inputs="< FILE"):
    """Prints scores, sample answers, and commands to continue with.

    The scores are also written to the README of the run and of the export, with
    a picture of the learning curve. They are of the built-in test data of a
    recipe, or of the validation data of a user.

    Args:
        path: of the export that is evaluated.
        evaluation: such as `Translations` or `Classifications`.
        run: `RunDirectory` that was exported.
        samples: int, answers that are printed.
        inputs: str, how inputs are given to `kseq predict PATH`.
    """
    with progress("Testing", len(evaluation), "examples") as advance:
        evaluation.scores(advance)
    config = read_json(run.config) if run.config.is_file() else {}
    is_test = not config.get("train")
    kind = "test" if is_test else "validation"
    title = f"{escaped_line(path)} on {len(evaluation)} {kind} examples:"
    lines = evaluation.report()
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")
    curve = learning_curve_picture(recorded_metrics(run.metrics))
    for readme in (run.readme, Path(path) / "assets.extra" / "README.md"):
        if readme.is_file():
            card = readme.read_text("utf-8", "replace")
            if curve is not None:
                atomic_write(readme.with_name(run.learning_curve.name), curve)
                card = with_learning_curve(card, run.learning_curve.name)
            card = with_scores(card, title, lines, is_test)
            atomic_write(readme, card)

    print("\nSample answers:")
    for text, _, output in evaluation.rows(samples):
        print(f"  {_in_a_line(text)[:_WIDTH]}  ->  {_in_a_line(output)}")
    word = _word(path)
    print(f"\nAnswers to your own:  kseq predict {word} {inputs}")
    for hint in evaluation.hints:
        print(hint.format(path=word, inputs=inputs))
    logs = _word(_log_directory(run))
    print(f"Training curves:  tensorboard --logdir {logs}")


def _log_directory(run):
    """The folder of all runs, for TensorBoard to name and compare them."""
    parent = run.path.parent
    return parent if parent.name else run.path


def _word(path):
    """A path as a word of a command line."""
    return escaped_line(shlex.quote(str(path)))


def _in_a_line(text):
    return " ".join(single_line(text).split())
