"""What a path on the command line holds, ready to answer."""

from kseq.data import DocumentTokenizer, Tokenizer
from kseq.model_path import is_run
from kseq.runs import RunDirectory
from kseq.runs.checkpoint_files import checkpoint_paths
from kseq.runs.run_directory import read_json
from kseq.serving import Classifier, Translator, load_export, load_model
from kseq.user_error import UserError


def open_model(options):
    """Opens the run or the export at `options.path`.

    Args:
        options: with `weights`, `beam_size` and `length_penalty`, which are
            None where the user gave none.

    Returns:
        `kseq.serving.Translator`, `kseq.serving.Classifier`, or what
        `kseq.serving.load_export` returns.
    """
    if is_run(options.path):
        return open_run(options)
    for name in ("weights", "beam_size", "length_penalty"):
        if getattr(options, name) is not None:
            raise UserError(
                f"--{name.replace('_', '-')} is for run directories; "
                f"{options.path} is an export, where it is fixed."
            )
    try:
        return load_export(options.path)
    except ValueError as error:
        raise UserError(str(error)) from error


def open_run(options):
    """The same, of a run directory alone."""
    run = RunDirectory(options.path)
    model = load_model(run, weights=options.weights or _best_weights(run))
    tokenizer = Tokenizer.load(run.source_tokenizer)
    if run.documents.is_file():
        _refuse(options, "beam_size", "length_penalty")
        documents = read_json(run.documents)
        labels = documents.pop("labels")
        documents = DocumentTokenizer(tokenizer, **documents)
        return Classifier(model, documents, labels)
    return Translator(
        model,
        tokenizer,
        Tokenizer.load(run.target_tokenizer),
        beam_size=_chosen(options, run, "beam_size", 4),
        length_penalty=_chosen(options, run, "length_penalty", 1.0),
    )


def is_classifier(model):
    """Whether it labels documents, and does not translate."""
    return hasattr(model, "classify")


def _refuse(options, *names):
    for name in names:
        if getattr(options, name, None) is not None:
            raise UserError(
                f"--{name.replace('_', '-')} is for translators; "
                f"{options.path} is a classifier."
            )


def _chosen(options, run, name, default):
    chosen = getattr(options, name, None)
    if chosen is not None:
        return chosen
    return read_json(run.config).get(name, default)


def _best_weights(run):
    for name in ("average", "best"):
        if checkpoint_paths(run.checkpoints / name):
            return name
    return "last"
