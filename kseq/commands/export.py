"""kseq export: a run's model, to be served."""

import importlib.util
import re
from pathlib import Path

from kseq.commands.open_predictor import (
    given_search,
    open_predictor,
    option_of,
)
from kseq.runs import RunDirectory
from kseq.runs.exports import check_exports
from kseq.serving import export
from kseq.user_error import UserError

_QUANTIZED = {
    "saved_model": ("bfloat16", "int8"),
    "litert": ("float16", "int8"),
}
# What is written of a search that is not in the model.
_OF_SEARCH = {
    "ctranslate2": ("greedy", "beam_size", "length_penalty"),
    "marian": ("greedy", "beam_size", "length_penalty"),
    "argos": (),
}
_ARGOS = ".argosmodel"
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")  # as in zh-Hant


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


def check(options):
    """UserError for options that do not fit the format."""
    if options.languages and options.format != "argos":
        raise UserError("--languages is for --format argos.")
    known = _QUANTIZED.get(options.format, ())
    if options.quantize and not known:
        raise UserError(
            f"--format {options.format} has no --quantize; CTranslate2 takes "
            'its compute_type, such as "int8", when it loads a model.'
        )
    if options.quantize and options.quantize not in known:
        raise UserError(
            f"--format {options.format} takes --quantize {' or '.join(known)}. "
            f"Received: {options.quantize}"
        )
    if options.format == "saved_model":
        return
    if options.ensemble:
        raise UserError(f"--format {options.format} takes one run.")
    if options.format == "litert":
        return
    for name in given_search(options):
        if name not in _OF_SEARCH[options.format]:
            raise UserError(
                f"--format {options.format} has no {option_of(name)}: the "
                "search is that of the toolkit that reads it."
            )
    if options.format == "argos" and not options.languages:
        raise UserError("--format argos needs --languages, such as: de en")
    to = Path(options.to or f"default{_ARGOS}")
    if options.format == "argos" and to.suffix != _ARGOS:
        raise UserError(
            f"--to: --format argos writes a file, NAME{_ARGOS}. "
            f"Received: {options.to!r}"
        )
    for code in options.languages or ():
        if not _LANGUAGE.fullmatch(code):
            raise UserError(
                f"--languages: expected a code such as de. Received: {code!r}"
            )
    if options.format == "marian":
        return
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError(
            f"--format {options.format} needs ctranslate2: pip install "
            "'.[ctranslate2]' in a clone of kseq"
        )


def _write(options, name):
    """Writes another format than a SavedModel, and returns the path."""
    suffix = _ARGOS if options.format == "argos" else ""
    default = Path(f"{options.format}_models", f"{name}{suffix}")
    to = Path(options.to) if options.to else default
    if to.exists():
        raise UserError(f"{to} exists; give a new path with --to.")
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
