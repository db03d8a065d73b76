"""The Transformer: encoder and decoder made of attention alone."""

import keras
from keras import layers, ops

from kseq.layers import (
    Dropout,
    LayerNormalization,
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from kseq.models.arguments import check_heads, config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.ops import padding_mask
from kseq.user_error import ArgumentError


@keras.saving.register_keras_serializable(package="kseq")
class Transformer(ExactModel):
    """The encoder-decoder Transformer.

        encoder: x = x + SelfAttention(x); x = x + FFN(x)
        decoder: y = y + CausalSelfAttention(y); y = y + Attention(y, x);
                 y = y + FFN(y)
        logits = y E^T

    with layer normalization before each sublayer (`norm="pre"`, and at the end
    of each stack) or after each sum (`norm="post"`).

    Args:
        source_vocab_size: int.
        target_vocab_size: int.
        num_encoder_layers: int.
        num_decoder_layers: int.
        model_dim: int, D, a multiple of `num_heads`.
        ffn_dim: int, width of the hidden layer of the feed-forward network.
        num_heads: int, N.
        dropout: float, on embeddings and on what each sublayer adds.
        attention_dropout: float, on the attention weights.
        norm: "pre" or "post".
        positions: "sinusoidal" or "learned".
        max_length: int, longest sequence that learned positions can hold.
        share_embeddings: bool, one embedding for a vocabulary shared by
            source and target.
        tie_output: bool, the target embedding is also the output projection.
        window: int or None. Self-attention sees `window` positions each way.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, padded with PAD, and
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
        arXiv:1608.05859.
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        *,
        num_encoder_layers,
        num_decoder_layers,
        model_dim,
        ffn_dim,
        num_heads,
        dropout=0.0,
        attention_dropout=0.0,
        norm="pre",
        positions="sinusoidal",
        max_length=1024,
        share_embeddings=False,
        tie_output=True,
        window=None,
        dtype=None,
        name="transformer",
        **kwargs,
    ):
        set_sizes(
            self,
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            model_dim=model_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            max_length=max_length,
        )
        set_rates(self, dropout=dropout, attention_dropout=attention_dropout)
        check_heads(model_dim, num_heads)
        if share_embeddings and source_vocab_size != target_vocab_size:
            raise ArgumentError(
                "share_embeddings needs one vocabulary. "
                f"Received: source_vocab_size={source_vocab_size}, "
                f"target_vocab_size={target_vocab_size}"
            )
        if positions not in ("sinusoidal", "learned"):
            raise ArgumentError(
                'positions must be "sinusoidal" or "learned". '
                f"Received: positions={positions!r}"
            )

        # Layers
        policy = keras.dtype_policies.get(dtype)

        def position_layer(name):
            if positions == "learned":
                return LearnedPositionalEmbedding(
                    max_length, dtype=policy, name=name
                )
            return SinusoidalPositionalEncoding(dtype=policy, name=name)

        def last_norm(name):
            if norm == "post":
                return layers.Identity(dtype=policy, name=name)
            return LayerNormalization(dtype=policy, name=name)

        block = {
            "num_heads": num_heads,
            "key_dim": model_dim // num_heads,
            "ffn_dim": ffn_dim,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "norm": norm,
            "window": window,
            "dtype": policy,
        }
        unit = keras.initializers.RandomNormal(stddev=model_dim**-0.5)
        self.target_embedding = layers.ReversibleEmbedding(
            target_vocab_size,
            model_dim,
            tie_weights=tie_output,
            embeddings_initializer=unit,
            dtype=policy,
            name="target_embedding",
        )
        self.source_embedding = self.target_embedding
        if not share_embeddings:
            self.source_embedding = layers.Embedding(
                source_vocab_size,
                model_dim,
                embeddings_initializer=unit.clone(),
                dtype=policy,
                name="source_embedding",
            )
        self.source_positions = position_layer("source_positions")
        self.target_positions = position_layer("target_positions")
        self.embedding_dropout = Dropout(
            dropout, dtype=policy, name="embedding_dropout"
        )
        self.encoder_blocks = [
            TransformerEncoderBlock(name=f"encoder_{i}", **block)
            for i in range(num_encoder_layers)
        ]
        self.decoder_blocks = [
            TransformerDecoderBlock(name=f"decoder_{i}", **block)
            for i in range(num_decoder_layers)
        ]
        self.encoder_norm = last_norm("encoder_norm")
        self.decoder_norm = last_norm("decoder_norm")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Config
        self.norm = norm
        self.positions = positions
        self.share_embeddings = share_embeddings
        self.tie_output = tie_output
        self.window = window

        # Graph
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        logits, *_ = self._read(inputs)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def _read(self, inputs, **arguments):
        """Logits of whole targets, and what the blocks return besides."""
        source_ids = inputs["source_ids"]
        mask = padding_mask(source_ids)
        memory, encoder = self._encode(source_ids, mask, **arguments)
        each = {"memory": memory, "memory_mask": mask, **arguments}
        logits, decoder = self._decode(
            inputs["target_ids"], [each] * self.num_decoder_layers
        )
        return logits, encoder, decoder

    def _encode(self, source_ids, mask, **arguments):
        x = self.source_embedding(source_ids) * self.model_dim**0.5
        x = self.embedding_dropout(self.source_positions(x))
        each = [{"inputs_mask": mask, **arguments}] * self.num_encoder_layers
        x, others = _through(self.encoder_blocks, x, each)
        return self.encoder_norm(x), others

    def _decode(self, target_ids, each, start=0):
        x = self.target_embedding(target_ids) * self.model_dim**0.5
        x = self.embedding_dropout(self.target_positions(x, start=start))
        x, others = _through(self.decoder_blocks, x, each)
        x = self.target_embedding(self.decoder_norm(x), reverse=True)
        return self.logits(x), others

    def encode(self, inputs):
        """The state before the first step, from `source_ids` (B, S) int."""
        source_ids = inputs["source_ids"]
        mask = padding_mask(source_ids)
        memory, _ = self._encode(source_ids, mask)
        projected = [
            layer.project_memory(memory) for layer in self.decoder_blocks
        ]
        heads, key_dim = self.num_heads, self.model_dim // self.num_heads
        shape = (ops.shape(source_ids)[0], heads, 0, key_dim)
        empty = ops.zeros(shape, dtype=self.compute_dtype)
        caches = [{"key": empty, "value": empty}] * self.num_decoder_layers
        memory = {"mask": mask, "projected": projected}
        return {"memory": memory, "caches": caches}

    def decode_step(self, token_ids, state):
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        memory, caches = state["memory"], state["caches"]
        pairs = zip(memory["projected"], caches, strict=True)
        each = [
            {"projected_memory": p, "memory_mask": memory["mask"], "cache": c}
            for p, c in pairs
        ]
        start = ops.shape(caches[0]["key"])[2]
        logits, grown = self._decode(token_ids[:, None], each, start=start)
        caches = [cache for (cache,) in grown]
        return logits[:, 0], {"memory": memory, "caches": caches}

    def attention_weights(self, inputs):
        """Over the source: of the last decoder block, the mean of its heads.

        Args:
            inputs: dict of `source_ids` (B, S) int, and `target_ids` (B, T)
                int, beginning with START.

        Returns:
            (B, T, S) float32, rows that sum to 1.
        """
        weights = self.all_attention_weights(inputs)["cross"][-1]
        return ops.mean(weights, axis=1)

    def all_attention_weights(self, inputs):
        """The weights of every block and head, N of them.

        Args:
            inputs: dict of `source_ids` (B, S) int, and `target_ids` (B, T)
                int, beginning with START.

        Returns:
            A dict of lists with one tensor for each block, float32, rows that
            sum to 1, or 0 if all is masked: `encoder` (B, N, S, S) and
            `decoder` (B, N, T, T), self-attention; `cross` (B, N, T, S), from
            the decoder to the encoder.
        """
        _, encoder, decoder = self._read(inputs, return_weights=True)
        weights = {
            "encoder": [own for (own,) in encoder],
            "decoder": [own for own, _ in decoder],
            "cross": [cross for _, cross in decoder],
        }
        return keras.tree.map_structure(
            lambda x: ops.cast(x, "float32"), weights
        )

    def get_config(self):
        return config_of(self, Transformer)


def _through(blocks, x, each):
    """What a stack of blocks makes of x, and what else they return."""
    others = []
    for block, arguments in zip(blocks, each, strict=True):
        x = block(x, **arguments)
        if isinstance(x, tuple):
            x, *other = x
            others.append(other)
    return x, others
