"""kseq export: a run's model, to be served."""

import importlib.util
from pathlib import Path

from kseq.commands.open_predictor import open_predictor
from kseq.runs import RunDirectory
from kseq.runs.exports import check_exports
from kseq.serving import export
from kseq.user_error import UserError


def run(options):
    """Writes it, and prints its path."""
    run = RunDirectory(options.path)
    if options.quantize and options.format != "saved_model":
        raise UserError(
            "--quantize is for --format saved_model; CTranslate2 takes its "
            'compute_type, such as "int8", when it loads a model.'
        )
    if options.ensemble and options.format != "saved_model":
        raise UserError("--format ctranslate2 takes one run.")
    if options.format == "ctranslate2":
        print(_export_ctranslate2(run, options))
        return
    directory = Path(options.to) if options.to else run.exports
    check_exports(directory, run.path)  # before anything is loaded
    served = open_predictor(options).served
    print(export(served, directory, run, quantize=options.quantize))


def _export_ctranslate2(run, options):
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError(
            "--format ctranslate2 needs ctranslate2: pip install "
            "'.[ctranslate2]' in a clone of kseq"
        )
    default = Path("ctranslate2_models") / run.exports.name
    directory = Path(options.to) if options.to else default
    if directory.exists():
        raise UserError(f"{directory} exists; give a new folder with --to.")
    from kseq.serving.ctranslate2_export import export_ctranslate2

    return export_ctranslate2(open_predictor(options).served, directory)
