"""The recurrent encoder-decoder, with or without attention."""

import keras
from keras import layers, ops

from kseq.layers import AttentionDecoder, Dropout
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.ops import padding_mask
from kseq.user_error import ArgumentError

_ENCODERS = {
    "lstm": layers.LSTM,
    "gru": layers.GRU,
    "tanh": layers.SimpleRNN,
}


@keras.saving.register_keras_serializable(package="kseq")
class LSTMSeq2Seq(ExactModel):
    """A recurrent encoder, a recurrent decoder, and attention between them.

        x      = encoder(source), one state for each source token
        y      = decoder(target; attention over x)
        logits = W y

    Each decoder layer starts from the last states of the encoder layer with
    the same number, or of the last one if there are fewer. Without attention
    the last hidden state of the encoder is a constant input to the decoder.

    Args:
        source_vocab_size: int.
        target_vocab_size: int.
        embedding_dim: int, E, of source and target.
        units: int, U, width of every layer of encoder and decoder. The two
            directions of a bidirectional encoder have half of it each.
        num_encoder_layers: int.
        num_decoder_layers: int.
        bidirectional: bool, whether the encoder reads both ways.
        attention: an attention layer of `kseq.layers`, or None.
        order: "luong" or "bahdanau", see `AttentionDecoder`.
        input_feeding: bool, see `AttentionDecoder`.
        cell: "lstm", "gru" or "tanh".
        dropout: float, on the embeddings, between layers and on the outputs
            of the decoder.
        tie_embeddings: bool, the target embedding is also the output
            projection, after a projection of y to E.
        dtype: dtype policy or its name.
        name: str.
        **kwargs: `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, padded with PAD, and
            `target_ids` (B, T) int32, beginning with START.

    Returns:
        logits, (B, T, V) float32: row t is for the token after target t.

    Raises:
        ValueError: if an argument does not fit the others.

    Example:
        >>> model = LSTMSeq2Seq(
        ...     source_vocab_size=20, target_vocab_size=30,
        ...     embedding_dim=8, units=16,
        ...     attention=kseq.layers.LuongAttention("dot"),
        ... )
        >>> source = np.array([[5, 6, 7, 3]])
        >>> target = np.array([[2, 8, 9]])
        >>> model({"source_ids": source, "target_ids": target}).shape
        TensorShape([1, 3, 30])

    Reference:
        Sutskever et al. 2014, arXiv:1409.3215; Bahdanau et al. 2015,
        arXiv:1409.0473; Luong et al. 2015, arXiv:1508.04025.
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size,
        *,
        embedding_dim,
        units,
        num_encoder_layers=1,
        num_decoder_layers=1,
        bidirectional=True,
        attention=None,
        order="luong",
        input_feeding=False,
        cell="lstm",
        dropout=0.0,
        tie_embeddings=False,
        dtype=None,
        name="lstm_seq2seq",
        **kwargs,
    ):
        set_sizes(
            self,
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
            embedding_dim=embedding_dim,
            units=units,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
        )
        set_rates(self, dropout=dropout)
        if cell not in _ENCODERS:
            raise ArgumentError(
                f"cell must be one of {list(_ENCODERS)}. "
                f"Received: cell={cell!r}"
            )
        if bidirectional and units % 2:
            raise ArgumentError(
                "units must be even for two directions. "
                f"Received: units={units}"
            )

        # Layers
        policy = keras.dtype_policies.get(dtype)

        def encoder_layer(name):
            layer = _ENCODERS[cell](
                units // 2 if bidirectional else units,
                return_sequences=True,
                return_state=True,
                dtype=policy,
                name=name,
            )
            if not bidirectional:
                return layer
            return layers.Bidirectional(layer, dtype=policy, name=name)

        # Inputs of unit variance: with states near zero the energies, products
        # of states, are near zero too, and attention learns epochs later.
        unit = keras.initializers.RandomNormal(stddev=embedding_dim**-0.5)
        self.source_embedding = layers.Embedding(
            source_vocab_size,
            embedding_dim,
            embeddings_initializer=unit,
            dtype=policy,
            name="source_embedding",
        )
        self.target_embedding = layers.ReversibleEmbedding(
            target_vocab_size,
            embedding_dim,
            embeddings_initializer=unit.clone(),
            dtype=policy,
            name="target_embedding",
        )
        self.encoder = [
            encoder_layer(f"encoder_{i}") for i in range(num_encoder_layers)
        ]
        self.decoder = AttentionDecoder(
            units,
            num_layers=num_decoder_layers,
            attention=attention,
            order=order,
            input_feeding=input_feeding,
            cell=cell,
            dropout=dropout,
            dtype=policy,
            name="decoder",
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.projection = layers.Dense(
            embedding_dim if tie_embeddings else target_vocab_size,
            use_bias=not tie_embeddings,
            dtype=policy,
            name="projection",
        )
        self.logits = layers.Activation(
            "linear", dtype="float32", name="logits"
        )

        # Config
        self.bidirectional = bidirectional
        self.attention = self.decoder.attention
        self.order = order
        self.input_feeding = input_feeding
        self.cell = cell
        self.tie_embeddings = tie_embeddings

        # Graph
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        outputs = self._read(inputs)
        super().__init__(
            inputs=inputs,
            outputs=self._project(outputs),
            dtype=policy,
            name=name,
            **kwargs,
        )

    def _read(self, inputs, **arguments):
        """The decoder over whole targets; `arguments` are more for it."""
        memory, memory_mask, last_states = self._encode(inputs["source_ids"])
        return self.decoder(
            self._embed_target(inputs["target_ids"]),
            memory,
            memory_mask=memory_mask,
            initial_state=last_states,
            **arguments,
        )

    def _encode(self, source_ids):
        """What the decoder attends to, its mask, and the first states."""
        memory_mask = padding_mask(source_ids)
        x = self.source_embedding(source_ids) * self.embedding_dim**0.5
        last_states = []
        for layer in self.encoder:
            x, *states = layer(self.dropout_layer(x), mask=memory_mask)
            if self.bidirectional:
                half = len(states) // 2
                states = [
                    ops.concatenate(both, axis=-1)
                    for both in zip(states[:half], states[half:], strict=True)
                ]
            last_states.append(states)

        starts = [
            last_states[min(i, self.num_encoder_layers - 1)]
            for i in range(self.num_decoder_layers)
        ]
        hidden = [states[0] for states in starts]
        cell = [states[1] for states in starts if self.cell == "lstm"]
        memory = x if self.attention else last_states[-1][0][:, None]
        return memory, memory_mask, {"hidden": hidden, "cell": cell}

    def _embed_target(self, ids):
        x = self.target_embedding(ids) * self.embedding_dim**0.5
        return self.dropout_layer(x)

    def _project(self, outputs):
        logits = self.projection(outputs)
        if self.tie_embeddings:
            logits = self.target_embedding(logits, reverse=True)
        return self.logits(logits)

    def encode(self, inputs):
        """The state before the first step, from `source_ids` (B, S) int."""
        memory, memory_mask, last_states = self._encode(inputs["source_ids"])
        return {
            "memory": {
                "mask": memory_mask,
                "projected": self.decoder.project_memory(memory),
            },
            "decoder": self.decoder.start(memory, last_states),
        }

    def decode_step(self, token_ids, state):
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        memory = state["memory"]
        outputs, decoder = self.decoder.step(
            self._embed_target(token_ids),
            state["decoder"],
            memory["projected"],
            memory_mask=memory["mask"],
        )
        return self._project(outputs), {"memory": memory, "decoder": decoder}

    def attention_weights(self, inputs):
        """The weights of each step over the source.

        Args:
            inputs: dict of `source_ids` (B, S) int, and `target_ids` (B, T)
                int, beginning with START.

        Returns:
            (B, T, S) float32, rows that sum to 1.

        Raises:
            ValueError: if the model has no attention.
        """
        _, weights = self._read(inputs, return_weights=True)
        return ops.cast(weights, "float32")

    def get_config(self):
        attention = keras.saving.serialize_keras_object(self.attention)
        return {**config_of(self, LSTMSeq2Seq), "attention": attention}

    @classmethod
    def from_config(cls, config):
        attention = keras.saving.deserialize_keras_object(config["attention"])
        return cls(**{**config, "attention": attention})
