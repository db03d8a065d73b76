"""Selects the answer to a dialogue from those of the training data.

kseq train retrieve_answers --train dialogues.jsonl
Built-in small talk, one CPU core, seed 1: 8 minutes, recall@1 96.9 % of 100.
"""

import dataclasses

import kseq
from kseq import data, evaluation, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(
    options.DialogueOptions,
    options.PairOptions,
    options.OptimizerOptions,
):
    """Trains two encoders, of turns and of answers, and exports an index."""

    train: options.DataFile | None = None  # file; default: small talk
    run: options.RunPath = "runs/retrieval"
    embedding_dim: options.Size = 256
    units: options.Size = 256  # of each direction
    dim: options.Size = 256  # of the vectors that are compared
    dropout: options.Rate = 0.2
    steps: options.PositiveInt = 4000
    evaluate_every: options.PositiveInt = 500
    patience: options.NonNegativeInt = 4
    batch_tokens: options.PositiveInt = 8000
    learning_rate: options.PositiveFloat = 0.001
    warmup_steps: options.PositiveInt = 400
    ema: options.Rate = 0.998


SMALL_TALK = Config(
    run="runs/small_talk_retrieval",
    vocab_size=800,
    embedding_dim=64,
    units=64,
    dim=128,
    dropout=0.1,
    steps=1500,
    evaluate_every=250,
    batch_tokens=4096,
    learning_rate=0.004,
    warmup_steps=100,
    ema=0.99,
    dtype="float32",
)


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_, config.new_tokenizer)
    corpus = data.read_dialogue_corpus(
        config.train, config.validation, max_turns=config.max_turns
    )
    tokenizer = start.tokenizer(corpus.train.lines(), config.vocab_size)
    preprocessor = data.DialoguePreprocessor(
        tokenizer, max_turns=config.max_turns, max_pieces=config.max_pieces
    )
    both = (preprocessor, tokenizer)  # turns and answers share a vocabulary
    pairs = data.tokenize_pairs(corpus.train.pairs(), *both)
    batches = data.training_batches(pairs, **config.batch_arguments())

    with kseq.devices.device_strategy().scope():
        model = models.DualEncoder(
            tokenizer.vocab_size,
            embedding_dim=config.embedding_dim,
            units=config.units,
            dim=config.dim,
            dropout=config.dropout,
            dtype=config.dtype,
        )
        training.freeze(model, config.freeze, config.lora)
        model.compile(
            training.build_optimizer(config),
            clip_norm=1.0,
            **config.compile_arguments(),
        )
    answers = list(dict.fromkeys(corpus.train.answers))
    retriever = serving.Retriever(model, *both, answers)
    start.initialize(retriever)
    run.save(retriever)

    held_out = evaluation.Retrievals(
        retriever.predictor(64), corpus.validation.sample(1000)
    )
    losses = data.evaluation_batches(corpus.validation.pairs(), *both)
    training.fit(
        model,
        batches,
        training.Checkpoints(
            run, monitor="val_recall_at_1", **config.checkpoint_arguments()
        ),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out, losses)],
        facts=corpus.describe(),
    )

    training.export_and_test(run, evaluation.Retrievals, corpus.test)


if __name__ == "__main__":
    kseq.run_recipe(
        main, Config(), without_files=SMALL_TALK, corpus="dialogues"
    )
