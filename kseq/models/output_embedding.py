"""The embedding of a Transformer that is its output projection, too."""

import keras
from keras import ops


def output_embedding(vocab_size, model_dim, tie_weights, dtype, name):
    """A `ReversibleEmbedding` whose rows have a length of about 1.

    Args:
        vocab_size: int.
        model_dim: int, D; the model multiplies embeddings by sqrt(D).
        tie_weights: bool, whether one matrix does both.
        dtype: dtype policy.
        name: str, of the layer.
    """
    return keras.layers.ReversibleEmbedding(
        vocab_size,
        model_dim,
        tie_weights=tie_weights,
        embeddings_initializer=unit_initializer(model_dim),
        dtype=dtype,
        name=name,
    )


def output_kernel(embedding):
    """The matrix (D, V) of an output embedding, ready for many products.

    TensorFlow multiplies by a matrix in twice the time if it has to transpose
    it, so a search does it once.
    """
    if embedding.tie_weights:
        kernel = ops.transpose(embedding.embeddings)
    else:
        kernel = embedding.reverse_embeddings
    return ops.cast(kernel, embedding.compute_dtype)


def unit_initializer(model_dim):
    """Initializer of embeddings (V, D) whose rows have a length of about 1."""
    return keras.initializers.RandomNormal(stddev=model_dim**-0.5)
