"""A Transformer encoder that classifies documents."""

import keras

from kseq.layers import (
    AttentionPooling,
    LayerNormalization,
    PieceEmbedding,
    SinusoidalPositionalEncoding,
    TransformerEncoderBlock,
)
from kseq.models.flat_classifier import FlatClassifier


@keras.saving.register_keras_serializable(package="kseq")
class TransformerClassifier(FlatClassifier):
    """A classifier of documents: pre-norm encoder blocks, pooled.

        x = x + SelfAttention(norm(x)); x = x + FFN(norm(x))
        document = attention over the words of norm(x)
        logits = W document + b

    The weights that it explains itself with are those of the pooling. What
    a word holds there, the blocks have gathered from all others.

    Args:
        vocab_size: int.
        num_classes: int, C.
        num_layers: int.
        model_dim: int, D, even, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings, on what each sublayer adds, and on
            documents.
        word_dropout: float, on whole words.
        sentence_dropout: float, on whole sentences.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, L, W) int32, as
            `HierarchicalAttention` takes them.

    Returns:
        logits, (B, C) float32.

    Raises:
        ValueError: if an argument does not fit the others.

    Example:
        >>> model = TransformerClassifier(
        ...     30, 2, num_layers=1, model_dim=8, ffn_dim=16, num_heads=2
        ... )
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> model({"source_ids": ids}).shape
        TensorShape([2, 2])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, the encoder; pooled as in Yang
        et al. 2016, aclanthology.org/N16-1174.
    """

    def __init__(
        self,
        vocab_size,
        num_classes,
        *,
        num_layers,
        model_dim,
        ffn_dim,
        num_heads,
        dropout=0.0,
        word_dropout=0.0,
        sentence_dropout=0.0,
        dtype=None,
        name="transformer_classifier",
        **kwargs,
    ):
        if model_dim % num_heads:
            raise ValueError(
                "model_dim must be a multiple of num_heads. "
                f"Received: model_dim={model_dim}, num_heads={num_heads}"
            )

        policy = keras.dtype_policies.get(dtype)
        self.embedding = PieceEmbedding(
            vocab_size,
            model_dim,
            piece_dropout=word_dropout,
            dtype=policy,
            name="embedding",
        )
        self.position_layer = SinusoidalPositionalEncoding(
            dtype=policy, name="positions"
        )
        self.blocks = [
            TransformerEncoderBlock(
                num_heads=num_heads,
                key_dim=model_dim // num_heads,
                ffn_dim=ffn_dim,
                dropout=dropout,
                dtype=policy,
                name=f"encoder_{i}",
            )
            for i in range(num_layers)
        ]
        self.last_norm = LayerNormalization(dtype=policy, name="encoder_norm")
        self.pooling = AttentionPooling(model_dim, dtype=policy, name="pooling")
        self.vocab_size = vocab_size
        self.num_layers = num_layers
        self.model_dim = model_dim
        self.ffn_dim = ffn_dim
        self.num_heads = num_heads
        self.word_dropout = word_dropout
        super().__init__(
            num_classes,
            dropout=dropout,
            sentence_dropout=sentence_dropout,
            dtype=policy,
            name=name,
            **kwargs,
        )

    def _read(self, ids, mask):
        x = self.embedding(ids) * self.model_dim**0.5
        x = self.dropout_layer(self.position_layer(x))
        for block in self.blocks:
            x = block(x, inputs_mask=mask)
        return self.pooling(self.last_norm(x), mask, return_weights=True)

    def get_config(self):
        names = (
            "vocab_size",
            "num_classes",
            "num_layers",
            "model_dim",
            "ffn_dim",
            "num_heads",
            "dropout",
            "word_dropout",
            "sentence_dropout",
            "name",
        )
        config = {name: getattr(self, name) for name in names}
        return {**config, "dtype": self.dtype_policy.name}
