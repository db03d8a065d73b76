"""The evaluation of a model on a user's files."""

import functools
import logging

from kseq.data import (
    DataError,
    ParallelText,
    read_documents,
    read_tagged_sentences,
)
from kseq.data.text_files import LONGEST_LINE
from kseq.evaluation.classifications import Classifications
from kseq.evaluation.taggings import Taggings
from kseq.evaluation.translations import Translations
from kseq.one_line import escaped_line
from kseq.progress import progress
from kseq.serving import (
    ClassifierPredictor,
    GeneratorPredictor,
    TaggerPredictor,
)
from kseq.user_error import UserError

_log = logging.getLogger(__name__)


@functools.singledispatch
def evaluation_of_files(predictor, source, reference=None, columns=None):
    """Reads the files that a predictor is evaluated on.

    Pairs with a line over 64 KiB and documents over a million bytes are left
    out of the scores, with a warning.

    Args:
        predictor: what `kseq.load` returns.
        source: path of the sources, of labelled documents, or of tagged
            sentences.
        reference: path of the references, if they have a file of their own.
        columns: names of the label and of the text in a file of documents, or
            of words and tags.

    Returns:
        `Translations`, `Classifications` or `Taggings`.

    Raises:
        UserError: if these files are not what the predictor needs.
    """
    raise TypeError(f"Expected a predictor. Received: {predictor!r}")


@evaluation_of_files.register
def _(predictor: GeneratorPredictor, source, reference=None, columns=None):
    return evaluation_of(predictor, read_files(False, source, reference))


@evaluation_of_files.register
def _(
    predictor: ClassifierPredictor,
    source,
    reference=None,
    columns=("label", "text"),
):
    return evaluation_of(
        predictor, read_files(True, source, reference, columns)
    )


@evaluation_of_files.register
def _(
    predictor: TaggerPredictor,
    source,
    reference=None,
    columns=("words", "tags"),
):
    if reference is not None:
        raise UserError(
            "This model tags words: it needs one file of sentences and tags."
        )
    return Taggings(predictor, read_tagged_sentences(source, columns))


def evaluation_of(predictor, files):
    """The evaluation on what `read_files` has returned."""
    if isinstance(files, ParallelText):
        return Translations(predictor, files.all_pairs())
    return Classifications(predictor, files)


def read_files(has_labels, source, reference=None, columns=None):
    """Reads and checks the files of an evaluation; needs no model.

    Args:
        has_labels: bool, whether the model answers with a label.
        source: see `evaluation_of_files`.
        reference: see `evaluation_of_files`.
        columns: see `evaluation_of_files`.

    Returns:
        `kseq.data.Documents` if `has_labels`, else `kseq.data.ParallelText`.

    Raises:
        UserError: if they are broken, empty, or differ in length.
    """
    if has_labels and reference is not None:
        raise UserError(
            "This model answers with a label: it needs one file of labels and "
            "texts."
        )
    if has_labels:
        return read_documents(source, columns)
    if reference is None:
        raise UserError(
            "This model answers with a text: it needs SOURCE and REFERENCE."
        )
    text = ParallelText(source, reference)
    with progress(f"Reading {escaped_line(text)}"):
        report = text.count()
    left_out = f"{report.too_long} of {report.pairs} pairs"
    if report.too_long == report.pairs:
        raise DataError(
            f"{text}: there is no pair to evaluate on; {left_out} have a line "
            f"over {LONGEST_LINE} bytes."
        )
    if report.too_long:
        _log.warning(
            escaped_line(
                f"{text}: {left_out} are left out of the scores: a line is "
                f"over {LONGEST_LINE} bytes."
            )
        )
    return text
