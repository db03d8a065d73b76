"""Attention of one head of a Transformer."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data import teacher_forcing
from kseq.serving.attention import Attention
from kseq.serving.explanation import source_tokens
from kseq.serving.predict_batches import predict_batches
from kseq.serving.served_function import served_function
from kseq.user_error import UserError

if TYPE_CHECKING:  # an export needs no model code
    from kseq.serving.classifier import Classifier
    from kseq.serving.generator import Generator
    from kseq.serving.retriever import Retriever


def head_attention(
    served: "Generator | Classifier | Retriever | None",
    inputs: list[Any],
    part: str = "encoder",
    block: int = -1,
    head: int = 0,
) -> list[Attention]:
    """The attention of one head, input by input.

    Args:
        served: `Generator` with a `kseq.models.Transformer` or a
            `TransformerLM`, or `Classifier` with a `TransformerClassifier`;
            None for an export.
        inputs: list of what it answers to, such as str.
        part: "encoder" or "decoder", self-attention, or "cross", from the
            decoder to the encoder. The decoder reads the best answer; that of
            a language model reads the prompt and the answer. A classifier has
            an encoder only.
        block: int, index of the block.
        head: int, index of the head.

    Returns:
        list of `Attention`: `target_tokens` are the queries, and
        `source_tokens` what they attend to.

    Raises:
        UserError: if the model has no such head, or is an export.
    """
    if served is None:
        raise UserError("An export has no attention heads: load its run.")
    model = served.model
    if not hasattr(model, "all_attention_weights"):
        raise UserError(f"{model.name} has no attention heads.")
    weights_and_tokens = (
        _of_classifier if hasattr(served, "labels") else _of_generator
    )

    def read(**raw):
        weights, tokens = weights_and_tokens(served, served.preprocessor(**raw))
        sizes = {name: len(blocks) for name, blocks in weights.items()}
        size, heads = sizes.get(part, 0), model.num_heads
        if not (-size <= block < size and -heads <= head < heads):
            raise UserError(
                f"Expected a part and a block of {sizes}, and a head below "
                f"{heads}. Received: part={part!r}, block={block}, head={head}"
            )
        queries, keys = tokens[part]
        return {
            "source_tokens": keys,
            "target_tokens": queries,
            "attention": weights[part][block][:, head],
        }

    # In a graph for all lengths, where the search has been traced before.
    raw = served.preprocessor.input_signature
    [source] = raw
    functions = {"heads": served_function(read, raw)}
    rows = predict_batches(functions, "heads", {source: inputs}, None)
    return [Attention.of_row(row) for row in rows]


def _of_classifier(classifier, source):
    """All weights, and the tokens of the queries and keys of each part."""
    model = classifier.model
    ids = model.join(source.inputs["source_ids"])
    tokens = _pieces(classifier.preprocessor.tokenizer, ids)
    return model.all_attention_weights(source.inputs), {
        "encoder": (tokens, tokens)
    }


def _of_generator(generator, source):
    model = generator.model
    labels = generator.best(source).ids[:, 0]
    inputs = {**source.inputs, "target_ids": teacher_forcing(labels)}
    if hasattr(model, "joined"):  # prompt and answer are one sequence
        ids, *_ = model.joined(inputs["source_ids"], inputs["target_ids"])
        tokens = {"decoder": (_pieces(generator.tokenizer, ids),) * 2}
    else:
        sources = source_tokens(generator, source)
        read = _pieces(generator.tokenizer, inputs["target_ids"])
        tokens = {
            "encoder": (sources, sources),
            "decoder": (read, read),
            "cross": (_pieces(generator.tokenizer, labels), sources),
        }
    return model.all_attention_weights(inputs), tokens


def _pieces(tokenizer, ids):
    return tf.where(ids == PAD, "", tokenizer.pieces(ids))
