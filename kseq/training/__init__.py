"""What `model.fit` needs around it."""

from kseq.training.attention_picture import attention_picture
from kseq.training.averaging import average_checkpoints, save_average
from kseq.training.checkpoints import Checkpoints
from kseq.training.classification_scores import classification_scores
from kseq.training.device_strategy import (
    device_strategy,
    end_unless_chief,
    is_chief,
)
from kseq.training.ema import ema_weights
from kseq.training.explained_document import (
    ExplainedDocument,
    explained_document,
    explained_documents,
)
from kseq.training.label_report import label_report
from kseq.training.label_validation import LabelValidation
from kseq.training.load_model import load_model
from kseq.training.map_lines import map_lines
from kseq.training.metrics_log import MetricsLog, verbosity
from kseq.training.pretrain import pretrain
from kseq.training.report import report
from kseq.training.run_directory import RunDirectory, RunError
from kseq.training.run_recipe import run_recipe
from kseq.training.scores import translation_scores
from kseq.training.set_seed import set_seed
from kseq.training.validation import Validation
from kseq.training.warmup_inverse_sqrt import WarmupInverseSqrt, noam

__all__ = [
    "Checkpoints",
    "ExplainedDocument",
    "LabelValidation",
    "MetricsLog",
    "RunDirectory",
    "RunError",
    "Validation",
    "WarmupInverseSqrt",
    "attention_picture",
    "average_checkpoints",
    "classification_scores",
    "device_strategy",
    "ema_weights",
    "end_unless_chief",
    "explained_document",
    "explained_documents",
    "is_chief",
    "label_report",
    "load_model",
    "map_lines",
    "noam",
    "pretrain",
    "report",
    "run_recipe",
    "save_average",
    "set_seed",
    "translation_scores",
    "verbosity",
]
