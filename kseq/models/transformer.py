"""The Transformer: encoder and decoder made of attention alone."""

import keras
from keras import ops

from kseq.layers import (
    Dropout,
    PieceDropout,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from kseq.layers.layer_config import with_layers
from kseq.layers.positional_encoding import position_layer
from kseq.layers.transformer_sublayers import apply_blocks, final_norm
from kseq.models import embeddings
from kseq.models.arguments import (
    config_of,
    set_block_arguments,
    set_rates,
    set_sizes,
    stack_of_blocks,
)
from kseq.models.exact_model import ExactModel
from kseq.models.source_inputs import read_inputs, seq2seq_inputs, set_source
from kseq.ops import end_mask
from kseq.ops.masks import PLACES
from kseq.user_error import ArgumentError


@keras.saving.register_keras_serializable(package="kseq")
class Transformer(ExactModel):
    """The encoder-decoder Transformer.

        encoder: x = x + SelfAttention(x); x = x + FFN(x)
        decoder: y = y + CausalSelfAttention(y); y = y + Attention(y, x);
                 y = y + FFN(y)
        logits = y E^T

    with normalization before each sublayer (`norm="pre"`, and at the end of
    each stack), before and after it (`norm="both"`), or after each sum
    (`norm="post"`).

    Args:
        source_vocab_size: int, or None if the source is features.
        target_vocab_size: int.
        num_encoder_layers: int; may be 0 with a `source_layer`.
        num_decoder_layers: int.
        model_dim: int, D, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings and on the output of each sublayer.
        attention_dropout: float, on the attention weights.
        piece_dropout: float, on whole pieces of source and target.
        norm: "pre", "post" or "both".
        positions: "sinusoidal" or "learned", added to embeddings; "rotary" or
            "relative" (distances up to 16), in self-attention of encoder and
            decoder; or "none".
        max_length: int, longest sequence that learned positions can hold.
        share_embeddings: bool, one embedding for a vocabulary shared by
            source and target.
        tie_output: bool, the target embedding is also the output projection.
        output_bias: bool, whether a bias (V,) is added to the logits.
        window: int or None. Self-attention sees `window` positions on each
            side.
        normalization: "layer", or "rms" for that of Zhang and Sennrich 2019.
        activation: "relu", "gelu", "silu" or "swiglu", of the feed-forward
            network.
        num_kv_heads: int or None, key and value heads, a divisor of
            `num_heads`; None for `num_heads`.
        share_layers: bool, whether a stack is one block, applied
            once for each layer.
        norm_epsilon: float, added to the variance by normalization.
        source_end: bool, whether END of the source is attended to. If not, the
            results are those for sources without END.
        source_layer: a layer that reads the source before the encoder, adds
            positions and has outputs of size D, or None; see `LSTMSeq2Seq`.
        source_dim: int, F, or None if the source is token ids.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, padded with PAD, or
            `source` (B, S, F) float and `source_mask` (B, S) bool; and
            `target_ids` (B, T) int32, beginning with START.

    Returns:
        logits, (B, T, V) float32: row t is for the token after target t.

    Raises:
        ValueError: if an argument does not fit the others.

    Example:
        >>> model = Transformer(
        ...     20, 30, num_encoder_layers=1, num_decoder_layers=1,
        ...     model_dim=8, ffn_dim=16, num_heads=2,
        ... )
        >>> source = np.array([[5, 6, 7, 3]])
        >>> target = np.array([[2, 8, 9]])
        >>> model({"source_ids": source, "target_ids": target}).shape
        TensorShape([1, 3, 30])

    Reference:
        Vaswani et al. 2017, arXiv:1706.03762; pre-norm from Xiong et al.
        2020, arXiv:2002.04745; tied embeddings from Press and Wolf 2017,
        arXiv:1608.05859. See the blocks for their choices, and
        `MultiHeadAttention` for positions and `num_kv_heads`. Layers that are
        shared: Dehghani et al. 2019, arXiv:1807.03819.
    """

    def __init__(
        self,
        source_vocab_size: int | None,
        target_vocab_size: int,
        *,
        num_encoder_layers: int,
        num_decoder_layers: int,
        model_dim: int,
        ffn_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: str = "pre",
        positions: str = "sinusoidal",
        max_length: int = 1024,
        share_embeddings: bool = False,
        tie_output: bool = True,
        window: int | None = None,
        normalization: str = "layer",
        activation: str = "relu",
        num_kv_heads: int | None = None,
        share_layers: bool = False,
        output_bias: bool = False,
        norm_epsilon: float = 1e-5,
        source_end: bool = True,
        piece_dropout: float = 0.0,
        source_layer: keras.layers.Layer | None = None,
        source_dim: int | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "transformer",
        **kwargs,
    ):
        policy = keras.dtype_policies.get(dtype)
        source = source_vocab_size, source_dim, source_layer
        set_source(self, *source, num_encoder_layers, policy)
        set_sizes(
            self,
            target_vocab_size=target_vocab_size,
            num_decoder_layers=num_decoder_layers,
            model_dim=model_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            max_length=max_length,
        )
        set_rates(
            self,
            dropout=dropout,
            attention_dropout=attention_dropout,
            piece_dropout=piece_dropout,
        )
        block = set_block_arguments(
            self,
            policy,
            attention_dropout,
            norm=norm,
            normalization=normalization,
            activation=activation,
            positions=positions,
            window=window,
            num_kv_heads=num_kv_heads,
            share_layers=share_layers,
            norm_epsilon=norm_epsilon,
        )
        if share_embeddings and source_vocab_size != target_vocab_size:
            raise ArgumentError(
                "share_embeddings needs one vocabulary. "
                f"Received: source_vocab_size={source_vocab_size}, "
                f"target_vocab_size={target_vocab_size}"
            )
        if not source_end and (source_vocab_size is None or source_layer):
            raise ArgumentError(
                "source_end=False needs a source of token ids that the encoder "
                "reads."
            )

        # Layers
        self.target_embedding = embeddings.output_embedding(
            target_vocab_size, model_dim, tie_output, policy, "target_embedding"
        )
        self.source_embedding = self.target_embedding
        if source_vocab_size is not None and not share_embeddings:
            self.source_embedding = embeddings.input_embedding(
                source_vocab_size, model_dim, policy, "source_embedding"
            )
        where = positions, max_length, policy
        if source_layer is None:
            self.source_positions = position_layer(*where, "source_positions")
        self.target_positions = position_layer(*where, "target_positions")
        self.embedding_dropout = Dropout(
            dropout, dtype=policy, name="embedding_dropout"
        )
        self.piece_dropout_layer = PieceDropout(
            piece_dropout, dtype=policy, name="piece_dropout"
        )
        self.encoder_blocks = stack_of_blocks(
            TransformerEncoderBlock,
            *(num_encoder_layers, "encoder", share_layers),
            **block,
        )
        self.decoder_blocks = stack_of_blocks(
            TransformerDecoderBlock,
            *(num_decoder_layers, "decoder", share_layers),
            **block,
        )
        norms = norm, normalization, policy
        self.encoder_norm = final_norm(*norms, "encoder_norm", norm_epsilon)
        self.decoder_norm = final_norm(*norms, "decoder_norm", norm_epsilon)
        self.logits = embeddings.output_layer(output_bias, "logits")

        # Config
        self.share_embeddings = share_embeddings
        self.tie_output = tie_output
        self.output_bias = output_bias
        self.source_end = source_end

        # Graph
        inputs = seq2seq_inputs(source_dim, self.source_layer)
        logits, *_ = self._read(inputs)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def _read(self, inputs, of_last=None, **arguments):
        """Logits of whole targets, and the other outputs of the blocks."""
        memory, mask, encoder = self._encode(inputs, **arguments)
        arguments = {"memory": memory, "memory_mask": mask, **arguments}
        each = [arguments] * self.num_decoder_layers
        each[-1] = {**arguments, **(of_last or {})}
        x = self._embed_target(inputs["target_ids"])
        x, decoder = apply_blocks(self.decoder_blocks, x, each)
        return self._logits(x), encoder, decoder

    def _encode(self, inputs, **arguments):
        """The memory, its mask, and the other outputs of the blocks."""
        x, mask, _ = read_inputs(inputs, self._embed_source, self.source_layer)
        if not self.source_end:
            mask = ops.logical_and(mask, ~end_mask(inputs["source_ids"]))
        each = [{"inputs_mask": mask, **arguments}] * self.num_encoder_layers
        x, others = apply_blocks(self.encoder_blocks, x, each)
        return self.encoder_norm(x), mask, others

    def _embed_source(self, ids):
        x = self.source_embedding(ids) * self.model_dim**0.5
        x = self.piece_dropout_layer(x)
        if self.source_layer is not None:
            return x
        return self.embedding_dropout(self.source_positions(x))

    def _embed_target(self, ids, start=0):
        x = self.target_embedding(ids) * self.model_dim**0.5
        x = self.piece_dropout_layer(x)
        return self.embedding_dropout(self.target_positions(x, start=start))

    def _logits(self, x, kernel=None):
        x = self.decoder_norm(x)
        return self.logits(embeddings.project(self.target_embedding, x, kernel))

    def encode(self, inputs: dict) -> dict:
        """The state before the first step, from the inputs of the source."""
        memory, mask, _ = self._encode(inputs)
        projected = [
            layer.project_memory(memory) for layer in self.decoder_blocks
        ]
        batch = ops.shape(memory)[0]
        heads = self.num_kv_heads or self.num_heads
        shape = (batch, heads, 0, self.model_dim // self.num_heads)
        empty = ops.zeros(shape, dtype=self.compute_dtype)
        caches = [{"key": empty, "value": empty}] * self.num_decoder_layers
        return {
            "memory": {"mask": mask, "projected": projected},
            "shared": caches,
            "is_ancestor": ops.zeros((batch, 0), dtype="bool"),
            "position": ops.zeros((batch,), dtype=PLACES),
        }

    def decoding_constants(self):
        """What every step needs and no input changes: the output matrix."""
        return embeddings.output_kernel(self.target_embedding)

    def decode_step(self, token_ids, state: dict):
        """One step. (B * K,) int, state -> (B * K, V) float32, state.

        Hypotheses of an item share its caches; masks tell whose tokens are in
        them, so a search reorders the masks alone.
        """
        token_ids = ops.cast(token_ids, "int64")  # int32 is on the host
        memory, position = state["memory"], state["position"]
        batch = ops.shape(memory["projected"][0][0])[0]
        before = state["is_ancestor"]
        is_ancestor, mask = next_ancestors(before, batch, self.window)
        pairs = zip(memory["projected"], state["shared"], strict=True)
        of_all = {
            "memory_mask": memory["mask"],
            "self_mask": mask,
        }
        if self.positions == "rotary":
            of_all["positions"] = ops.reshape(position, ops.shape(mask)[:2])
        if self.positions == "relative":
            distances = tokens_from(is_ancestor) - 1
            of_all["distances"] = ops.reshape(distances, ops.shape(mask))
        each = [{"projected_memory": p, "cache": c, **of_all} for p, c in pairs]
        if "attention" in state:
            each[-1]["return_weights"] = True
        x = self._embed_target(token_ids[:, None], start=position)
        x = ops.reshape(x, (*ops.shape(mask)[:2], self.model_dim))
        x, grown = apply_blocks(self.decoder_blocks, x, each)
        x = ops.reshape(x, (ops.shape(token_ids)[0], self.model_dim))
        if "attention" in state:
            weights = ops.mean(ops.cast(grown[-1][1], "float32"), axis=1)
            shape = ops.shape(state["attention"])
            state = {**state, "attention": ops.reshape(weights, shape)}
        return self._logits(x, state.get("constants")), {
            **state,
            "shared": [cache for (*_, cache) in grown],
            "is_ancestor": is_ancestor,
            "position": position + 1,
        }

    def attention_weights(self, inputs: dict) -> dict:
        """Over the source: of the last decoder block, the mean of its heads.

        Args:
            inputs: as in a call.

        Returns:
            (B, T, S) float32, rows that sum to 1.
        """
        return self.logits_and_attention(inputs)[1]

    def logits_and_attention(self, inputs: dict):
        """The outputs of a call, and `attention_weights`."""
        logits, _, decoder = self._read(inputs, {"return_weights": True})
        _, weights = decoder[-1]  # of each head
        return logits, ops.mean(ops.cast(weights, "float32"), axis=1)

    def all_attention_weights(self, inputs: dict) -> dict:
        """The weights of every block and head, N of them.

        Args:
            inputs: as in a call.

        Returns:
            A dict of lists with one tensor for each block, float32, rows that
            sum to 1, or 0 if all is masked: `encoder` (B, N, S, S) and
            `decoder` (B, N, T, T), self-attention; `cross` (B, N, T, S), from
            the decoder to the encoder.
        """
        _, encoder, decoder = self._read(inputs, return_weights=True)
        return {
            "encoder": [ops.cast(own, "float32") for (own,) in encoder],
            "decoder": [ops.cast(own, "float32") for own, _ in decoder],
            "cross": [ops.cast(cross, "float32") for _, cross in decoder],
        }

    def get_config(self) -> dict:
        return config_of(
            self, Transformer, "source_layer", later_rates=("piece_dropout",)
        )

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "source_layer"))


