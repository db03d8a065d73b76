"""Checks of options that need neither the model nor TensorFlow."""

import importlib.util
import re
from pathlib import Path

from kseq.command_line.search_options import (
    check_search,
    chooses_search,
    given_search,
    option_of,
)
from kseq.files.hub import check_hub
from kseq.files.optional_packages import check_metrics
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
ARGOS = ".argosmodel"
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")  # as in zh-Hant


def check_command(options):
    """UserError for options of a command that do not fit each other."""
    # A chat samples unless another search is chosen, without --sample.
    if options.command != "chat" or chooses_search(options):
        check_search(options)
    if check := _CHECKS.get(options.command):
        check(options)


def _check_predict(options):
    """UserError for options that exclude each other."""
    if options.attention and not options.json:
        raise UserError("--attention needs --json.")
    for name in ("prefix", "glossary", "mbr"):
        if options.attention and getattr(options, name):
            raise UserError(f"--attention is not shown with --{name}.")
    if options.word_probabilities and (not options.json or options.mbr):
        raise UserError(
            "--word-probabilities needs --json, and excludes --mbr."
        )
    of_sentences = "attention", "word-probabilities"
    if options.paragraphs:
        _check_alone("paragraphs", options, *of_sentences)
    if options.markup:
        others = "paragraphs", "stream", "scores", "json", "sample"
        _check_alone("markup", options, *of_sentences, *others)
    if options.stream:
        others = "json", "scores", "paragraphs", "batch-size"
        _check_alone("stream", options, *others)
    if options.mbr == 1:
        raise UserError("--mbr needs two candidates or more. Received: 1")
    if options.mbr and options.n_best > options.mbr:
        raise UserError(
            f"--n-best {options.n_best} is more than the {options.mbr} "
            "candidates of --mbr."
        )
    if options.glossary and options.prefix:
        raise UserError("--glossary and --prefix are mutually exclusive.")
    if options.glossary and (options.greedy or options.sample):
        raise UserError("--glossary needs a beam search.")


def _check_alone(name, options, *others):
    """UserError for an option together with others, or those of the search."""
    names = (*others, "prefix", "glossary", "mbr")
    given = [n for n in names if getattr(options, n.replace("-", "_"))]
    given += ["n-best"] * (options.n_best > 1)
    if given:
        raise UserError(f"--{name} and --{given[0]} are mutually exclusive.")


def _check_export(options):
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
    to = Path(options.to or f"default{ARGOS}")
    if options.format == "argos" and to.suffix != ARGOS:
        raise UserError(
            f"--to: --format argos writes a file, NAME{ARGOS}. "
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


def _check_evaluate(options):
    """UserError for metrics whose package is missing."""
    check_metrics(options.metrics or ())


def _check_compare(options):
    """The same, and for a page that would replace a file that is compared."""
    _check_evaluate(options)
    read = (options.a, options.b, options.source, options.reference)
    paths = [
        Path(each).resolve() for each in read if isinstance(each, str | Path)
    ]
    if options.page and options.page.resolve() in paths:
        raise UserError(
            f"--page {options.page}: this is one of the files to compare; "
            "choose a different one."
        )


def _check_publish(options):
    """UserError for a name that no repository can have."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", options.name):
        raise UserError(
            f"Expected owner/name of a repository. Received: {options.name!r}"
        )
    check_hub()


_CHECKS = {
    "predict": _check_predict,
    "export": _check_export,
    "evaluate": _check_evaluate,
    "compare": _check_compare,
    "publish": _check_publish,
}
