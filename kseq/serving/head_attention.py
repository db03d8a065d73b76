"""Attention of one head of a Transformer."""

import tensorflow as tf

from kseq.control_tokens import PAD
from kseq.data import teacher_forcing
from kseq.serving.attention import Attention
from kseq.user_error import UserError


def head_attention(generator, inputs, part="encoder", block=-1, head=0):
    """The attention of one head, input by input.

    Args:
        generator: `Generator` with a `kseq.models.Transformer`.
        inputs: list of str.
        part: "encoder" or "decoder", self-attention, or "cross", from the
            decoder to the encoder. The decoder reads the best answer.
        block: int, index of the block.
        head: int, index of the head.

    Returns:
        list of `Attention`: `target_tokens` are the queries, and
        `source_tokens` what they attend to.

    Raises:
        UserError: if the model has no such head.
    """
    model = generator.model
    if not hasattr(model, "all_attention_weights"):
        raise UserError(f"{model.name} has no attention heads.")
    source = generator.preprocessor(tf.constant(inputs, tf.string))
    labels = generator.best(source).ids[:, 0]
    target_ids = teacher_forcing(labels)
    weights = model.all_attention_weights(
        {**source.inputs, "target_ids": target_ids}
    )
    try:
        weights = weights[part][block][:, head].numpy()
    except (KeyError, IndexError, tf.errors.InvalidArgumentError):
        sizes = {name: len(blocks) for name, blocks in weights.items()}
        raise UserError(
            f"Expected a part and a block of {sizes}, and a head below "
            f"{model.num_heads}. Received: part={part!r}, block={block}, "
            f"head={head}"
        ) from None

    def target(ids):
        return tf.where(ids == PAD, "", generator.tokenizer.pieces(ids))

    sources = generator.preprocessor.tokens(source.inputs)
    queries, keys = {
        "encoder": lambda: (sources, sources),
        "decoder": lambda: (target(target_ids), target(target_ids)),
        "cross": lambda: (target(labels), sources),
    }[part]()
    rows = zip(queries.numpy(), keys.numpy(), weights, strict=True)
    return [
        Attention.of_row(
            {
                "target_tokens": query,
                "source_tokens": key,
                "attention": weight,
            }
        )
        for query, key, weight in rows
    ]
