"""kseq export: a run's model, to be served."""

from pathlib import Path

from kseq.command_line.option_checks import ARGOS
from kseq.commands.open_predictor import open_predictor
from kseq.files.new_folder import check_new
from kseq.runs import RunDirectory
from kseq.runs.exports import check_exports
from kseq.serving import export


def run(options):
    """Writes it, and prints its path."""
    run = RunDirectory(options.path)
    if options.format != "saved_model":
        print(_write(options, run.exports.name))
        return
    directory = Path(options.to) if options.to else run.exports
    check_exports(directory, run.path)  # before anything is loaded
    served = open_predictor(options).served
    print(export(served, directory, run, quantize=options.quantize))


def _write(options, name):
    """Writes another format than a SavedModel, and returns the path."""
    suffix = ARGOS if options.format == "argos" else ""
    default = Path(f"{options.format}_models", f"{name}{suffix}")
    to = Path(options.to) if options.to else default
    check_new(to)  # before anything is loaded
    served = open_predictor(options).served
    if options.format == "litert":
        from kseq.serving.litert_export import export_litert

        return export_litert(served, to, options.quantize)
    if options.format == "ctranslate2":
        from kseq.serving.ctranslate2_export import export_ctranslate2

        return export_ctranslate2(served, to)
    if options.format == "marian":
        from kseq.conversion import export_marian

        return export_marian(served, to)
    from kseq.serving.argos_export import export_argos

    return export_argos(served, to, options.languages)
