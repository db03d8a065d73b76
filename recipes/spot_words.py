"""Recognizes single spoken words: built-in Morse code, or your recordings.

kseq train spot_words --train commands.tsv --audio recordings
Built-in words in Morse code, one CPU core, seed 1: 4 minutes, accuracy 98 %.
"""

import dataclasses

import kseq
from kseq import data, evaluation, layers, models, serving, training
from kseq.command_line import option_types as options

# What the built-in corpus says in Morse code.
WORDS = (
    *("yes", "no", "up", "down", "left"),
    *("right", "on", "off", "stop", "go"),
)


@dataclasses.dataclass(frozen=True)
class Config(
    options.SpeechOptions,
    options.TrainingOptions,
    options.LossOptions,
):
    """Trains a classifier on recordings of single words and exports it."""

    train: str | None = None  # table or prepared folder; default: Morse code
    columns: tuple[str, ...] = ()  # names or numbers of file and word
    run: options.RunPath = "runs/words"
    from_: str = ""  # a run to fine-tune, with its weights and sizes
    balanced: bool = False  # give rare words the weight of common ones
    max_seconds: options.Seconds = 5.0
    units: options.EvenSize = 128
    dropout: options.Rate = 0.2
    steps: options.PositiveInt = 3000
    batch_tokens: options.PositiveInt = 6000  # frames
    learning_rate: options.PositiveFloat = 0.002
    calibrate: bool = False  # fit a temperature to validation data


MORSE = Config(
    run="runs/morse_words",
    num_mels=20,
    units=48,
    pyramid_layers=2,  # of four frames, three would make one: a dot has two
    dropout=0.0,
    stretch=0.0,
    masks=0,
    steps=1000,
    evaluate_every=100,
    warmup_steps=50,
    learning_rate=0.005,
    ema=0.98,
)


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_)
    corpus = start.prepare(
        data.prepare_speech,
        *(config.train, config.validation, config.columns),
        **config.speech_arguments(),
        words=WORDS,
    )
    words = tuple(sorted({*corpus.train.labels}))
    batches = data.labelled_batches(
        *(corpus.features, corpus.train.numbers, corpus.train.labels, words),
        batch_tokens=config.batch_tokens,
        seed=config.seed,
        balanced=config.balanced,
    )

    frames = corpus.features.preprocessor
    with kseq.devices.device_strategy().scope():
        pyramid = layers.PyramidalEncoder(
            config.units,
            config.pyramid_layers,
            dropout=config.dropout,
            augment=layers.SpecAugment(**config.augmentation_arguments()),
        )
        model = models.FeatureClassifier(
            *(frames.num_features, len(words)),
            source_layer=pyramid,
            attention_units=config.units,
            dropout=config.dropout,
            dtype=config.dtype,
        )
        training.compile_model(model, config)
    classifier = serving.Classifier(model, corpus.preprocessor, words)
    start.initialize(classifier)
    run.save(classifier)

    of_frames = serving.Classifier(model, frames, words)
    held_out = evaluation.Classifications(
        of_frames.predictor(64), corpus.validation.labelled("frames")
    )
    training.fit(
        model,
        batches,
        training.Checkpoints(
            run, monitor="val_loss", mode="min", **config.checkpoint_arguments()
        ),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out)],
        facts=corpus.describe(),
    )

    name = corpus.preprocessor.input_name
    held_out = corpus.validation.labelled(name)
    training.export_and_test(
        *(run, evaluation.Classifications, corpus.test.labelled(name)),
        calibrate_on=held_out if config.calibrate else None,
    )


if __name__ == "__main__":
    kseq.run_recipe(main, Config(), without_files=MORSE, corpus="transcripts")
