"""kseq check: the numbers of a corpus, before anything is trained."""

import zipfile
from collections import Counter

from kseq.data import DataError
from kseq.data.dialogue_files import dialogues_of_files
from kseq.data.document_labels import DEFAULT_COLUMNS
from kseq.data.documents import document_rows
from kseq.data.named_texts import CAPTIONS, TRANSCRIPTS, named_rows
from kseq.data.pair_table import PairTable
from kseq.data.tables import kind_of
from kseq.data.tagged_rows import DEFAULT_COLUMNS as WORDS_AND_TAGS
from kseq.data.tagged_rows import tagged_rows
from kseq.data.text_documents import texts_of
from kseq.data.text_files import matching_files, read_lines
from kseq.start_keras import OPTIONAL, start_keras
from kseq.user_error import UserError


def run(options):
    """Prints what a recipe would train on and what it would leave out."""
    kinds = ("documents", "tags", "dialogues", "text", "features", "audio")
    given = [f"--{name}" for name in kinds if getattr(options, name)]
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} are mutually exclusive.")
    if given:
        _check_one_file_each(options, given[0])
    check_columns(options.columns, 1 if options.text else 2)
    _read_first_rows(options)
    start_keras(without=OPTIONAL)
    read = _read_documents if options.documents else _read_pairs
    if options.tags:
        read = _read_tagged
    if options.dialogues:
        read = _read_dialogues
    if options.text:
        read = _read_text
    if _are_spoken(options):
        read = _read_transcripts
    elif options.features:
        read = _read_captions
    for line in read(options).describe():
        print(line)


def check_columns(columns, number):
    """UserError if there are columns, but not that many.

    Args:
        columns: names or numbers, or None.
        number: int.
    """
    if columns and len(columns) != number:
        names = "one column" if number == 1 else f"{number} columns"
        raise UserError(
            f"--columns names {names} here; found {' '.join(columns)}."
        )


def _check_one_file_each(options, name):
    if len(options.files) > 1 or len(options.validation or ()) > 1:
        raise DataError(
            f"{name} takes one file, and one for --validation. A pattern "
            "in quotes names several."
        )


def _read_first_rows(options):
    """Finds most of what is wrong with files before TensorFlow is imported."""
    splits = [options.files, options.validation or ()]
    for files in splits:
        for path in files:
            matching_files(path)
    for files in splits:
        for path in files:
            is_table = len(files) == 1 or kind_of(path)
            next(iter(_rows(path, is_table, options)), None)


def _rows(path, is_table, options):
    columns = options.columns or ()
    if options.dialogues:
        if columns:
            raise DataError("Dialogues have no columns: leave out --columns.")
        return dialogues_of_files(path, Counter())
    if options.text:
        return texts_of(path, *columns[:1])
    if options.tags:
        return tagged_rows(path, columns or WORDS_AND_TAGS, Counter())
    if options.documents:
        return document_rows(path, columns or DEFAULT_COLUMNS, Counter())
    if _are_spoken(options):
        return named_rows(path, columns, TRANSCRIPTS)
    if options.features:
        return named_rows(path, columns, CAPTIONS)
    if is_table:
        return PairTable(path, columns).rows()
    return read_lines(path)


def _read_pairs(options):
    from kseq.data import read_corpus

    return read_corpus(
        options.files,
        options.validation or None,
        options.columns or (),
        log=False,
    )


def _read_captions(options):
    from kseq.data import read_caption_corpus

    return read_caption_corpus(
        *_train_and_validation(options),
        options.columns or (),
        features=options.features,
        log=False,
    )


def _read_transcripts(options):
    from kseq.data import read_speech_corpus

    return read_speech_corpus(
        *_train_and_validation(options),
        options.columns or (),
        features=options.features or "",
        audio=options.audio or "",
        log=False,
    )


def _read_dialogues(options):
    from kseq.data import read_dialogue_corpus

    return read_dialogue_corpus(*_train_and_validation(options), log=False)


def _read_text(options):
    from kseq.data import read_text_corpus

    return read_text_corpus(
        *_train_and_validation(options), *(options.columns or ()), log=False
    )


def _are_spoken(options):
    """Whether the tables have transcripts: their features have lengths."""
    if options.audio:
        return True
    try:
        with zipfile.ZipFile(options.features or "") as file:
            return "lengths.npy" in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _read_documents(options):
    from kseq.data import read_document_corpus

    return read_document_corpus(
        *_train_and_validation(options),
        options.columns or DEFAULT_COLUMNS,
        log=False,
    )


def _read_tagged(options):
    from kseq.data import read_tagging_corpus

    return read_tagging_corpus(
        *_train_and_validation(options),
        options.columns or WORDS_AND_TAGS,
        log=False,
    )


def _train_and_validation(options):
    return options.files[0], (options.validation or [None])[0]
