"""A Transformer encoder that tags each word of a sentence."""

import keras
from keras import layers

from kseq.layers import (
    Dropout,
    FlattenSentences,
    PieceEmbedding,
    TransformerEncoderBlock,
)
from kseq.layers.flatten_sentences import first_piece_states
from kseq.layers.positional_encoding import position_layer
from kseq.layers.transformer_sublayers import apply_blocks, final_norm
from kseq.models.arguments import (
    config_of,
    set_block_arguments,
    set_rates,
    set_sizes,
    stack_of_blocks,
)
from kseq.models.exact_model import ExactModel
from kseq.models.source_inputs import id_inputs
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
        norm: "pre", "post" or "both".
        positions: as in `Transformer`.
        max_length: int, longest sequence that learned positions can hold.
        window: int or None. Attention sees `window` positions each way.
        normalization: "layer", or "rms" for that of Zhang and Sennrich 2019.
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, heads of keys and values, which divide
            `num_heads`; None for all.
        share_layers: bool, whether the stack is one block, applied
            once for each layer.
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
        norm: str = "pre",
        positions: str = "sinusoidal",
        max_length: int = 1024,
        window: int | None = None,
        normalization: str = "layer",
        activation: str = "relu",
        num_kv_heads: int | None = None,
        share_layers: bool = False,
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
            max_length=max_length,
        )
        set_rates(self, dropout=dropout, piece_dropout=piece_dropout)
        policy = keras.dtype_policies.get(dtype)
        block = set_block_arguments(
            self,
            policy,
            norm=norm,
            normalization=normalization,
            activation=activation,
            positions=positions,
            window=window,
            num_kv_heads=num_kv_heads,
            share_layers=share_layers,
        )

        # Layers
        self.join = FlattenSentences(dtype=policy, name="join")
        self.embedding = PieceEmbedding(
            vocab_size,
            model_dim,
            piece_dropout=piece_dropout,
            dtype=policy,
            name="embedding",
        )
        self.position_layer = position_layer(
            positions, max_length, policy, "positions"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.blocks = stack_of_blocks(
            TransformerEncoderBlock,
            *(num_layers, "encoder", share_layers),
            **block,
        )
        self.last_norm = final_norm(norm, normalization, policy, "encoder_norm")
        self.classes = layers.Dense(num_tags, dtype=policy, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = id_inputs("source_ids", axes=3)
        source_ids = inputs["source_ids"]
        ids = self.join(source_ids)  # (B, T)
        mask = padding_mask(ids)
        x = self.embedding(ids) * model_dim**0.5
        x = self.dropout_layer(self.position_layer(x))
        x, _ = apply_blocks(
            self.blocks, x, [{"inputs_mask": mask}] * num_layers
        )
        words = first_piece_states(self.last_norm(x), source_ids)
        logits = self.logits(self.classes(words))
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def get_config(self) -> dict:
        return config_of(self, TransformerTagger)
