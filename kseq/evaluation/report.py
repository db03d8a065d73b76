"""The scores of what a run has exported, printed."""

from kseq.one_line import one_line

_WIDTH = 60  # characters of a text that are printed


def report(path, evaluation, run, samples=5):
    """Prints scores, a few answers, and what to do next.

    Args:
        path: of the export that `evaluation` judges.
        evaluation: `Translations`, `Classifications` or the like.
        run: `RunDirectory` that was exported.
        samples: int, answers that are printed.
    """
    evaluation.scores()
    print(f"\n{_in_a_line(path)} on {len(evaluation)} examples:")
    for line in evaluation.report():
        print(f"  {line}")

    print("\nIt answers:")
    for text, _, output in evaluation.rows(samples):
        print(f"  {_in_a_line(text)[:_WIDTH]}  ->  {_in_a_line(output)}")
    print(f"\nAnswers to your own:  kseq predict {_in_a_line(path)} < FILE")
    for hint in evaluation.hints:
        print(hint.format(path=_in_a_line(path)))
    print(f"Look at the training: tensorboard --logdir {_in_a_line(run.path)}")


def _in_a_line(text):
    return " ".join(one_line(text).split())
