"""Validation by generated answers, inside `fit`."""

import html

import keras
import tensorflow as tf

from kseq.devices import from_chief, is_chief
from kseq.files.atomic_write import named_errors
from kseq.terminal import below_keras_bar, progress, single_line
from kseq.training.event_files import event_writer
from kseq.training.optimizer import ema_weights, global_step


class Validation(keras.callbacks.Callback):
    """Evaluates the answers of a model at the end of an epoch.

    The scores are added to the logs as `val_` and their name, for the
    callbacks after it: early stopping, checkpoints and metrics. TensorBoard
    and `samples/` get a table of examples, and TensorBoard pictures. A model
    with moving averages of its weights is validated with them. In a cluster
    the chief alone generates answers, and the others wait for its scores.

    Args:
        run: `RunDirectory`.
        evaluation: of the model in training, such as
            `kseq.evaluation.Translations`.
        batches: the same examples as batches for `model.evaluate`, whose
            losses and metrics are added; or None.
        samples: int, examples in the table.
        pictures: int, examples that are drawn.
    """

    def __init__(
        self, run, evaluation, batches=None, *, samples=20, pictures=4
    ):
        super().__init__()
        self.run = run
        self.evaluation = evaluation
        self.batches = batches
        self.samples = samples
        self.pictures = pictures

    def on_epoch_end(self, epoch, logs=None):
        with ema_weights(self.model), below_keras_bar():
            scores, pictures = self._losses(), {}
            if is_chief():
                scores |= self._scores()
                with progress("Drawing the pictures of validation"):
                    pictures = self.evaluation.pictures(self.pictures)
        logs.update(
            from_chief({f"val_{name}": float(scores[name]) for name in scores})
        )
        if is_chief():
            self._show(pictures)

    def _losses(self):
        if self.batches is None:
            return {}
        with progress("Computing the loss of validation"):
            losses = self.model.evaluate(
                self.batches, verbose=0, return_dict=True
            )
        # Of batches, not of the model.
        return {
            name: loss
            for name, loss in losses.items()
            if name not in ("tokens", "padding")
        }

    def _scores(self):
        count = len(self.evaluation)
        with progress("Validating", count, "examples") as advance:
            return self.evaluation.scores(advance)

    def _show(self, pictures):
        columns = self.evaluation.columns
        table = [columns, ["---"] * len(columns)]
        table += [map(_cell, row) for row in self.evaluation.rows(self.samples)]
        text = "".join(f"| {' | '.join(row)} |\n" for row in table)
        step = global_step(self.model)
        self.run.samples.mkdir(exist_ok=True)
        path = self.run.samples / f"{step:08d}.md"
        with named_errors(path):
            path.write_text(text, encoding="utf-8")

        writer = event_writer(self.run, "validation")
        with writer.as_default(step=step):
            tf.summary.text("samples", text)
            for name, png in pictures.items():
                image = tf.io.decode_png(png, channels=3)
                tf.summary.image(name, image[None])
        writer.flush()


def _cell(text):
    return html.escape(single_line(text, keep="\t")).replace("|", "&#124;")
