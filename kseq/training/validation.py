"""Validation by real decoding, inside `fit`."""

import itertools

import keras
import tensorflow as tf

from kseq.evaluation.translate_all import real_parts, strings, translate_all
from kseq.evaluation.translation_scores import translation_scores
from kseq.pictures.attention_picture import attention_picture
from kseq.training.ema import ema_weights
from kseq.training.show_samples import show_samples


class Validation(keras.callbacks.Callback):
    """Translates the validation sources at the end of an epoch.

    It adds to the logs, where early stopping, checkpoints and metrics behind
    it find them: `val_loss`, `val_perplexity` and `val_accuracy` of the
    references, and `val_bleu`, `val_chrf` and `val_exact_match` of the
    translations. TensorBoard and `samples/` get a table of sources,
    references and outputs, and TensorBoard attention maps of the same few
    sentences. A model with moving averages of its weights is validated with
    them.

    Args:
        run: `RunDirectory`.
        translator: has `translate` and `explain`, as
            `kseq.serving.Translator` does, over the model in training.
        pairs: finite `tf.data.Dataset` of strings (source, target).
        batches: the same pairs, in batches for `evaluate`.
        samples: int, sentences in the table.
        pictures: int, sentences whose attention is drawn.
    """

    def __init__(
        self, run, translator, pairs, batches, *, samples=20, pictures=4
    ):
        super().__init__()
        self.run = run
        self.translator = translator
        self.sources, self.references = strings(pairs)
        self.batches = batches
        self.samples = samples
        self.pictures = pictures

    def on_epoch_end(self, epoch, logs=None):
        with ema_weights(self.model):
            losses = self.model.evaluate(
                self.batches, verbose=0, return_dict=True
            )
            outputs = translate_all(self.translator.translate, self.sources)
            pictures = self._draw()
        scores = translation_scores(outputs, self.references)
        for name in ("loss", "perplexity", "accuracy"):
            logs[f"val_{name}"] = losses[name]
        for name in ("bleu", "chrf", "exact_match"):
            logs[f"val_{name}"] = scores[name]
        rows = zip(self.sources, self.references, outputs, strict=True)
        show_samples(
            self.run,
            step=int(self.model.optimizer.iterations.numpy()),
            columns=("source", "reference", "output"),
            rows=itertools.islice(rows, self.samples),
            pictures=pictures,
        )

    def _draw(self):
        """The attention maps of the first sentences, PNG by name."""
        explained = self.translator.explain(
            tf.constant(self.sources[: self.pictures])
        )
        return {
            f"attention/{number}": attention_picture(weights, source, target)
            for number, (source, target, weights) in enumerate(
                real_parts(explained)
            )
        }
