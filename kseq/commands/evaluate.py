"""kseq evaluate: answers to a file, judged by its references or labels."""

from kseq.commands.abilities import abilities
from kseq.commands.inputs_of_lines import check_features, stored_features
from kseq.commands.open_predictor import open_predictor
from kseq.data import read_captions, read_image_captions
from kseq.data.document_labels import DEFAULT_COLUMNS
from kseq.evaluation import of_captions
from kseq.evaluation.classifications import check_labels
from kseq.evaluation.evaluation_of_files import evaluation_of, read_files
from kseq.progress import progress
from kseq.user_error import UserError


def run(options):
    """Prints the scores of a model on a file."""
    able = abilities(options.path)
    read = _of_files if able.source == "text" else _of_captions
    evaluation = read(able, options)
    with progress("Evaluating", len(evaluation), "lines") as advance:
        evaluation.scores(advance)
    for line in evaluation.report():
        print(line)


def _of_files(able, options):
    for name in ("features", "images", "plain"):
        if getattr(options, name):
            raise UserError(
                f"--{name} is for models that describe pictures; "
                f"{options.path} answers to text."
            )
    columns = options.columns or DEFAULT_COLUMNS
    files = read_files(
        able.has_labels, options.source, options.reference, columns
    )
    if able.has_labels and able.labels:
        check_labels(files, able.labels)  # before the model is loaded
    return evaluation_of(open_predictor(options), files)


def _of_captions(able, options):
    check_features(able, options)
    if options.reference:
        raise UserError(
            "This model describes pictures: it needs one table of their names "
            "and captions."
        )
    table = options.columns or (), options.plain
    if able.source == "features":
        features = stored_features(able, options)
        captions = read_captions(options.source, features, *table)
    elif options.images:
        captions = read_image_captions(options.source, options.images, *table)
    else:
        raise UserError(
            f"{options.path} answers to pictures: give their folder with "
            "--images."
        )
    return of_captions(open_predictor(options), captions)
