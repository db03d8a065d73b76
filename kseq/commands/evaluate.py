"""kseq evaluate: scores of the answers to a file."""

from kseq.commands.capabilities import Capabilities
from kseq.commands.open_predictor import open_predictor
from kseq.data.files.url_files import copy_urls
from kseq.sources.first_rows import check_columns
from kseq.terminal import progress
from kseq.user_error import UserError


def run(options):
    """Prints the scores of a model on a file."""
    copy_urls(options)
    evaluation = opened_evaluation(Capabilities(options.path), options)
    with progress("Evaluating", len(evaluation), "lines") as advance:
        evaluation.scores(advance)
    for line in evaluation.report():
        print(line)


def opened_evaluation(model, options):
    """The evaluation of a model on the files of the options.

    Args:
        model: `Capabilities`.
        options: of the command, with the path of the model.

    Raises:
        UserError: if the options do not fit the model.
    """
    source, answer = model.source, model.answer
    if source.read_examples is None:
        raise UserError(
            f"{model.path} takes {source.name}, which evaluate does not read: "
            "its scores are in its README."
        )
    _check_options(model, options)
    check_columns(options.columns, source)
    examples = source.read_examples(model, options)
    answer.check_examples(examples, model.task)
    chosen = {}
    if options.metrics:
        from kseq.evaluation import metrics_named

        chosen = {"metrics": metrics_named(options.metrics)}
    return answer.evaluation(
        open_predictor(options), source, examples, **chosen
    )


def _check_options(model, options):
    """UserError for options that are not about this model."""
    source, answer = model.source, model.answer
    model.check_options(options)
    refused = {"columns", "images", "audio", "plain", "metrics"}
    does = answer.does or source.task
    if options.metrics and not answer.has_metrics:
        raise UserError(
            f"{does or 'This model'}: it is not scored by --metrics."
        )
    for name in sorted(refused - source.options):
        if getattr(options, name):
            raise UserError(
                f"--{name} is not for this model: {options.path} takes "
                f"{source.lines}."
            )
    if options.reference and does:
        raise UserError(f"{does}: it needs one {source.files}.")