def next_ancestors(is_ancestor, batch, window=None):
    """Appends the last token of each hypothesis to those of its item.

    Args:
        is_ancestor: (B * K, P) bool, which of the P tokens that the item's
            hypotheses have had so far are those of each one, in their order.
        batch: int, B.
        window: int or None, how far back the mask reaches.

    Returns:
        - (B * K, P + K) bool;
        - the mask of self-attention, (B, K, P + K) bool.
    """
    rows = ops.shape(is_ancestor)[0]
    per_item = rows // ops.maximum(batch, 1)
    places = ops.arange(rows, dtype="int32") % ops.maximum(per_item, 1)
    own = places[:, None] == ops.arange(per_item, dtype="int32")
    is_ancestor = ops.concatenate([is_ancestor, own], axis=1)
    mask = is_ancestor
    if window is not None:
        is_near = tokens_from(is_ancestor) <= window + 1
        mask = ops.logical_and(is_ancestor, is_near)
    shape = (batch, per_item, ops.shape(is_ancestor)[1])
    return is_ancestor, ops.reshape(mask, shape)


def tokens_from(is_ancestor):
    """How many tokens of a hypothesis there are from each of them on.

    (B * K, P) bool -> float32; an int32 would be reversed on the host.
    """
    tokens = ops.flip(ops.cast(is_ancestor, "float32"), axis=1)
    return ops.flip(ops.cumsum(tokens, axis=1), axis=1)
