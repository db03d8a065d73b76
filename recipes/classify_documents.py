"""Classifies documents, and shows what it attended to.

kseq train classify_documents --train reviews.tsv
Built-in reports, one CPU core, seed 1: 65 seconds, accuracy 100 %.
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
    """Trains a classifier on labelled documents and exports it."""

    train: str | None = None  # file or prepared folder; default: reports
    validation: str | None = None  # default: held out of --train
    columns: tuple[str, ...] = ("label", "text")  # of label and texts
    run: options.RunPath = "runs/classifier"
    model: Literal["hierarchical", "flat", "transformer"] = "hierarchical"
    vocab_size: options.VocabSize = 16_000  # maximum number of pieces
    balanced: bool = False  # give rare labels the weight of common ones
    dim: options.Size = 128  # of embeddings
    units: options.Size = 64  # of each direction
    ngrams: options.Ngrams = 2  # longest n-gram of the bag; 0: no bag
    layers: options.SmallInt = 2  # of the Transformer
    heads: options.SmallInt = 4  # of the Transformer
    dropout: options.Rate = 0.3
    piece_dropout: options.Rate = 0.0
    sentence_dropout: options.Rate = 0.3
    steps: options.PositiveInt = 2000
    batch_pieces: options.PositiveInt = 16_384
    learning_rate: options.PositiveFloat = 0.002
    calibrate: bool = False  # fit a temperature to validation data
    pretraining_steps: options.NonNegativeInt = 0  # on text without labels

    def unread(self):
        """Options without effect, which are refused, and what they need."""
        if self.model == "transformer":
            yield "--model hierarchical or --model flat", ("units",)
        else:
            yield "--model transformer", ("layers",)


REPORTS = Config(
    run="runs/reports",
    vocab_size=1000,
    dim=64,
    units=32,
    dropout=0.2,
    piece_dropout=0.2,
    sentence_dropout=0.0,  # one sentence decides
    steps=600,
    evaluate_every=200,
    batch_pieces=4096,
    learning_rate=0.005,
)


def build_model(config, vocab_size, num_classes):
    shared = {
        "vocab_size": vocab_size,
        "num_classes": num_classes,
        "dropout": config.dropout,
        "piece_dropout": config.piece_dropout,
        "sentence_dropout": config.sentence_dropout,
        "ngrams": config.ngrams,
        "dtype": config.dtype,
    }
    if config.model == "transformer":
        return models.TransformerClassifier(
            num_layers=config.layers,
            model_dim=config.dim,
            ffn_dim=2 * config.dim,
            num_heads=config.heads,
            **config.block_arguments(),
            **shared,
        )
    is_flat = config.model == "flat"
    model = models.FlatAttention if is_flat else models.HierarchicalAttention
    return model(
        embedding_dim=config.dim,
        units=config.units,
        attention_units=config.units,
        **shared,
    )


def main(config):
    run, config = training.start_run(config)
    start = training.FineTuning(run, config.from_, config.new_tokenizer)
    corpus = start.prepare(
        data.prepare_documents,
        *(config.train, config.validation, config.columns),
        vocab_size=config.vocab_size,
        tokenizer=start.kept_tokenizer(),
        seed=config.seed,
    )
    preprocessor = data.DocumentPreprocessor(
        corpus.tokenizer, in_lines=corpus.in_lines
    )
    ids = corpus.tokenized(preprocessor)
    vectors = data.piece_vectors(ids, preprocessor.vocab_size, config.dim)
    batches = data.document_batches(
        ids,
        corpus.train_labels,
        corpus.labels,
        batch_pieces=config.batch_pieces,
        seed=config.seed,
        balanced=config.balanced,
    )

    with kseq.devices.device_strategy().scope():
        model = build_model(config, preprocessor.vocab_size, len(corpus.labels))
        start.initialize_embedding(model, config, corpus.tokenizer, vectors)
        training.compile_model(model, config)
    classifier = serving.Classifier(model, preprocessor, corpus.labels)
    start.initialize(classifier)
    run.save(classifier, more=start.files)

    training.pretrain_classifier(run, model, ids, config)
    training.fit_ngrams(run, classifier, batches, corpus)
    held_out = evaluation.Classifications(
        classifier.predictor(), corpus.validation
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
        facts=[*corpus.describe(), *start.facts],
    )

    training.export_and_test(
        *(run, evaluation.Classifications, corpus.test),
        calibrate_on=corpus.validation if config.calibrate else None,
    )


if __name__ == "__main__":
    kseq.run_recipe(main, Config(), without_files=REPORTS, corpus="documents")
