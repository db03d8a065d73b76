"""Trains a language model on your text, or on matching brackets.

kseq train write_text --train shakespeare.txt
Built-in brackets, two CPU cores, seed 1: 4.5 minutes, 99.0 % of them match.
"""

import dataclasses
from typing import Literal

import kseq
from kseq import data, decoding, evaluation, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(
    options.TrainingOptions,
    options.TransformerOptions,
    options.LossOptions,
):
    """Trains a language model on running text and exports it."""

    train: str | None = None  # text or prepared folder; default: brackets
    validation: str | None = None  # default: the end of --train
    column: str = "text"  # column of the documents in a table
    run: options.RunPath = "runs/text"
    tokens: Literal["char", "bpe", "unigram"] = "char"
    vocab_size: options.VocabSize = 8000  # maximum number of tokens
    length: options.RowLength = 256  # tokens of a row
    model: Literal["transformer", "lstm"] = "transformer"
    layers: options.SmallInt = 6
    model_dim: options.Size = 256
    ffn_dim: options.Size = 1024  # or units of an LSTM
    heads: options.SmallInt = 8
    positions: options.Positions = "rotary"
    dropout: options.Rate = 0.2
    steps: options.PositiveInt = 5000
    batch_size: options.PositiveInt = 32  # rows
    learning_rate: options.PositiveFloat = 0.002
    warmup_steps: options.PositiveInt = 400
    label_smoothing: options.Rate = 0.0
    temperature: options.PositiveFloat = 0.8
    top_k: options.NonNegativeInt = 0  # only the K most probable pieces; 0: all
    stop: tuple[str, ...] = ()  # strings that end a continuation
    written: options.PositiveInt = 256  # maximum tokens of a continuation


BRACKETS = Config(
    run="runs/brackets",
    length=64,
    layers=3,
    model_dim=128,
    ffn_dim=256,
    heads=4,
    dropout=0.0,
    steps=1500,
    batch_size=64,
    written=64,
)


def build_model(config, vocab_size):
    sizes = {
        "num_layers": config.layers,
        "dropout": config.dropout,
        "max_length": config.length,
        "dtype": config.dtype,
    }
    if config.model == "lstm":
        return models.LSTMLM(
            vocab_size,
            embedding_dim=config.model_dim,
            units=config.ffn_dim,
            **sizes,
        )
    return models.TransformerLM(
        vocab_size,
        model_dim=config.model_dim,
        ffn_dim=config.ffn_dim,
        num_heads=config.heads,
        **config.block_arguments(),
        **sizes,
    )


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run)
    corpus = start.prepare(
        *(data.prepare_text, config.train, config.validation, config.column),
        vocab_size=config.vocab_size,
        tokens=config.tokens,
        tokenizer=start.kept_tokenizer(),
    )
    tokenizer = corpus.tokenizer
    batches = data.running_text_batches(
        corpus.tokenized(tokenizer),
        batch_size=config.batch_size,
        length=config.length,
        seed=config.seed,
    )

    with kseq.devices.device_strategy().scope():
        model = build_model(config, tokenizer.vocab_size)
        training.compile_model(model, config, beta_2=0.99)
    writer = serving.Generator(
        model,
        data.PromptPreprocessor(tokenizer, config.length),
        tokenizer,
        decoding.Sampling(config.temperature, config.top_k, length_penalty=0.0),
        max_length=config.written,
        stop=config.stop,
    )
    run.save(writer)

    def evaluate(predictor, documents):
        return evaluation.Texts(
            predictor,
            documents,
            config.length,
            samples=20 if config.train else 200,
            is_valid=corpus.is_valid,
        )

    held_out = evaluate(writer.predictor(), corpus.validation)
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

    training.export_and_test(run, evaluate, corpus.test, tests_export=False)


if __name__ == "__main__":
    kseq.run_recipe(
        main,
        Config(),
        without_files=BRACKETS,
        corpus="text",
        presets=options.TRANSFORMER_PRESETS,
    )
