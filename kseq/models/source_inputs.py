"""The inputs of models: token ids, or features."""

import keras

from kseq.layers.layer_config import copy_of
from kseq.ops import padding_mask
from kseq.user_error import ArgumentError, check_integers


def set_source(
    model,
    source_vocab_size,
    source_dim,
    source_layer,
    num_encoder_layers,
    policy,
):
    """Sets the attributes of a model that say what its source is.

    Its `source_layer` is a copy with the dtype policy of the model and a fixed
    name.

    Raises:
        ArgumentError: if they contradict each other.
    """
    if (source_vocab_size is None) == (source_dim is None):
        raise ArgumentError(
            "A source is either token ids (source_vocab_size) or features "
            f"(source_dim). Received: source_vocab_size={source_vocab_size}, "
            f"source_dim={source_dim}"
        )
    if source_dim is not None and source_layer is None:
        raise ArgumentError(
            "Features need a source_layer. "
            f"Received: source_dim={source_dim}, source_layer=None"
        )
    check_integers(
        optional=True,
        source_vocab_size=source_vocab_size,
        source_dim=source_dim,
    )
    check_integers(
        minimum=0 if source_layer is not None else 1,
        num_encoder_layers=num_encoder_layers,
    )
    model.source_vocab_size = source_vocab_size
    model.source_dim = source_dim
    model.num_encoder_layers = num_encoder_layers
    model.source_layer = copy_of(
        source_layer, dtype=policy, name="source_layer"
    )


def id_inputs(*names, axes=2):
    """Token ids, (B, T) int32 or with more axes, a dict of `keras.Input`."""
    shape = (None,) * (axes - 1)
    return {
        name: keras.Input(shape, dtype="int32", name=name) for name in names
    }


def feature_inputs(source_dim):
    """Features (B, S, F) and their mask (B, S), a dict of `keras.Input`."""
    mask = keras.Input((None,), dtype="bool", name="source_mask")
    source = keras.Input((None, source_dim), name="source")
    return {"source": source, "source_mask": mask}


def seq2seq_inputs(source_dim, source_layer):
    """The inputs of an encoder-decoder.

    Args:
        source_dim: int, or None for token ids.
        source_layer: layer or None. Where the `input_spec` of a layer has R
            axes, token ids have R - 1: their embeddings are its input.

    Returns:
        A dict of `keras.Input`.
    """
    if source_dim is not None:
        return {**feature_inputs(source_dim), **id_inputs("target_ids")}
    spec = getattr(source_layer, "input_spec", None)
    axes = 2 if spec is None else spec.ndim - 1
    return id_inputs("source_ids", axes=axes) | id_inputs("target_ids")


def read_inputs(inputs, embed, source_layer, reads_turns=False):
    """The source as an encoder reads it.

    Args:
        inputs: dict of the tensors of `seq2seq_inputs`.
        embed: function, ids -> embeddings.
        source_layer: layer or None.
        reads_turns: bool, whether the mask may be that of turns, (B, N, W).

    Returns:
        x (B, S, D) float, its mask (B, S) bool, and the last states of
        `source_layer`, if it has any.

    Raises:
        ArgumentError: if the mask is that of turns and must not be.
    """
    if "source" in inputs:
        x, mask = inputs["source"], inputs["source_mask"]
    else:
        x = embed(inputs["source_ids"])
        mask = padding_mask(inputs["source_ids"])
    if source_layer is None:
        return x, mask, []
    x, mask, states = source_layer(x, mask)
    if len(mask.shape) == 3 and not reads_turns:
        raise ArgumentError(
            f"A {type(source_layer).__name__} gives the mask of turns, (B, N, "
            "W). It needs an LSTMSeq2Seq with num_encoder_layers=0, ctc=0, and "
            "attention of turns, such as HierarchicalBahdanauAttention, or "
            "none."
        )
    return x, mask, states
