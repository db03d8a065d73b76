"""What a model answers with, each described once: text, labels, tags, ...

An answer is an instance of `AnswerType` in a module of its own. Models,
searches and evaluations are imported when they are needed.
"""

from kseq.answers.answer_type import AnswerType as AnswerType
from kseq.answers.labels import LABELS
from kseq.answers.stored_answers import STORED_ANSWERS
from kseq.answers.tags import TAGS
from kseq.answers.text import TEXT
from kseq.answers.vectors import VECTORS
from kseq.sources import NAMES, source_named, source_of_task

# A text is what a model answers with of which nothing else is said.
ANSWERS = (LABELS, TAGS, STORED_ANSWERS, VECTORS, TEXT)


def types_of_task(task):
    """The source and the answer of a task, see `AnswerType`."""
    answer = next(each for each in ANSWERS if each.fits_task(task))
    return _read_as(source_of_task(task), answer), answer


def types_of_export(signatures):
    """The source and the answer of an export; None if it is not of kseq.

    Args:
        signatures: dict, name -> an object with `inputs` and `outputs`, whose
            keys are their names.
    """
    if "serving_default" not in signatures:
        return None
    [*inputs] = signatures["serving_default"].inputs
    outputs = {*signatures["serving_default"].outputs}
    if len(inputs) != 1 or inputs[0] not in NAMES:
        return None
    source = source_named(inputs[0])
    for answer in ANSWERS:
        is_one = outputs >= answer.outputs and answer.signature in signatures
        if is_one and answer.takes(source):
            return _read_as(source, answer), answer
    return None


def _read_as(source, answer):
    """What is called "text" is read as its answer needs it."""
    return answer.text_source if source.name == "text" else source
