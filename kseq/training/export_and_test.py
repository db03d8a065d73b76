"""The end of a recipe: export of the best weights, and the test scores."""

from kseq import evaluation, loading, serving
from kseq.answers.describe_task import describe_task
from kseq.files.atomic_write import atomic_write
from kseq.runs import save_average
from kseq.runs.calibration import write_temperature
from kseq.terminal import progress


def export_and_test(
    run,
    evaluate,
    *examples,
    average=None,
    average_of="last",
    tests_export=True,
    calibrate_on=None,
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
        tests_export: bool; if False, the predictor of the run is tested, for an
            evaluation that needs more than an export serves.
        calibrate_on: examples of the same form as the test examples, to which
            the temperature of the probabilities is fitted, for labels and
            tags; None for a temperature of 1.
    """
    if average:
        save_average(run, **{average_of: average})
    weights = "average" if average else "best"
    run.calibration.unlink(missing_ok=True)
    if calibrate_on is not None:
        _calibrate(run, weights, evaluate, calibrate_on)
    best = loading.load_run(run, weights=weights)
    # The card names the weights; that of an average is written with it.
    if not average and best.model_card:
        atomic_write(run.readme, best.model_card)
    path = serving.export(best, run.exports, run)
    predictor = loading.load(path) if tests_export else best.predictor()
    inputs = describe_task(run).command_line
    evaluation.report(path, evaluate(predictor, *examples), run, inputs=inputs)
    return path


def _calibrate(run, weights, evaluate, examples):
    predictor = loading.load_run(run, weights=weights).predictor()
    fitted = evaluate(predictor, examples)
    with progress("Calibrating", len(fitted), "examples") as advance:
        temperature = fitted.fit_temperature(advance)
    write_temperature(run, weights, temperature)
    print(f"Probabilities have the temperature {temperature:.4g}.")
