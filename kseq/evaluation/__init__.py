"""Evaluation of answers against references and labels."""

from kseq.evaluation.accuracy import accuracy
from kseq.evaluation.bit_errors import BitErrors
from kseq.evaluation.bleu import bleu
from kseq.evaluation.chrf import chrf
from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.classifications import Classifications
from kseq.evaluation.distinct import distinct_1, distinct_2
from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.exact_match import exact_match
from kseq.evaluation.facts_found import facts_found
from kseq.evaluation.letters_heard import letters_heard
from kseq.evaluation.macro_f1 import macro_f1
from kseq.evaluation.metrics import metrics_named, monitored
from kseq.evaluation.objects_found import objects_found
from kseq.evaluation.of_captions import of_captions
from kseq.evaluation.of_dialogues import of_dialogues
from kseq.evaluation.of_transcripts import of_transcripts
from kseq.evaluation.report import report
from kseq.evaluation.retrievals import Retrievals
from kseq.evaluation.rouge import rouge_1, rouge_2, rouge_l
from kseq.evaluation.score import Score
from kseq.evaluation.span_f1 import span_f1
from kseq.evaluation.taggings import Taggings
from kseq.evaluation.texts import Texts
from kseq.evaluation.translations import Translations

__all__ = [
    "BitErrors",
    "Classifications",
    "Retrievals",
    "Score",
    "Taggings",
    "Texts",
    "Translations",
    "accuracy",
    "bleu",
    "cer",
    "chrf",
    "classification_scores",
    "distinct_1",
    "distinct_2",
    "exact_match",
    "facts_found",
    "letters_heard",
    "macro_f1",
    "metrics_named",
    "monitored",
    "objects_found",
    "of_captions",
    "of_dialogues",
    "of_transcripts",
    "report",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "span_f1",
    "wer",
]
