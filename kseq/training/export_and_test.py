"""The end of a recipe: export of the best weights, and the test scores."""

from kseq import evaluation, loading, serving
from kseq.runs import save_average


def export_and_test(
    run,
    evaluate,
    *examples,
    average=None,
    average_of="last",
    tests_export=True,
):
    """Exports what a run has trained, and reports its scores on the test set.

    It is this, and returns the path of the export:

        best = kseq.load_run(run, weights="best")
        path = serving.export(best, run.exports, run)
        tested = evaluate(kseq.load(path), *examples)
        evaluation.report(path, tested, run)

    Args:
        run: `RunDirectory`, trained.
        evaluate: function of a predictor and the examples, such as
            `kseq.evaluation.Translations`.
        *examples: what `evaluate` is given besides the predictor.
        average: int, how many checkpoints are averaged, see
            `kseq.runs.save_average`: this average is exported. By default the
            weights of the best validation are.
        average_of: "last" or "best", which checkpoints are averaged.
        tests_export: bool; if False, the predictor is that of the run, for an
            evaluation that needs more than an export serves.
    """
    if average:
        save_average(run, **{average_of: average})
    weights = "average" if average else "best"
    best = loading.load_run(run, weights=weights)
    path = serving.export(best, run.exports, run)
    predictor = loading.load(path) if tests_export else best.predictor()
    evaluation.report(path, evaluate(predictor, *examples), run)
    return path
