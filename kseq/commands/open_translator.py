"""What a path on the command line holds, ready to translate."""

from kseq.commands.model_path import is_run
from kseq.data import Tokenizer
from kseq.serving import Translator, load_export
from kseq.training import RunDirectory, load_model
from kseq.training.checkpoint_files import checkpoint_paths
from kseq.training.run_directory import read_json
from kseq.user_error import UserError


def open_translator(options):
    """Opens the run or the export at `options.path`.

    Args:
        options: with `weights`, `beam_size` and `length_penalty`, which are
            None where the user gave none.

    Returns:
        `kseq.serving.Translator`, or what `kseq.serving.load_export` returns.
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
    search = {
        name: _chosen(options, run, name, default)
        for name, default in (("beam_size", 4), ("length_penalty", 1.0))
    }
    return Translator(
        load_model(run, weights=options.weights or _best_weights(run)),
        Tokenizer.load(run.source_tokenizer),
        Tokenizer.load(run.target_tokenizer),
        **search,
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
