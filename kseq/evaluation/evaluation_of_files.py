"""The evaluation of a model on a user's files."""

import functools

from kseq.data import ParallelText, read_documents
from kseq.evaluation.classifications import Classifications
from kseq.evaluation.translations import Translations
from kseq.serving import ClassifierPredictor, GeneratorPredictor
from kseq.user_error import UserError


@functools.singledispatch
def evaluation_of_files(predictor, source, reference=None, columns=None):
    """Reads what a predictor is to be judged by.

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
    if reference is None:
        raise UserError(
            "This model answers with a text: it needs SOURCE and REFERENCE."
        )
    text = ParallelText(source, reference)
    text.check()
    return Translations(predictor, text.all_pairs())


@evaluation_of_files.register
def _(
    predictor: ClassifierPredictor,
    source,
    reference=None,
    columns=("label", "text"),
):
    if reference is not None:
        raise UserError(
            "This model answers with a label: it needs one file of labels and "
            "texts."
        )
    return Classifications(predictor, read_documents(source, columns))
