"""The embedding of a Transformer that is its output projection, too."""

import keras


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


def unit_initializer(model_dim):
    """Initializer of embeddings (V, D) whose rows have a length of about 1."""
    return keras.initializers.RandomNormal(stddev=model_dim**-0.5)
