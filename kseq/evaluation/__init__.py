"""Evaluation of answers against references and labels."""

from kseq.evaluation.attention_on_evidence import (
    attention_on_evidence,
    attention_on_facts,
    attention_on_letters,
    attention_on_objects,
)
from kseq.evaluation.bit_errors import BitErrors
from kseq.evaluation.calibration import fit_temperature, reliability
from kseq.evaluation.classification_scores import (
    accuracy,
    classification_scores,
    macro_f1,
)
from kseq.evaluation.classifications import Classifications
from kseq.evaluation.comet import Comet
from kseq.evaluation.comparison import Comparison
from kseq.evaluation.error_rates import cer, wer
from kseq.evaluation.expected_chrf import expected_chrf
from kseq.evaluation.generated_texts import (
    caption_evaluation,
    dialogue_evaluation,
    transcript_evaluation,
)
from kseq.evaluation.line_statistics import has_line_statistics
from kseq.evaluation.metrics import (
    bleu,
    chrf,
    distinct_1,
    distinct_2,
    exact_match,
    metrics_named,
    monitored,
    ter,
)
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
    "Comet",
    "Comparison",
    "Retrievals",
    "Score",
    "Taggings",
    "Texts",
    "Translations",
    "accuracy",
    "attention_on_evidence",
    "attention_on_facts",
    "attention_on_letters",
    "attention_on_objects",
    "bleu",
    "caption_evaluation",
    "cer",
    "chrf",
    "classification_scores",
    "dialogue_evaluation",
    "distinct_1",
    "distinct_2",
    "exact_match",
    "expected_chrf",
    "fit_temperature",
    "has_line_statistics",
    "macro_f1",
    "metrics_named",
    "monitored",
    "reliability",
    "report",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "span_f1",
    "ter",
    "transcript_evaluation",
    "wer",
]
