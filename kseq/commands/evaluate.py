"""kseq evaluate: scores of the answers to a file."""

import functools
import logging

from kseq.commands.abilities import abilities
from kseq.commands.inputs_of_lines import (
    are_resampled,
    check_features,
    max_turns,
    sample_rate,
    stored_features,
)
from kseq.commands.open_predictor import open_predictor
from kseq.data import (
    DataError,
    ParallelText,
    read_captions,
    read_dialogues,
    read_documents,
    read_image_captions,
    read_tagged_sentences,
    read_texts,
    read_transcripts,
)
from kseq.data.documents.document_labels import DEFAULT_COLUMNS
from kseq.data.files.tables import kind_of
from kseq.data.files.text_files import LONGEST_LINE
from kseq.data.first_rows import check_columns
from kseq.data.tags.tagged_rows import DEFAULT_COLUMNS as WORDS_AND_TAGS
from kseq.data.text.corpus import with_references
from kseq.data.text.parallel_text import check_pair_columns
from kseq.evaluation import (
    Classifications,
    Retrievals,
    Taggings,
    Texts,
    Translations,
    caption_evaluation,
    dialogue_evaluation,
    metrics_named,
    transcript_evaluation,
)
from kseq.evaluation.classifications import check_labels
from kseq.evaluation.taggings import check_tags
from kseq.model_path import is_run
from kseq.one_line import escaped_line
from kseq.progress import progress
from kseq.user_error import UserError

_log = logging.getLogger(__name__)


def run(options):
    """Prints the scores of a model on a file."""
    able = abilities(options.path)
    if able.kind not in _KINDS:
        raise UserError(
            f"{able.path} takes {able.source}, which evaluate does not read: "
            "its scores are in its README."
        )
    check_columns(options.columns, 1 if able.source == "prompt" else 2)
    evaluation = _KINDS[able.kind](able, options)
    with progress("Evaluating", len(evaluation), "lines") as advance:
        evaluation.scores(advance)
    for line in evaluation.report():
        print(line)


def _of_documents(able, options):
    check_features(able, options)
    _refuse(options, "text", "images", "audio", "plain", "metrics")
    if options.reference:
        raise UserError(
            "This model answers with a label: it needs one file of labels and "
            "texts."
        )
    columns = options.columns or DEFAULT_COLUMNS
    documents = read_documents(options.source, columns)
    if able.labels:
        check_labels(documents, able.labels)  # before the model is loaded
    return Classifications(open_predictor(options), documents)


def _of_pairs(able, options):
    check_features(able, options)
    _refuse(options, "text", "images", "audio", "plain")
    columns = tuple(options.columns or ())
    text = ParallelText(options.source, options.reference, columns)
    check_pair_columns(columns, [text])
    with progress(f"Reading {escaped_line(text)}"):
        report = _count(text)
    left_out = f"{report.too_long} of {report.pairs} pairs"
    if report.too_long == report.pairs:
        raise DataError(
            f"{text}: there is no pair to evaluate on; {left_out} have a line "
            f"over {LONGEST_LINE} bytes."
        )
    for note in text.notes():
        _log.warning(escaped_line(note))
    if report.too_long:
        _log.warning(
            escaped_line(
                f"{text}: {left_out} are left out of the scores: a line is "
                f"over {LONGEST_LINE} bytes."
            )
        )
    pairs = text.all_pairs()
    if text.target is None:
        pairs = with_references(pairs)
    return Translations(open_predictor(options), pairs, **_metrics(options))


def _count(text):
    try:
        return text.count()
    except DataError as error:
        if text.target is not None or kind_of(text.source):
            raise
        raise UserError(
            f"{error}. This model answers with a text: it needs SOURCE and "
            "REFERENCE, or a table of both."
        ) from None


def _of_tags(able, options):
    check_features(able, options)
    _refuse(options, "text", "images", "audio", "plain", "metrics")
    if options.reference:
        raise UserError(
            "This model tags words: it needs one file of sentences and tags."
        )
    sentences = read_tagged_sentences(
        options.source, options.columns or WORDS_AND_TAGS
    )
    if able.tags:
        check_tags(sentences, able.tags)  # before the model is loaded
    return Taggings(open_predictor(options), sentences)


def _of_dialogues(able, options):
    check_features(able, options)
    _refuse(options, "dialogues", "columns", "images", "audio", "plain")
    if options.reference:
        raise UserError(
            "This model answers in dialogues: it needs one file of them."
        )
    dialogues = read_dialogues(options.source, max_turns(able))
    if able.retrieves:
        _refuse(options, "dialogues", "metrics")
        return Retrievals(open_predictor(options), dialogues)
    return dialogue_evaluation(
        open_predictor(options), dialogues, **_metrics(options)
    )


def _of_transcripts(able, options):
    check_features(able, options)
    _refuse(options, "speech", "images", "plain")
    if options.reference:
        raise UserError(
            "This model transcribes speech: it needs one table of recordings "
            "and transcripts."
        )
    read = functools.partial(
        read_transcripts, options.source, options.columns or ()
    )
    if able.source == "audio":
        transcripts = read(
            audio=options.audio or "",
            sample_rate=sample_rate(able),
            resample=are_resampled(options),
        )
    else:
        _refuse(options, "features", "audio")
        transcripts = read(stored=stored_features(able, options))
    predictor = open_predictor(options)
    return transcript_evaluation(predictor, transcripts, **_metrics(options))


def _metrics(options):
    """The argument `metrics`, if the option is given."""
    if not options.metrics:
        return {}
    return {"metrics": metrics_named(options.metrics)}


def _refuse(options, takes, *names):
    for name in names:
        if getattr(options, name):
            raise UserError(
                f"--{name} is not for this model: {options.path} takes {takes}."
            )


def _of_captions(able, options):
    check_features(able, options)
    _refuse(options, "pictures", "audio")
    if options.reference:
        raise UserError(
            "This model describes pictures: it needs one table of their names "
            "and captions."
        )
    table = options.columns or (), options.plain
    if able.source == "features":
        features = stored_features(able, options)
        captions = read_captions(options.source, features, *table)
    elif options.images:
        captions = read_image_captions(options.source, options.images, *table)
    else:
        raise UserError(
            f"{options.path} expects pictures: give their folder with --images."
        )
    return caption_evaluation(
        open_predictor(options), captions, **_metrics(options)
    )


def _of_texts(able, options):
    check_features(able, options)
    _refuse(options, "prompts", "images", "audio", "plain", "metrics")
    if options.reference:
        raise UserError("This is a language model: it needs one file of text.")
    if not is_run(able.path):
        raise UserError(
            f"{able.path} is an export; only a run can be evaluated on text."
        )
    documents = read_texts(options.source, *(options.columns or ()))
    predictor = open_predictor(options)
    return Texts(predictor, documents, predictor.model.max_length)


_KINDS = {
    "labels": _of_documents,
    "tags": _of_tags,
    "text": _of_pairs,
    "prompt": _of_texts,
    "turns": _of_dialogues,
    "features": _of_captions,
    "image": _of_captions,
    "frames": _of_transcripts,
    "audio": _of_transcripts,
}
