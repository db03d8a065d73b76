"""kseq prepare: checks and tokenizes the data of a run once."""

import shlex
from pathlib import Path

from kseq.data import DataError
from kseq.data.files.prepared_folder import PreparedFolder, is_prepared
from kseq.files.model_path import run_path
from kseq.process import OPTIONAL, start_keras, stop_in_order
from kseq.sources.first_rows import read_first_rows
from kseq.user_error import UserError


def run(options):
    """Writes a folder that recipes train from, and prints what is in it."""
    if options.from_ and (options.vocab_size or options.pieces):
        raise UserError(
            "--from keeps the tokenizers of a run: leave out --vocab-size and "
            "--pieces."
        )
    beam = _beam_options(options)
    if options.from_:
        run_path(options.from_)  # raises an error if it is none
    for path in options.train or ():
        if is_prepared(path):
            raise DataError(f"{path} is prepared already.")
    if options.train:
        read_first_rows(
            "pairs", options.train, options.validation or (), options.columns
        )
    if options.overwrite:
        _clear(Path(options.folder))
    start_keras(without=OPTIONAL)
    with stop_in_order():
        pairs = _prepare(options, beam)
    for line in pairs.describe():
        print(line)
    folder = shlex.quote(options.folder)
    print(f"Next: kseq train translate_transformer --train {folder}")


def _beam_options(options):
    if options.beam is None:
        return None
    if options.processes:
        raise UserError(
            "Processes are an option of a runner of Beam: leave out "
            "--processes."
        )
    try:
        return shlex.split(options.beam or "")
    except ValueError as error:
        raise UserError(f"--beam {options.beam!r}: {error}.") from None


def _clear(folder):
    if folder.is_dir():
        prepared = PreparedFolder(folder)
        prepared.lock()
        prepared.clear()
        prepared.unlock()


def _prepare(options, beam):
    from kseq.data import PairTokenizers, load_pair_tokenizers, prepare_pairs
    from kseq.runs import RunDirectory

    given = {"vocab_size": options.vocab_size, "pieces": options.pieces}
    given = {name: value for name, value in given.items() if value}
    if options.from_:
        other = RunDirectory(run_path(options.from_))
        given["kept"] = load_pair_tokenizers(
            other.tokenizer("source"), other.tokenizer("target")
        )
    return prepare_pairs(
        options.folder,
        options.train,
        options.validation,
        options.columns,
        tokenizers=PairTokenizers(**given),
        processes=options.processes,
        beam=beam,
        log=False,
    )
