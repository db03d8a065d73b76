"""Callbacks and setup for `model.fit`."""

from kseq.training.checkpoints import Checkpoints
from kseq.training.compile_model import compile_model
from kseq.training.export_and_test import export_and_test
from kseq.training.fine_tuning import FineTuning, freeze
from kseq.training.fit import fit
from kseq.training.fit_ngrams import fit_ngrams
from kseq.training.low_rank_optimizer import LowRankOptimizer
from kseq.training.metrics_log import MetricsLog, best_validation, verbosity
from kseq.training.optimizer import (
    build_optimizer,
    ema_weights,
    warm_up_averages,
)
from kseq.training.pretrain import (
    pretrain,
    pretrain_classifier,
    pretrain_translator,
)
from kseq.training.range_test import RangeTest
from kseq.training.start_run import choose_dropout, set_seed, start_run
from kseq.training.validation import Validation
from kseq.training.warmup_inverse_sqrt import WarmupInverseSqrt

__all__ = [
    "Checkpoints",
    "FineTuning",
    "LowRankOptimizer",
    "MetricsLog",
    "RangeTest",
    "Validation",
    "WarmupInverseSqrt",
    "best_validation",
    "build_optimizer",
    "choose_dropout",
    "compile_model",
    "ema_weights",
    "export_and_test",
    "fit",
    "fit_ngrams",
    "freeze",
    "pretrain",
    "pretrain_classifier",
    "pretrain_translator",
    "set_seed",
    "start_run",
    "verbosity",
    "warm_up_averages",
]
