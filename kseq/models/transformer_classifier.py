"""A Transformer encoder that classifies documents."""

import keras
from keras import layers, ops

from kseq.layers import (
    AttentionPooling,
    Dropout,
    FlattenSentences,
    NgramLogits,
    PieceEmbedding,
    SentenceDropout,
    TransformerEncoderBlock,
)
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
from kseq.models.masked_prediction import MaskedPrediction
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask


@keras.saving.register_keras_serializable(package="kseq")
class TransformerClassifier(ExactModel):
    """A classifier of documents: pre-norm encoder blocks, pooled.

        x = x + SelfAttention(norm(x)); x = x + FFN(norm(x))
        document = attention over the pieces of norm(x)
        logits = W document + b

    `explain` returns the weights of the pooling. The blocks have already mixed
    each piece with all others.

    Args:
        vocab_size: int.
        num_classes: int, C.
        num_layers: int.
        model_dim: int, D, even, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings, on the output of each sublayer, and on
            documents.
        piece_dropout: float, on whole pieces.
        sentence_dropout: float, on whole sentences.
        ngrams: int, maximum pieces of the n-grams that are combined with the
            network, see `kseq.layers.NgramLogits`; 0 for none.
        norm: "pre", "post" or "both".
        positions: as in `Transformer`.
        max_length: int, longest sequence that learned positions can hold.
        window: int or None. Attention sees `window` positions on each side.
        normalization: "layer", or "rms" for that of Zhang and Sennrich 2019.
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, key and value heads, a divisor of
            `num_heads`; None for `num_heads`.
        share_layers: bool, whether the stack is one block, applied
            once for each layer.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, L, W) int32, the same as for
            `HierarchicalAttention`.

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
        vocab_size: int,
        num_classes: int,
        *,
        num_layers: int,
        model_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        sentence_dropout: float = 0.0,
        ngrams: int = 0,
        norm: str = "pre",
        positions: str = "sinusoidal",
        max_length: int = 1024,
        window: int | None = None,
        normalization: str = "layer",
        activation: str = "relu",
        num_kv_heads: int | None = None,
        share_layers: bool = False,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer_classifier",
        **kwargs,
    ):
        set_sizes(
            self,
            vocab_size=vocab_size,
            num_classes=num_classes,
            num_layers=num_layers,
            model_dim=model_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            max_length=max_length,
        )
        set_rates(
            self,
            dropout=dropout,
            piece_dropout=piece_dropout,
            sentence_dropout=sentence_dropout,
        )
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
        self.blocks = stack_of_blocks(
            TransformerEncoderBlock,
            *(num_layers, "encoder", share_layers),
            **block,
        )
        self.last_norm = final_norm(norm, normalization, policy, "encoder_norm")
        self.pooling = AttentionPooling(model_dim, dtype=policy, name="pooling")
        self.sentence_dropout_layer = SentenceDropout(
            sentence_dropout, dtype=policy, name="sentence_dropout"
        )
        self.join = FlattenSentences(dtype=policy, name="join")
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=policy, name="classes")
        self.logits = NgramLogits(num_classes, ngrams=ngrams, name="logits")
        self.ngrams = self.logits.ngrams

        # Graph
        inputs = id_inputs("source_ids", axes=3)
        logits, _ = self._classify(**inputs)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def _classify(self, source_ids):
        ids = self.join(self.sentence_dropout_layer(source_ids))  # (B, T)
        document, weights = self.pooling(
            self.encode(ids), padding_mask(ids), return_weights=True
        )
        logits = self.classes(self.dropout_layer(document))
        logits = self.logits(logits, source_ids)
        return logits, ops.cast(weights, "float32")

    def encode(self, ids: keras.KerasTensor) -> keras.KerasTensor:
        """What the blocks make of a row of pieces.

        Args:
            ids: (B, T) int32, 0 for padding.

        Returns:
            (B, T, D).
        """
        x, _ = self._apply_blocks(ids)
        return self.last_norm(x)

    def _apply_blocks(self, ids, **arguments):
        x = self.embedding(ids) * self.model_dim**0.5
        x = self.dropout_layer(self.position_layer(x))
        own = {"inputs_mask": padding_mask(ids), **arguments}
        return apply_blocks(self.blocks, x, [own] * self.num_layers)

    def all_attention_weights(self, inputs: dict) -> dict:
        """The weights of every block and head, N of them.

        Args:
            inputs: as in a call.

        Returns:
            A dict with `encoder`, a list with one (B, N, T, T) float32 for
            each block, of the T pieces of all sentences, see `join`.
        """
        ids = self.join(inputs["source_ids"])
        _, blocks = self._apply_blocks(ids, return_weights=True)
        return {"encoder": [ops.cast(own, "float32") for (own,) in blocks]}

    def explain(self, inputs: dict) -> dict:
        """The same as `HierarchicalAttention.explain`.

        The weight of a sentence is the sum over its pieces.
        """
        source_ids = inputs["source_ids"]
        logits, weights = self._classify(source_ids)
        return self.join.explain(logits, weights, source_ids)

    def piece_prediction(self) -> MaskedPrediction:
        """A `MaskedPrediction` that trains the embedding and the blocks."""
        return MaskedPrediction(self, dtype=self.dtype_policy)

    def get_config(self) -> dict:
        return config_of(self, TransformerClassifier)
