"""kseq prepare: checks and tokenizes data once, or computes features."""

import shlex

from kseq.command_line.option_types import option
from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.data.files.tar_members import is_tar
from kseq.data.files.url_files import copy_urls, is_url, refuse_folder_urls
from kseq.files.model_path import run_path
from kseq.process import OPTIONAL, start_keras, stop_in_order
from kseq.sources import SOURCES, source_of_files
from kseq.sources.first_rows import read_first_rows
from kseq.sources.text import line_filters
from kseq.user_error import UserError

_NEEDED = {
    "resample": "audio",
    "num_mels": "audio",
    "network": "images",
    "network_weights": "images",
}


def run(options):
    """Writes a folder that recipes train from, and prints what is in it."""
    if options.from_ and (options.vocab_size or options.pieces):
        raise UserError(
            "--from keeps the tokenizers of a run: leave out --vocab-size and "
            "--pieces."
        )
    refuse_folder_urls(options)
    if _are_copied_first(options):
        _start_keras()
        with stop_in_order():
            copy_urls(options)
    source = source_of_files(options, [each for each in SOURCES if each.trains])
    if source.option:
        _refuse_several_files(options, source)
    for name, needed in _NEEDED.items():
        if getattr(options, name) and source.option != needed:
            raise UserError(f"{option(name)} is for --{needed}.")
    beam = _beam_options(options)
    line_filters(options, source)  # raises an error if they do not fit
    _refuse_prepared(options.train)
    if options.train:
        given = options.train, options.validation or (), options.columns
        read_first_rows(source.content, *given)
    if options.from_:
        run_path(options.from_)  # raises an error if it is none
    folder = options.folder
    options.folder = PreparedFolder(folder, options.overwrite)
    _start_keras()
    with stop_in_order():
        copy_urls(options)
        _refuse_prepared(options.train)
        prepared = source.prepare(options, _kept_tokenizers(options), beam)
    for line in prepared.describe():
        print(line)
    print(f"Next: kseq train {source.trains} --train {shlex.quote(folder)}")


def _are_copied_first(options):
    """Whether files at URLs say what they contain: features, and archives."""
    if is_url(options.features or ""):
        return True
    return any(is_url(path) and is_tar(path) for path in options.train or ())


def _start_keras():
    # On one processor as in the processes, for the same bits.
    start_keras(without=OPTIONAL, for_search=True)


def _refuse_prepared(paths):
    for path in paths or ():
        if is_prepared(path):
            raise DataError(f"{path} is prepared already.")


def _refuse_several_files(options, source):
    if len(options.train or ()) != 1 or len(options.validation or ()) > 1:
        raise UserError(
            f"--{source.option} takes one --train FILE, and one --validation "
            "FILE. A pattern in quotes names several."
        )


def _beam_options(options):
    if options.beam is None:
        return None
    if options.processes:
        raise UserError(
            "With --beam, the runner sets the number of processes: leave out "
            "--processes."
        )
    try:
        return shlex.split(options.beam or "")
    except ValueError as error:
        raise UserError(f"--beam {options.beam!r}: {error}.") from None


def _kept_tokenizers(options):
    from kseq.data import load_pair_tokenizers
    from kseq.runs import RunDirectory

    if not options.from_:
        return None
    other = RunDirectory(run_path(options.from_))
    return load_pair_tokenizers(
        other.tokenizer("source"), other.tokenizer("target")
    )
