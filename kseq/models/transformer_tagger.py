"""A Transformer encoder that tags each word of a sentence."""

import keras
from keras import layers

from kseq.layers import (
    Dropout,
    FlattenSentences,
    LayerNormalization,
    PieceEmbedding,
    SinusoidalPositionalEncoding,
    TransformerEncoderBlock,
)
from kseq.layers.flatten_sentences import first_piece_states
from kseq.models.arguments import (
    check_heads,
    config_of,
    set_rates,
    set_sizes,
)
from kseq.models.exact_model import ExactModel
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class TransformerTagger(ExactModel):
    """A Transformer encoder that tags each word of a sentence.

        x = x + SelfAttention(norm(x)); x = x + FFN(norm(x))
        logits of a word = W norm(x)_t + b, where t is its first piece

    Args:
        vocab_size: int.
        num_tags: int, C.
        num_layers: int.
        model_dim: int, D, even, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings and on what each sublayer adds.
        piece_dropout: float, on whole pieces.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, W, P) int32: the pieces of each word,
            padded with PAD.

    Returns:
        logits, (B, W, C) float32.

    Raises:
        ArgumentError: if an argument does not fit the others.

    Example:
        >>> model = TransformerTagger(
        ...     30, 4, num_layers=1, model_dim=8, ffn_dim=16, num_heads=2
        ... )
        >>> ids = np.array([[[4, 5, 6], [7, 0, 0]], [[8, 9, 0], [0, 0, 0]]])
        >>> model({"source_ids": ids}).shape
        TensorShape([2, 2, 4])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762, the encoder; the first piece of
        a word as in Devlin et al. 2019, arXiv:1810.04805, section 5.3.
    """

    def __init__(
        self,
        vocab_size: int,
        num_tags: int,
        *,
        num_layers: int,
        model_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer_tagger",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_tags=num_tags,
            num_layers=num_layers,
            model_dim=model_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
        )
        set_rates(self, dropout=dropout, piece_dropout=piece_dropout)
        check_heads(model_dim, num_heads)

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.join = FlattenSentences(dtype=policy, name="join")
        self.embedding = PieceEmbedding(
            vocab_size,
            model_dim,
            piece_dropout=piece_dropout,
            dtype=policy,
            name="embedding",
        )
        self.position_layer = SinusoidalPositionalEncoding(
            dtype=policy, name="positions"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
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
        self.classes = layers.Dense(num_tags, dtype=policy, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        source_ids = keras.Input((None, None), dtype="int32", name="source_ids")
        ids = self.join(source_ids)  # (B, T)
        mask = padding_mask(ids)
        x = self.embedding(ids) * model_dim**0.5
        x = self.dropout_layer(self.position_layer(x))
        for block in self.blocks:
            x = block(x, inputs_mask=mask)
        words = first_piece_states(self.last_norm(x), source_ids)
        super().__init__(
            inputs={"source_ids": source_ids},
            outputs=self.logits(self.classes(words)),
            dtype=policy,
            name=name,
            **kwargs,
        )

    def get_config(self) -> dict:
        return config_of(self, TransformerTagger)
