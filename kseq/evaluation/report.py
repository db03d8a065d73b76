"""The scores of what a run has exported, printed."""

from pathlib import Path

from kseq.one_line import one_line
from kseq.progress import progress
from kseq.runs.model_card import with_test_scores
from kseq.whole_files import write_whole

_WIDTH = 60  # characters of a text that are printed


def report(path, evaluation, run, samples=5):
    """Prints scores, a few answers, and what to do next.

    The scores are also written to the README of the run and of the export.

    Args:
        path: of the export that is evaluated.
        evaluation: `Translations`, `Classifications` or the like.
        run: `RunDirectory` that was exported.
        samples: int, answers that are printed.
    """
    with progress("Testing", len(evaluation), "examples") as advance:
        evaluation.scores(advance)
    title = f"{_in_a_line(path)} on {len(evaluation)} examples:"
    lines = evaluation.report()
    print(f"\n{title}")
    for line in lines:
        print(f"  {line}")
    for readme in (run.readme, Path(path) / "assets.extra" / "README.md"):
        if readme.is_file():
            card = readme.read_text("utf-8", "replace")
            write_whole(readme, with_test_scores(card, title, lines))

    print("\nSample answers:")
    for text, _, output in evaluation.rows(samples):
        print(f"  {_in_a_line(text)[:_WIDTH]}  ->  {_in_a_line(output)}")
    print(f"\nAnswers to your own:  kseq predict {_in_a_line(path)} < FILE")
    for hint in evaluation.hints:
        print(hint.format(path=_in_a_line(path)))
    logs = _in_a_line(_log_directory(run))
    print(f"Training curves:  tensorboard --logdir {logs}")


def _log_directory(run):
    """The folder of all runs, for TensorBoard to name and compare them."""
    parent = run.path.parent
    return parent if parent.name else run.path


def _in_a_line(text):
    return " ".join(one_line(text).split())
