"""The README of a run, updated during training."""

import keras

from kseq.answers.describe_task import describe_task
from kseq.devices import is_chief
from kseq.files.atomic_write import atomic_write
from kseq.process import started_command
from kseq.runs.model_card import Progress, model_card
from kseq.training.metrics_log import best_validation
from kseq.training.optimizer import global_step


class RunReadme(keras.callbacks.Callback):
    """Writes the `README.md` of a run, a model card, at the end of an epoch.

    It must come after `MetricsLog`, whose scores it reads.

    Args:
        checkpoints: `Checkpoints`, whose run and best epoch are described.
        total_steps: int, steps of training in total.
        evaluation: that of `Validation`, or None.
        facts: lines of text about the data.
    """

    def __init__(self, checkpoints, total_steps, evaluation=None, facts=()):
        super().__init__()
        self.checkpoints = checkpoints
        self.total_steps = total_steps
        self.evaluation = evaluation
        self.facts = facts

    def on_epoch_end(self, epoch, logs=None):
        run = self.checkpoints.run
        # Pretraining, in the run of a model, has no config.
        if not is_chief() or not run.config.is_file():
            return
        results = getattr(self.evaluation, "results", {})
        progress = Progress(
            step=global_step(self.model),
            total_steps=self.total_steps,
            parameters=self.model.count_params(),
            command=started_command(),
            best=best_validation(
                run, self.checkpoints.monitor, self.checkpoints.mode
            ),
            signatures={name: results[name].signature for name in results},
            examples=self.evaluation and len(self.evaluation),
            facts=self.facts,
        )
        atomic_write(run.readme, model_card(run, progress, describe_task(run)))
