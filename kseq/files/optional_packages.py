"""Packages that some options need, found without importing them."""

import importlib.util
import shutil

from kseq.user_error import UserError

COMET_PROGRAM = "comet-score"
# Modules that tokenizers and stemmers of metrics need, and what installs them.
_OF_METRICS = {
    "bleu_ja": ("MeCab", "sacrebleu[ja]"),
    "bleu_ko": ("mecab_ko", "sacrebleu[ko]"),
    "rouge_1_stem": ("nltk", "kseq[rouge]"),
    "rouge_2_stem": ("nltk", "kseq[rouge]"),
    "rouge_l_stem": ("nltk", "kseq[rouge]"),
}


def check_metrics(names):
    """UserError for a metric whose package or program is not installed."""
    for name in names:
        module, package = _OF_METRICS.get(name, ("sacrebleu", "sacrebleu"))
        if importlib.util.find_spec(module) is None:
            raise UserError(f"{name} needs a package: pip install '{package}'")
    if "comet" in names and shutil.which(COMET_PROGRAM) is None:
        raise UserError(
            f"comet needs the program {COMET_PROGRAM}: pipx install "
            "unbabel-comet"
        )


def check_trackers(names):
    """UserError for a tracker whose package is not installed."""
    for name in names:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:  # or a folder of this name
            raise UserError(
                f"--track {name} needs its package: pip install {name}"
            )
