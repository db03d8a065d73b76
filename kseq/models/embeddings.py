"""Embeddings of tokens, and the output projection that one may be as well."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of


def input_embedding(vocab_size, dim, dtype, name):
    """An `Embedding` whose rows have a length of about 1."""
    return keras.layers.Embedding(
        vocab_size,
        dim,
        embeddings_initializer=unit_initializer(dim),
        dtype=dtype,
        name=name,
    )


def output_embedding(vocab_size, dim, tie_weights, dtype, name):
    """A `ReversibleEmbedding` whose rows have a length of about 1.

    The model multiplies embeddings by sqrt(D). With `tie_weights`, one matrix
    does both.
    """
    return keras.layers.ReversibleEmbedding(
        vocab_size,
        dim,
        tie_weights=tie_weights,
        embeddings_initializer=unit_initializer(dim),
        # Not that of the variable: in half precision it would be float32.
        reverse_dtype=keras.dtype_policies.get(dtype).compute_dtype,
        dtype=dtype,
        name=name,
    )


def output_kernel(embedding):
    """The matrix (D, V) of an output embedding, ready for many products.

    TensorFlow takes twice as long for a product if it has to transpose the
    matrix first, so a search transposes it once. None if Keras has quantized
    it: then it has a scale, which the embedding applies.
    """
    if embedding.quantization_mode is not None:
        return None
    if embedding.tie_weights:
        kernel = ops.transpose(embedding.embeddings)
    else:
        kernel = embedding.reverse_embeddings
    return ops.cast(kernel, embedding.compute_dtype)


def project(embedding, x, kernel=None):
    """(..., D) -> (..., V), by an output embedding or its `output_kernel`."""
    if kernel is None:
        return embedding(x, reverse=True)
    return ops.matmul(x, kernel)


def output_layer(has_bias, name):
    """The last layer: logits in float32, perhaps after adding a bias (V,)."""
    layer = _OutputBias if has_bias else keras.layers.Identity
    return layer(dtype="float32", name=name)


class _OutputBias(keras.layers.Layer):
    def build(self, input_shape):
        self.bias = self.add_weight(
            name="bias", shape=input_shape[-1:], initializer="zeros"
        )

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict:
        return config_of(self, _OutputBias)


def unit_initializer(dim):
    """Initializer of embeddings (V, D) whose rows have a length of about 1."""
    return keras.initializers.RandomNormal(stddev=dim**-0.5)
