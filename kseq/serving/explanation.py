"""What a generator attends to while it writes an answer."""

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data import Source, teacher_forcing

if TYPE_CHECKING:  # an export needs no search and no model code
    from kseq.decoding import Hypotheses
    from kseq.serving.classifier import Classifier
    from kseq.serving.generator import Generator

# A loaded graph gives operations of the same name the same resource: the
# tokenizers of source and target need different names.
TARGET_SCOPE = "target_tokenizer"


def explanation(
    generator: "Generator", source: Source, answers: "Hypotheses"
) -> dict[str, tf.Tensor]:
    """What the signature `explain` says beside the answer.

    Args:
        generator: a `kseq.serving.Generator` whose model attends to its source.
        source: `kseq.data.Source` of B inputs.
        answers: `kseq.decoding.Hypotheses`, of which the best are explained.

    Returns:
        A dict of `source_tokens` (B, S), `target_tokens` (B, T) and
        `attention` (B, T, S).
    """
    labels = answers.ids[:, 0]
    weights = generator.model.attention_weights(
        {**source.inputs, "target_ids": teacher_forcing(labels)}
    )
    with tf.name_scope(TARGET_SCOPE):
        tokens = generator.tokenizer.pieces(labels)
    real = labels != PAD
    return {
        "source_tokens": source_tokens(generator, source),
        "target_tokens": tf.where(real, tokens, ""),
        "attention": weights * tf.cast(real, tf.float32)[:, :, None],
    }


def source_tokens(
    generator: "Generator | Classifier", source: Source
) -> tf.Tensor:
    """What the model attends to, (B, S) string, "" at padding."""
    # Of those positions that the layer before the encoder has kept.
    layer = getattr(generator.model, "source_layer", None)
    stride = getattr(layer, "stride", 1)
    preprocessor: Any = generator.preprocessor
    return preprocessor.tokens(source.inputs)[:, ::stride]
