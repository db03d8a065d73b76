"""The weights of a Transformer, as CTranslate2 names them."""

import numpy as np
from ctranslate2.specs import common_spec
from ctranslate2.specs.transformer_spec import (
    TransformerDecoderSpec,
    TransformerEncoderSpec,
    TransformerSpec,
)
from keras import ops

from kseq.models import Transformer

_ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}


def ctranslate2_spec(
    model: Transformer, most_positions: int
) -> TransformerSpec:
    """A Transformer as a `TransformerSpec`, without vocabularies.

    Args:
        model: `kseq.models.Transformer` from ids to ids, without a window.
        most_positions: int, of a source or an answer.

    Reference:
        https://opennmt.net/CTranslate2, its module `specs`.
    """
    options = {
        "num_heads": model.num_heads,
        "pre_norm": model.norm == "pre",
        "no_final_norm": model.norm == "post",
        "activation": _ACTIVATIONS[model.activation],
    }
    spec = TransformerSpec(
        TransformerEncoderSpec(model.num_encoder_layers, **options),
        TransformerDecoderSpec(model.num_decoder_layers, **options),
    )
    spec.config.layer_norm_epsilon = model.norm_epsilon

    [source] = spec.encoder.embeddings
    source.weight = _array(model.source_embedding.embeddings)
    positions = _positions(model, model.source_positions, most_positions)
    spec.encoder.position_encodings.encodings = positions
    for layer, block in zip(
        spec.encoder.layer, model.encoder_blocks, strict=True
    ):
        _set_sublayers(layer, block, block.attention, block.attention_norm)

    target = model.target_embedding
    spec.decoder.embeddings.weight = _array(target.embeddings)
    positions = _positions(model, model.target_positions, most_positions)
    spec.decoder.position_encodings.encodings = positions
    for layer, block in zip(
        spec.decoder.layer, model.decoder_blocks, strict=True
    ):
        own, norm = block.self_attention, block.self_attention_norm
        _set_sublayers(layer, block, own, norm)
        attention = block.cross_attention
        _set_norm(layer.attention.layer_norm, block.cross_attention_norm)
        for linear, dense in zip(
            layer.attention.linear,
            (attention.query, attention.key_value, attention.projection),
            strict=True,
        ):
            _set_linear(linear, dense)
    if model.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder_norm)
        _set_norm(spec.decoder.layer_norm, model.decoder_norm)
    if target.tie_weights:
        spec.decoder.projection.weight = _array(target.embeddings)
    else:
        spec.decoder.projection.weight = _array(target.reverse_embeddings).T
    if model.output_bias:
        spec.decoder.projection.bias = _array(model.logits.bias)
    return spec


def _set_sublayers(layer, block, attention, norm):
    """Self-attention and the feed-forward network."""
    _set_norm(layer.self_attention.layer_norm, norm)
    _set_linear(layer.self_attention.linear[0], attention.query_key_value)
    _set_linear(layer.self_attention.linear[1], attention.projection)
    _set_norm(layer.ffn.layer_norm, block.ffn_norm)
    _set_linear(layer.ffn.linear_0, block.ffn_in)
    _set_linear(layer.ffn.linear_1, block.ffn_out)


def _set_linear(spec, dense):
    spec.weight = np.ascontiguousarray(_array(dense.kernel).T)
    spec.bias = _array(dense.bias)


def _set_norm(spec, norm):
    spec.gamma, spec.beta = _array(norm.gamma), _array(norm.beta)


def _positions(model, layer, most):
    """(positions, D), what is added at each position."""
    if model.positions == "learned":
        most = model.max_length
    return _array(layer(ops.zeros((1, most, model.model_dim))))[0]


def _array(values):
    return np.array(ops.convert_to_numpy(values), np.float32)
