"""kseq check: the numbers of a corpus, before anything is trained."""

import zipfile

from kseq.data import DataError
from kseq.data.documents.document_labels import DEFAULT_COLUMNS
from kseq.data.first_rows import read_first_rows
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS as WORDS_AND_TAGS
from kseq.start_keras import OPTIONAL, start_keras


def run(options):
    """Prints what a recipe would train on and what it would leave out."""
    kinds = ("documents", "tags", "dialogues", "text", "features", "audio")
    given = [f"--{name}" for name in kinds if getattr(options, name)]
    if len(given) > 1:
        raise DataError(f"{' and '.join(given)} are mutually exclusive.")
    if given:
        _check_one_file_each(options, given[0])
    if _sample_rate(options) and not options.audio:
        raise DataError("--resample is for recordings: give --audio.")
    content = _content(options)
    read_first_rows(
        content,
        options.files,
        options.validation or (),
        options.columns or (),
    )
    start_keras(without=OPTIONAL)
    for line in _READERS[content](options).describe():
        print(line)


def _content(options):
    """What the files hold."""
    for name in ("documents", "tags", "dialogues", "text"):
        if getattr(options, name):
            return name
    if _are_spoken(options):
        return "transcripts"
    return "captions" if options.features else "pairs"


def _check_one_file_each(options, name):
    if len(options.files) > 1 or len(options.validation or ()) > 1:
        raise DataError(
            f"{name} takes one file, and one for --validation. A pattern "
            "in quotes names several."
        )


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
        resample=_sample_rate(options),
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


def _sample_rate(options):
    """To which recordings are resampled, or 0."""
    return getattr(options, "resample", None) or 0


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


_READERS = {
    "captions": _read_captions,
    "dialogues": _read_dialogues,
    "documents": _read_documents,
    "pairs": _read_pairs,
    "tags": _read_tagged,
    "text": _read_text,
    "transcripts": _read_transcripts,
}
