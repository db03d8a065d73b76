"""Callbacks and setup for `model.fit`."""

from kseq.training.checkpoints import Checkpoints
from kseq.training.ema import ema_weights
from kseq.training.fine_tuning import FineTuning
from kseq.training.fit import fit
from kseq.training.metrics_log import MetricsLog, verbosity
from kseq.training.pretrain import pretrain
from kseq.training.set_seed import set_seed
from kseq.training.validation import Validation
from kseq.training.warmup_inverse_sqrt import WarmupInverseSqrt

__all__ = [
    "Checkpoints",
    "FineTuning",
    "MetricsLog",
    "Validation",
    "WarmupInverseSqrt",
    "ema_weights",
    "fit",
    "pretrain",
    "set_seed",
    "verbosity",
]
