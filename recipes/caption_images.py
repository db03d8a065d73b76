"""Describes pictures: the built-in scenes, or your pictures' features.

kseq train caption_images --train train.tsv --features features.npz
Flickr8k, one CPU core, seed 1: 12 minutes, BLEU 20.9 (five references).
Built-in scenes: 4 minutes, exact match 99.4 %.
"""

import dataclasses
from typing import Literal

import kseq
from kseq import data, decoding, evaluation, layers, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(
    options.PictureOptions,
    options.PairOptions,
    options.RecurrentDecoderOptions,
    options.GenerationLossOptions,
):
    """Trains and exports a decoder that attends to the cells of a picture."""

    run: options.RunPath = "runs/captions"
    vocab_size: options.VocabSize = 3000  # maximum number of pieces
    max_length: options.PositiveInt = 40  # longer ones are skipped
    decoder: Literal["lstm", "transformer"] = "lstm"
    units: options.EvenSize = 384  # of the decoder and of the memory
    embedding_dim: options.Size = 256  # of the LSTM
    coverage: options.NonNegativeFloat = 0.0  # penalty weight, of the LSTM
    context_gate: bool = False  # gate of the context of the LSTM
    decoder_layers: options.SmallInt = 3  # of the Transformer
    num_heads: options.SmallInt = 4  # of the Transformer
    dropout: options.Rate = 0.4
    steps: options.PositiveInt = 2500
    evaluate_every: options.PositiveInt = 500
    patience: options.NonNegativeInt = 6
    batch_tokens: options.PositiveInt = 4096  # cells, or tokens of captions
    learning_rate: options.PositiveFloat = 0.002
    warmup_steps: options.PositiveInt = 500
    ema: options.Rate = 0.998
    beam_size: options.SmallInt = 5

    def unread(self):
        """Options without effect, which are refused, and what they need."""
        if self.decoder == "transformer":
            of_lstm = ("embedding_dim", "coverage", "context_gate")
            yield "--decoder lstm. Received: --decoder transformer", of_lstm
        else:
            yield "--decoder transformer", ("decoder_layers", "num_heads")


SCENES = Config(
    run="runs/scenes",
    vocab_size=350,
    embedding_dim=32,
    units=128,
    order="luong",  # a word is written after a look that knows the last one
    dropout=0.0,
    steps=2000,
    batch_tokens=2048,
    learning_rate=0.005,
    warmup_steps=200,
    label_smoothing=0.0,
    ema=0.99,
)


def build_model(config, grid, vocab_size):
    """A decoder with the cells of a picture as its memory."""
    both = {
        "num_encoder_layers": 0,
        "source_layer": layers.GridEncoder(
            config.units, grid.num_cells, config.dropout
        ),
        "source_dim": grid.num_features,
        "dropout": config.dropout,
        "dtype": config.dtype,
    }
    if config.decoder == "transformer":
        return models.Transformer(
            *(None, vocab_size),
            num_decoder_layers=config.decoder_layers,
            model_dim=config.units,
            ffn_dim=4 * config.units,
            num_heads=config.num_heads,
            **both,
        )
    return models.LSTMSeq2Seq(
        *(None, vocab_size),
        embedding_dim=config.embedding_dim,
        units=config.units,
        attention=layers.attention_named(config.attention, config.units),
        tie_embeddings=True,
        coverage=config.coverage,
        context_gate=config.context_gate,
        **config.recurrent_arguments(),
        **both,
    )


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_, config.new_tokenizer)
    corpus = data.read_caption_corpus(
        *(config.train, config.validation, config.columns),
        features=config.features,
        images=config.images,
        network=data.NetworkOptions(config.network, config.network_weights),
        kept=run.kept,
        plain=config.plain,
    )
    lines = corpus.train.lines()
    tokenizer = start.tokenizer(lines, config.vocab_size, "target")
    both = (corpus.features, tokenizer)
    pairs = data.tokenize_pairs(corpus.train.pairs(), *both)
    batches = data.training_batches(pairs, **config.batch_arguments())

    grid = corpus.features.preprocessor
    with kseq.devices.device_strategy().scope():
        model = build_model(config, grid, tokenizer.vocab_size)
        training.compile_model(model, config)
    beam = decoding.BeamSearch(config.beam_size)
    limit = {"max_length": pairs.answer_limit(config.max_length)}
    served = serving.Generator(
        *(model, corpus.preprocessor, tokenizer, beam), **limit
    )
    start.initialize(served)
    run.save(served, more=corpus.files)

    greedy = decoding.GreedySearch()
    greedy = serving.Generator(model, grid, tokenizer, greedy, **limit)
    losses = data.evaluation_batches(corpus.validation.pairs(), *both)
    held_out = evaluation.caption_evaluation(
        greedy.predictor(128), corpus.validation
    )
    training.fit(
        model,
        batches,
        training.Checkpoints(run, **config.checkpoint_arguments()),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out, losses)],
        facts=corpus.describe(),
    )

    training.export_and_test(run, evaluation.caption_evaluation, corpus.test)


if __name__ == "__main__":
    kseq.run_recipe(main, Config(), without_files=SCENES, corpus="captions")
