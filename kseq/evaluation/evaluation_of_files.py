"""The evaluation of a model on a user's files."""

import functools

from kseq.data import ParallelText, read_documents
from kseq.evaluation.classifications import Classifications
from kseq.evaluation.translations import Translations
from kseq.serving import ClassifierPredictor, GeneratorPredictor
from kseq.user_error import UserError


@functools.singledispatch
def evaluation_of_files(predictor, source, reference=None, columns=None):
    """Reads the files that a predictor is evaluated on.

    Args:
        predictor: what `kseq.load` returns.
        source: path of the sources, or of labelled documents.
        reference: path of the references, if they have a file of their own.
        columns: names of the label and of the text in a file of documents.

    Returns:
        `Translations` or `Classifications`.

    Raises:
        UserError: if these files are not what the predictor needs.
    """
    raise TypeError(f"Expected a predictor. Received: {predictor!r}")


@evaluation_of_files.register
def _(predictor: GeneratorPredictor, source, reference=None, columns=None):
    check_files(False, source, reference)
    return Translations(predictor, ParallelText(source, reference).all_pairs())


@evaluation_of_files.register
def _(
    predictor: ClassifierPredictor,
    source,
    reference=None,
    columns=("label", "text"),
):
    documents = check_files(True, source, reference, columns)
    return Classifications(predictor, documents)


def check_files(has_labels, source, reference=None, columns=None):
    """Refuses files that a model cannot be evaluated on; needs no model.

    Args:
        has_labels: bool, whether the model answers with a label.
        source: see `evaluation_of_files`.
        reference: see `evaluation_of_files`.
        columns: see `evaluation_of_files`.

    Returns:
        `kseq.data.Documents` if `has_labels`, else None.

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
    for _ in ParallelText(source, reference).source_lines():
        pass  # the end shows whether they have the same number of lines
    return None
