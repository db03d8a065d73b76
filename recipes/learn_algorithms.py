"""Trains a neural Turing machine to run an algorithm.

kseq train learn_algorithms --task copy
One CPU core, seed 1: 2 minutes, no wrong bit at lengths 50 and 120.
"""

import dataclasses
from typing import Literal

import kseq
from kseq import data, evaluation, layers, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(options.TrainingOptions):
    """Trains a Neural Turing machine or an LSTM on a task and exports it."""

    task: Literal["copy", "repeat_copy", "recall", "ngrams", "sort"] = "copy"
    run: options.RunPath = "runs/algorithm"
    model: Literal["ntm", "lstm"] = "ntm"
    controller: Literal["dense", "lstm"] = "lstm"  # of the Turing machine
    units: options.Size = 100  # of the controller, or of each LSTM
    num_layers: options.Size = 3  # of the LSTM
    slots: options.Slots = 128  # of the memory
    slot_dim: options.Size = 20
    read_heads: options.Size = 1
    write_heads: options.Size = 1
    initial_memory: Literal["constant", "random"] = "constant"  # of all slots
    steps: options.PositiveInt = 5000
    evaluate_every: options.PositiveInt = 500
    batch_size: options.PositiveInt = 16  # sequences
    learning_rate: options.PositiveFloat = 0.001  # constant
    ema: options.Rate = 0.999  # of the moving averages of the weights
    examples: options.PositiveInt = 256  # for validation, and for each test

    def unread(self):
        """Options without effect, which are refused, and what they need."""
        if self.model == "ntm":
            yield "--model lstm", ("num_layers",)
        else:
            of_memory = ("slots", "slot_dim", "initial_memory")
            heads = ("read_heads", "write_heads")
            yield "--model ntm", ("controller", *of_memory, *heads)


def build_task(config):
    return {
        "copy": data.algorithms.CopySequence(),
        "repeat_copy": data.algorithms.RepeatCopy(),
        "recall": data.algorithms.AssociativeRecall(),
        "ngrams": data.algorithms.DynamicNgrams(),
        "sort": data.algorithms.PrioritySort(),
    }[config.task]


def build_cell(config, keras):
    if config.model == "lstm":
        return keras.layers.StackedRNNCells(
            [
                keras.layers.LSTMCell(config.units)
                for _ in range(config.num_layers)
            ]
        )
    return layers.NeuralTuringMachine(
        config.units,
        slots=config.slots,
        slot_dim=config.slot_dim,
        read_heads=config.read_heads,
        write_heads=config.write_heads,
        initial_memory=config.initial_memory,
        controller=config.controller,
        controller_units=config.units,
    )


def main(config):
    import keras

    run, config = training.start_run(config)

    task = build_task(config)
    batches = data.binary_batches(task, config.batch_size, config.seed)
    examples = data.binary_examples(task, config.examples, config.seed)

    with kseq.devices.device_strategy().scope():
        model = models.BinaryRNN(
            task.input_dim,
            task.output_dim,
            build_cell(config, keras),
        )
        adam = keras.optimizers.Adam(
            config.learning_rate, use_ema=True, ema_momentum=config.ema
        )
        training.warm_up_averages(adam)
        model.compile(
            adam,
            clip_norm=1.0,
            **config.compile_arguments(),
        )
    preprocessor = data.VectorPreprocessor(task.input_dim)
    transducer = serving.Transducer(model, preprocessor)
    run.save(transducer)

    held_out = evaluation.BitErrors(transducer.predictor(), {"": examples})
    training.fit(
        model,
        batches,
        training.Checkpoints(
            run, monitor="val_cost", mode="min", save_every=config.save_every
        ),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out, pictures=1)],
    )

    sets = {
        name: data.binary_examples(harder, config.examples, config.seed + 1)
        for name, harder in task.harder().items()
    }
    best_possible = getattr(task, "best", None)  # of n-grams
    training.export_and_test(run, evaluation.BitErrors, sets, best_possible)


if __name__ == "__main__":
    kseq.run_recipe(main, Config(), without_files=Config())
