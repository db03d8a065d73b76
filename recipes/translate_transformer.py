"""Translates with the Transformer: your two files, or the built-in dates.

kseq train translate_transformer --train train.de train.en
Multi30k German to English, one CPU core, seed 1: 38 minutes, BLEU 43.6.
"""

import dataclasses
from typing import Annotated, Literal

import kseq
from kseq import data, decoding, evaluation, models, serving, training
from kseq.command_line import option_types as options


@dataclasses.dataclass(frozen=True)
class Config(
    options.TranslationOptions,
    options.FineTuningOptions,
    options.TransformerOptions,
    options.GenerationLossOptions,
):
    """Trains a Transformer on pairs of sentences and exports it."""

    run: options.RunPath = "runs/transformer"
    layers: options.SmallInt = 4  # of the encoder and of the decoder
    encoder_layers: options.SmallIntOrZero = 0  # 0: as many as --layers
    decoder_layers: options.SmallIntOrZero = 0  # 0: as many as --layers
    model_dim: Annotated[options.EvenSize, options.MultipleOf("heads")] = 128
    ffn_dim: options.Size = 256
    heads: options.SmallInt = 4
    positions: options.Positions = "rotary"
    share_embeddings: bool = True  # one embedding, if there is one vocabulary
    tie_output: bool = True  # the target embedding is the output matrix
    output_bias: bool = False  # add a bias to the logits
    norm_epsilon: options.Epsilon = 1e-5  # added to the variance
    source_end: bool = True  # attend to the end token of the source
    steps: options.PositiveInt = 6500
    learning_rate: options.PositiveFloat = 0.005
    warmup_steps: options.PositiveInt = 2000
    ema: options.Rate = 0.0
    averaged: options.SmallInt = 8  # checkpoints averaged, without --ema
    average_of: Literal["last", "best"] = "last"  # or best by validation

    def unread(self):
        """Options without effect, which are refused, and what they need."""
        if self.encoder_layers and self.decoder_layers:
            yield "no --encoder-layers or no --decoder-layers", ("layers",)
        if len(self.pieces) > 1:
            yield "one type of --pieces", ("share_embeddings",)
        if self.ema:
            of_average = ("averaged", "average_of")
            yield "--ema 0: moving averages are exported instead", of_average


DATES = Config(
    run="runs/dates_transformer",
    vocab_size=1500,
    dropout=0.1,
    steps=1000,
    warmup_steps=400,
)


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_, config.new_tokenizer)
    corpus = start.prepare(
        *(data.prepare_pairs, config.train, config.validation, config.columns),
        weights=config.weights,
        tokenizers=start.pair_tokenizers(config.vocab_size, config.pieces),
    )
    config = training.choose_dropout(run, config, corpus)
    source, target = corpus.tokenizers
    both = (data.TextPreprocessor(source), target)
    pairs = corpus.tokenized(both[0])
    batches = data.training_batches(
        pairs, weights=corpus.weights, **config.batch_arguments()
    )

    with kseq.devices.device_strategy().scope():
        model = models.Transformer(
            *(source.vocab_size, target.vocab_size),
            num_encoder_layers=config.encoder_layers or config.layers,
            num_decoder_layers=config.decoder_layers or config.layers,
            model_dim=config.model_dim,
            ffn_dim=config.ffn_dim,
            num_heads=config.heads,
            dropout=config.dropout,
            piece_dropout=config.piece_dropout,
            share_embeddings=config.share_embeddings
            and source.shares_vocabulary(target),
            tie_output=config.tie_output,
            output_bias=config.output_bias,
            norm_epsilon=config.norm_epsilon,
            source_end=config.source_end,
            max_length=max(config.max_length, 1024),
            dtype=config.dtype,
            **config.block_arguments(),
        )
        training.compile_model(model, config, beta_2=0.98, epsilon=1e-9)
    beam = decoding.BeamSearch(config.beam_size)
    limit = pairs.source_limit(config.max_length)
    generator = serving.Generator(
        *(model, data.TextPreprocessor(source, limit), target, beam),
        max_length=pairs.answer_limit(config.max_length),
        training_length=pairs.longest_target(config.max_length),
        length_ratio=pairs.length_ratio(config.max_length),
    )
    start.initialize(generator)
    kind = {"last": "keep", "best": "keep_best"}[config.average_of]
    kept = {} if config.ema else {kind: config.averaged}
    run.save(generator, **kept)
    training.pretrain_translator(run, model, pairs, target, config)

    greedy = generator.with_search(decoding.GreedySearch())
    metrics = evaluation.metrics_named(config.metrics)
    held_out = evaluation.Translations(
        greedy.predictor(128), corpus.examples("validation"), metrics
    )
    losses = data.evaluation_batches(corpus.validation, *both)
    training.fit(
        model,
        batches,
        training.Checkpoints(
            run,
            **kept,
            **config.checkpoint_arguments(),
            **evaluation.monitored(config.metrics),
        ),
        steps=config.steps,
        steps_per_epoch=config.evaluate_every,
        callbacks=[training.Validation(run, held_out, losses)],
        facts=corpus.describe(),
    )

    test = corpus.examples("test")
    training.export_and_test(
        *(run, evaluation.Translations, test, metrics),
        average=None if config.ema else config.averaged,
        average_of=config.average_of,
    )


if __name__ == "__main__":
    kseq.run_recipe(
        main,
        Config(),
        without_files=DATES,
        corpus="pairs",
        presets=options.TRANSFORMER_PRESETS,
    )
