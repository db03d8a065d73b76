"""The scores of what a run has exported, printed."""

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
    print(f"\n{path} on {len(evaluation)} examples:")
    for line in evaluation.report():
        print(f"  {line}")

    print("\nIt answers:")
    for text, _, output in evaluation.rows(samples):
        print(f"  {_in_a_line(text)[:_WIDTH]}  ->  {_in_a_line(output)}")
    print(f"\nAnswers to your own:  kseq predict {path} < FILE")
    for hint in evaluation.hints:
        print(hint.format(path=path))
    print(f"Look at the training: tensorboard --logdir {run.path}")


def _in_a_line(text):
    return " ".join(text.split())
