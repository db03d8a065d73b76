"""Tags each word of a sentence: sequence labelling.

kseq train tag_words --train train.conll
Built-in journeys, one CPU core, seed 1: 82 seconds, accuracy 100 %.
"""

import dataclasses
from typing import Literal

import kseq
from kseq import data, evaluation, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(
    options.FineTuningOptions,
    options.WordVectorOptions,
    options.TransformerOptions,
    options.LossOptions,
):
    """Trains a tagger on sentences with a tag for each word; exports it."""

    train: str | None = None  # file or prepared folder; default: journeys
    validation: str | None = None  # default: held out of --train
    columns: tuple[str, str] = ("words", "tags")  # names or numbers
    run: options.RunPath = "runs/tagger"
    model: Literal["lstm", "transformer"] = "lstm"
    vocab_size: options.VocabSize = 8000  # maximum number of pieces
    dim: options.Size = 128  # of embeddings and states
    layers: options.Size = 2
    heads: options.SmallInt = 4  # of the Transformer
    dropout: options.Rate = 0.3
    piece_dropout: options.Rate = 0.1
    steps: options.PositiveInt = 2000
    batch_pieces: options.PositiveInt = 2048
    learning_rate: options.PositiveFloat = 0.003
    label_smoothing: options.Rate = 0.0
    calibrate: bool = False  # fit a temperature to validation data


JOURNEYS = Config(
    run="runs/journeys",
    vocab_size=400,
    dim=64,
    layers=1,
    dropout=0.1,
    piece_dropout=0.0,
    steps=600,
    evaluate_every=200,
    learning_rate=0.005,
)


def build_model(config, vocab_size, num_tags):
    shared = {
        "vocab_size": vocab_size,
        "num_tags": num_tags,
        "num_layers": config.layers,
        "dropout": config.dropout,
        "piece_dropout": config.piece_dropout,
        "dtype": config.dtype,
    }
    if config.model == "transformer":
        return models.TransformerTagger(
            model_dim=config.dim,
            ffn_dim=4 * config.dim,
            num_heads=config.heads,
            **config.block_arguments(),
            **shared,
        )
    return models.LSTMTagger(
        embedding_dim=config.dim, units=2 * config.dim, **shared
    )


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_, config.new_tokenizer)
    corpus = start.prepare(
        data.prepare_tags,
        *(config.train, config.validation, config.columns),
        vocab_size=config.vocab_size,
        tokenizer=start.kept_tokenizer(),
    )
    preprocessor = data.WordPreprocessor(corpus.tokenizer)
    batches = data.tagging_batches(
        corpus.tokenized(preprocessor),
        corpus.train_tags,
        corpus.tags,
        batch_pieces=config.batch_pieces,
        seed=config.seed,
    )

    with kseq.devices.device_strategy().scope():
        model = build_model(config, preprocessor.vocab_size, len(corpus.tags))
        start.initialize_embedding(model, config, corpus.tokenizer)
        training.compile_model(model, config)
    tagger = serving.Tagger(model, preprocessor, corpus.tags)
    start.initialize(tagger)
    run.save(tagger, more=start.files)

    held_out = evaluation.Taggings(tagger.predictor(), corpus.validation)
    training.fit(
        model,
        batches,
        training.Checkpoints(
            run, monitor="val_accuracy", **config.checkpoint_arguments()
        ),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out)],
        facts=[*corpus.describe(), *start.facts],
    )

    training.export_and_test(
        *(run, evaluation.Taggings, corpus.test),
        calibrate_on=corpus.validation if config.calibrate else None,
    )


if __name__ == "__main__":
    kseq.run_recipe(main, Config(), without_files=JOURNEYS, corpus="tags")
