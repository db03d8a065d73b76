"""The weights of a Transformer, as CTranslate2 names them."""

import keras
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
    "swiglu": common_spec.Activation.SWISH,  # of the gate
}


def ctranslate2_spec(
    model: Transformer, most_positions: int
) -> TransformerSpec:
    """A Transformer as a `TransformerSpec`, without vocabularies.

    Args:
        model: `kseq.models.Transformer` from ids to ids, without a window,
            relative positions or `norm="both"`.
        most_positions: int, of a source or an answer.

    Reference:
        https://opennmt.net/CTranslate2, its module `specs`.
    """
    options = {
        "num_heads": model.num_heads,
        "pre_norm": model.norm == "pre",
        "no_final_norm": model.norm == "post",
        "activation": _ACTIVATIONS[model.activation],
        "ffn_glu": model.activation == "swiglu",
        "rms_norm": model.normalization == "rms",
        "num_heads_kv": model.num_kv_heads,
        "rotary_dim": 0 if model.positions == "rotary" else None,  # 0: all
        "rotary_interleave": False,
    }
    spec = TransformerSpec(
        TransformerEncoderSpec(model.num_encoder_layers, **options),
        TransformerDecoderSpec(model.num_decoder_layers, **options),
    )
    spec.config.layer_norm_epsilon = model.norm_epsilon

    [source] = spec.encoder.embeddings
    source.weight = _array(model.source_embedding.embeddings)
    _set_positions(spec.encoder, model, model.source_positions, most_positions)
    for layer, block in zip(
        spec.encoder.layer, model.encoder_blocks, strict=True
    ):
        _set_sublayers(layer, block, block.attention, block.attention_norm)

    target = model.target_embedding
    spec.decoder.embeddings.weight = _array(target.embeddings)
    _set_positions(spec.decoder, model, model.target_positions, most_positions)
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
    inputs = [layer.ffn.linear_0]
    if block.activation == "swiglu":  # the gate first, as in kseq
        inputs.append(layer.ffn.linear_0_noact)
    width = block.ffn_dim
    for i, linear in enumerate(inputs):
        _set_linear(linear, block.ffn_in, slice(i * width, (i + 1) * width))
    _set_linear(layer.ffn.linear_1, block.ffn_out)


def _set_linear(spec, dense, outputs=slice(None)):
    spec.weight = np.ascontiguousarray(_array(dense.kernel)[:, outputs].T)
    spec.bias = _array(dense.bias)[outputs]


def _set_norm(spec, norm):
    if isinstance(norm, keras.layers.RMSNormalization):
        spec.gamma = _array(norm.scale)
    else:
        spec.gamma, spec.beta = _array(norm.gamma), _array(norm.beta)


def _set_positions(spec, model, layer, most):
    """What is added at each position, (positions, D)."""
    if model.positions == "rotary":
        return  # CTranslate2 adds sinusoids where there are no rotary ones
    if model.positions == "learned":
        most = model.max_length
    encodings = _array(layer(ops.zeros((1, most, model.model_dim))))[0]
    spec.position_encodings.encodings = encodings


def _array(values):
    return np.array(ops.convert_to_numpy(values), np.float32)
