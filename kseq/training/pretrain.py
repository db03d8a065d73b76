"""Pretraining of a model on its text alone."""

import math

import keras

from kseq.data import (
    denoising_batches,
    masked_prediction_batches,
    piece_prediction_batches,
)
from kseq.devices import is_chief
from kseq.runs import RunDirectory, RunError
from kseq.runs.checkpoint_files import checkpoint_paths
from kseq.training.checkpoints import Checkpoints
from kseq.training.fit import fit

_STEPS_PER_EPOCH = 250  # after which it is saved


def pretrain(
    run, model, batches, steps, *, learning_rate=0.003, warmup_steps=100
):
    """Trains a model on text without labels or pairs, before its main training.

    The embedding of a classifier, and its recurrent layer over pieces or the
    blocks of its Transformer, learn to predict pieces, by
    `kseq.models.PiecePrediction` or `kseq.models.MaskedPrediction`; its other
    layers stay as they are.
    A sequence-to-sequence model learns to restore texts. Pretraining has its
    own checkpoints, in `pretraining/` of the run: it resumes if it was killed,
    and is skipped once the model has a checkpoint.

    Args:
        run: `RunDirectory`, saved.
        model: a classifier of documents or a sequence-to-sequence model.
        batches: of `kseq.data.piece_prediction_batches`, for a
            `TransformerClassifier` of `kseq.data.masked_prediction_batches`,
            or of `kseq.data.denoising_batches`.
        steps: int, rounded up to a multiple of 250 if there are more.
        learning_rate: float, at its peak; it ends at 0.
        warmup_steps: int, before the peak, which is at half of the steps at
            the latest.

    Raises:
        RunError: where the model cannot learn from text alone.

    Reference:
        Dai and Le 2015, arXiv:1511.01432; Devlin et al. 2019,
        arXiv:1810.04805; Lewis et al. 2019, arXiv:1910.13461.
    """
    if not hasattr(model, "piece_prediction") and not _is_seq2seq(model):
        raise RunError(
            "Pretraining needs a classifier of documents or a "
            "sequence-to-sequence model. "
            f"Received: {model.name}"
        )
    run.check_saved()
    if checkpoint_paths(run.checkpoints / "last"):
        return
    # Not started: its config and its lock are those of the run.
    own = RunDirectory(run.pretraining)
    if is_chief():
        own.path.mkdir(exist_ok=True)
        print("Pretraining on the text alone:", flush=True)

    steps_per_epoch = min(steps, _STEPS_PER_EPOCH)
    steps = math.ceil(steps / steps_per_epoch) * steps_per_epoch
    warmup_steps = min(warmup_steps, steps // 2)
    with model.distribute_strategy.scope():
        learner = _model_to_pretrain(model)
        schedule = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=0.0,
            warmup_target=learning_rate,
            warmup_steps=warmup_steps,
            decay_steps=steps - warmup_steps,
        )
        learner.compile(
            keras.optimizers.Adam(schedule),
            clip_norm=1.0,
            accumulation_steps=model.accumulation_steps,
            jit_compile=model.get_compile_config()["jit_compile"],
        )
    fit(
        learner,
        batches,
        Checkpoints(own, monitor=None, keep=2),
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        is_last=False,
    )
    if _is_seq2seq(model):
        model.set_weights(learner.get_weights())


def pretrain_classifier(run, model, documents, config):
    """Pretrains a classifier to predict pieces of its documents.

    Args:
        run: see `pretrain`.
        model: see `pretrain`; a classifier of documents.
        documents: ids, see `kseq.data.document_batches`.
        config: has `pretraining_steps` (0 for none), `model`, `batch_pieces`,
            and `seed`.
    """
    if config.pretraining_steps:
        text_batches = piece_prediction_batches
        if config.model == "transformer":
            text_batches = masked_prediction_batches
        text = text_batches(
            documents, batch_pieces=config.batch_pieces, seed=config.seed
        )
        pretrain(run, model, text, config.pretraining_steps)


def pretrain_translator(run, model, pairs, tokenizer, config):
    """Pretrains a model to restore the texts of both sides.

    Args:
        run: see `pretrain`.
        model: see `pretrain`; a sequence-to-sequence model.
        pairs: of `kseq.data.tokenize_pairs`.
        tokenizer: of source and target.
        config: has `pretraining_steps`, at 0 of which nothing is done,
            `batch_tokens`, `max_length`, `learning_rate`, `warmup_steps`, and
            `seed`.

    Raises:
        DataError: see `kseq.data.denoising_batches`.
    """
    if config.pretraining_steps:
        text = denoising_batches(
            *(pairs, tokenizer),
            batch_tokens=config.batch_tokens,
            max_length=config.max_length,
            seed=config.seed,
        )
        pretrain(
            *(run, model, text, config.pretraining_steps),
            learning_rate=config.learning_rate,
            warmup_steps=config.warmup_steps,
        )


def _is_seq2seq(model):
    return hasattr(model, "decode_step")


def _model_to_pretrain(model):
    """What is trained: it shares layers with the model, or is a copy of it."""
    if not _is_seq2seq(model):
        return model.piece_prediction()
    learner = type(model).from_config(model.get_config())
    learner.set_weights(model.get_weights())
    for own, weight in zip(learner.weights, model.weights, strict=True):
        own.trainable = weight.trainable  # some may be frozen
    return learner
