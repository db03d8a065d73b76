"""The recurrent encoder-decoder, with or without attention."""

import keras
from keras import layers, ops

from kseq.layers import (
    AttentionDecoder,
    Dropout,
    PieceDropout,
    PointerGenerator,
)
from kseq.layers.layer_config import with_layers
from kseq.models import auxiliary_losses, embeddings, scheduled_sampling
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.models.recurrent_encoder import (
    decoder_states,
    initial_state_layers,
    initial_states,
    read_source,
    recurrent_encoder,
)
from kseq.models.source_inputs import read_inputs, seq2seq_inputs, set_source
from kseq.user_error import ArgumentError


@keras.saving.register_keras_serializable(package="kseq")
class LSTMSeq2Seq(ExactModel):
    """A recurrent encoder, a recurrent decoder, and attention between them.

        x      = encoder(source), one state for each source token
        y      = decoder(target; attention over x)
        logits = W y

    Each decoder layer starts from the last states of the encoder layer with
    the same number, or of the last encoder layer if there are fewer; without
    encoder states, from projections of the mean of x. Without attention, the
    last hidden state of the encoder is a constant input to the decoder.

    Args:
        source_vocab_size: int, or None if the source is features.
        target_vocab_size: int.
        embedding_dim: int, E, of source and target.
        units: int, U, width of every layer of encoder and decoder. The two
            directions of a bidirectional encoder have half of it each.
        num_encoder_layers: int; may be 0 with a `source_layer`.
        num_decoder_layers: int.
        bidirectional: bool, whether the encoder is bidirectional.
        reverse_source: bool, whether an encoder of one direction reads the
            source from its end, as in Sutskever et al. 2014, section 3.3.
        attention: an attention layer of `kseq.layers`, or None.
        order: "luong" or "bahdanau", see `AttentionDecoder`.
        input_feeding: bool, see `AttentionDecoder`.
        cell: "lstm", "gru" or "tanh".
        dropout: float, on the embeddings, between layers and on the outputs
            of the decoder.
        piece_dropout: float, on whole pieces of source and target.
        tie_embeddings: bool, the target embedding is also the output
            projection, after a projection of y to E.
        source_layer: a layer such as `GridEncoder`, which reads the source
            before the encoder, or None. It returns memory (B, S', D), its mask
            (B, S') and [] or, with the attribute `returns_states`, the last
            states [hidden] or [hidden, cell], (B, U), of each of its layers.
        source_dim: int, F, or None if the source is token ids.
        coverage: float, weight of the doubly stochastic penalty, which
            encourages the weights of each position to sum to 1 over all steps.
        ctc: float in [0, 1), weight of a CTC loss on x, which encourages a
            monotonic alignment; the cross-entropy has weight 1 - ctc.
        context_gate: bool, see `AttentionDecoder`.
        copy: bool, whether tokens of the source may be copied, see
            `PointerGenerator`; for token ids without a `source_layer`, with
            attention, and with one vocabulary of source and target.
        sampling_schedule: "linear", "exponential" or "inverse_sigmoid": how
            the rate grows at which the decoder reads its own predictions
            instead of target tokens in training; None for no predictions.
            The choice of tokens depends on the row, the seed and
            `optimizer.iterations`.
        sampling_rate: float from 0 to 1, the limit of this rate.
        sampling_steps: int, updates until the rate is half of its limit.
        sampling_seed: int.
        dtype: dtype policy or its name.
        name: str.
        **kwargs: `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) or (B, turns, words) int32, padded
            with PAD, or `source` (B, S, F) float and `source_mask` (B, S)
            bool; and `target_ids` (B, T) int32, beginning with START.

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
        arXiv:1409.0473; Luong et al. 2015, arXiv:1508.04025; Xu et al. 2015,
        arXiv:1502.03044, sections 3.1.2 and 4.2.1, for features; Kim et al.
        2017, arXiv:1609.06773, for CTC; See et al. 2017, arXiv:1704.04368,
        for copies; Bengio et al. 2015, arXiv:1506.03099, for scheduled
        sampling.
    """

    def __init__(
        self,
        source_vocab_size: int | None,
        target_vocab_size: int,
        *,
        embedding_dim: int,
        units: int,
        num_encoder_layers: int = 1,
        num_decoder_layers: int = 1,
        bidirectional: bool = True,
        reverse_source: bool = False,
        attention: keras.layers.Layer | None = None,
        order: str = "luong",
        input_feeding: bool = False,
        cell: str = "lstm",
        dropout: float = 0.0,
        tie_embeddings: bool = False,
        source_layer: keras.layers.Layer | None = None,
        source_dim: int | None = None,
        coverage: float = 0.0,
        ctc: float = 0.0,
        context_gate: bool = False,
        copy: bool = False,
        piece_dropout: float = 0.0,
        sampling_schedule: str | None = None,
        sampling_rate: float = 0.25,
        sampling_steps: int = 1000,
        sampling_seed: int = 0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "lstm_seq2seq",
        **kwargs,
    ):
        policy = keras.dtype_policies.get(dtype)
        source = source_vocab_size, source_dim, source_layer
        set_source(self, *source, num_encoder_layers, policy)
        set_sizes(
            self,
            target_vocab_size=target_vocab_size,
            embedding_dim=embedding_dim,
            units=units,
            num_decoder_layers=num_decoder_layers,
        )
        set_rates(self, dropout=dropout, piece_dropout=piece_dropout)
        auxiliary_losses.set_auxiliary_losses(self, attention, coverage, ctc)
        scheduled_sampling.set_sampling(
            *(self, sampling_schedule, sampling_rate),
            *(sampling_steps, sampling_seed),
        )

        can_copy = attention is not None and source_layer is None
        if copy and not (can_copy and source_vocab_size == target_vocab_size):
            raise ArgumentError(
                "copy needs attention, no source_layer, and one vocabulary. "
                f"Received: attention={attention}, source_layer="
                f"{source_layer}, source_vocab_size={source_vocab_size}, "
                f"target_vocab_size={target_vocab_size}"
            )

        # Layers
        # Inputs of unit variance: with states near zero the energies, products
        # of states, are near zero too, and attention learns epochs later.
        unit = embeddings.unit_initializer(embedding_dim)
        if source_vocab_size is not None:
            self.source_embedding = layers.Embedding(
                source_vocab_size,
                embedding_dim,
                embeddings_initializer=unit,
                dtype=policy,
                name="source_embedding",
            )
        self.target_embedding = embeddings.output_embedding(
            target_vocab_size, embedding_dim, True, policy, "target_embedding"
        )
        self.encoder = recurrent_encoder(
            *(num_encoder_layers, units, cell, bidirectional, policy),
            reverse=reverse_source,
        )
        has_states = getattr(source_layer, "returns_states", self.encoder)
        self.starts = initial_state_layers(
            0 if has_states else num_decoder_layers, units, cell, policy
        )
        of_turns = getattr(attention, "reads_turns", attention is None)
        self._reads_turns = of_turns and not (self.encoder or ctc)
        self.decoder = AttentionDecoder(
            units,
            num_layers=num_decoder_layers,
            attention=attention,
            order=order,
            input_feeding=input_feeding,
            cell=cell,
            dropout=dropout,
            context_gate=context_gate,
            dtype=policy,
            name="decoder",
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.piece_dropout_layer = PieceDropout(
            piece_dropout, dtype=policy, name="piece_dropout"
        )
        self.projection = layers.Dense(
            embedding_dim if tie_embeddings else target_vocab_size,
            use_bias=not tie_embeddings,
            dtype=policy,
            name="projection",
        )
        self.logits = layers.Identity(dtype="float32", name="logits")
        if copy:
            self.pointer = PointerGenerator(dtype="float32", name="pointer")

        # Config
        self.bidirectional = bidirectional
        self.reverse_source = reverse_source
        self.attention = self.decoder.attention
        self.order = order
        self.input_feeding = input_feeding
        self.cell = cell
        self.tie_embeddings = tie_embeddings
        self.context_gate = context_gate
        self.copy = copy

        # Graph
        inputs = seq2seq_inputs(source_dim, self.source_layer)
        logits, _, memory, _ = self._read(inputs, copy)
        auxiliary_losses.build_ctc(self, memory)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def _read(self, inputs, return_weights):
        """Logits and weights of whole targets, the memory and its mask."""
        memory, memory_mask, initial_state = self._encode(inputs)
        outputs = self.decoder(
            self._embed_target(inputs["target_ids"]),
            memory,
            memory_mask=memory_mask,
            initial_state=initial_state,
            return_weights=return_weights,
        )
        outputs, weights = outputs if return_weights else (outputs, None)
        logits = self._project(outputs)
        if self.copy:
            ids = inputs["source_ids"]
            logits = self.pointer(logits, outputs, weights, ids)
        return logits, weights, memory, memory_mask

    def _encode(self, inputs):
        """The memory of the decoder, its mask, and the first states."""
        x, mask, last_states = read_inputs(
            inputs, self._embed_source, self.source_layer, self._reads_turns
        )
        if self.encoder:
            x, last_states = read_source(
                self.encoder, x, mask, self.dropout_layer, self.bidirectional
            )
        last_states = last_states or initial_states(self.starts, x, mask)
        memory = x if self.attention else last_states[-1][0][:, None]
        return memory, mask, decoder_states(last_states, self.decoder)

    def _embed_source(self, ids):
        x = self.source_embedding(ids) * self.embedding_dim**0.5
        return self.piece_dropout_layer(x)

    def _embed_target(self, ids):
        x = self.target_embedding(ids) * self.embedding_dim**0.5
        return self.dropout_layer(self.piece_dropout_layer(x))

    def _project(self, outputs, kernel=None):
        logits = self.projection(outputs)
        if self.tie_embeddings:
            logits = embeddings.project(self.target_embedding, logits, kernel)
        return self.logits(logits)

    def call(
        self,
        inputs,
        training: bool | None = None,
        mask=None,
        with_attention: bool = False,
        with_memory: bool = False,
    ):
        if with_memory:
            return self._read(inputs, return_weights=True)
        return super().call(inputs, training, mask, with_attention)

    def loss_outputs(self, inputs, training: bool):
        if training and self.sampling_schedule:
            inputs = scheduled_sampling.feed_predictions(self, inputs)
        if self.coverage or self.ctc:
            return self(inputs, training=training, with_memory=True)
        return super().loss_outputs(inputs, training)

    def token_losses(self, inputs, labels, outputs, *arguments) -> TokenLosses:
        if not (self.coverage or self.ctc):
            return super().token_losses(inputs, labels, outputs, *arguments)
        losses = super().token_losses(inputs, labels, outputs[:2], *arguments)
        return auxiliary_losses.add_auxiliary_losses(
            self, losses, inputs, labels, *outputs[1:]
        )

    def encode(self, inputs: dict) -> dict:
        """The state before the first step, from the inputs of the source."""
        memory, memory_mask, last_states = self._encode(inputs)
        source = {}
        if self.copy:  # int32 is on the host
            source["source_ids"] = ops.cast(inputs["source_ids"], "int64")
        return {
            "memory": {
                "mask": memory_mask,
                "projected": self.decoder.project_memory(memory),
                **auxiliary_losses.ctc_memory(self, memory),
                **source,
            },
            "decoder": self.decoder.start(memory, last_states),
        }

    def decoding_constants(self):
        """What every step needs and no input changes: the output matrix."""
        if self.tie_embeddings:
            return embeddings.output_kernel(self.target_embedding)
        return None

    def decode_step(self, token_ids, state: dict):
        """One step. (B * K,) int, state -> (B * K, V) float32, state."""
        token_ids = ops.cast(token_ids, "int64")  # int32 is on the host
        memory = state["memory"]
        covers = "attention" in state  # what a coverage penalty reads
        outputs, *weights, decoder = self.decoder.step(
            self._embed_target(token_ids),
            state["decoder"],
            memory["projected"],
            memory_mask=memory["mask"],
            return_weights=covers or self.copy,
        )
        if covers:
            state = {**state, "attention": ops.cast(weights[0], "float32")}
        logits = self._project(outputs, state.get("constants"))
        if self.copy:
            at_step = (x[:, None] for x in (logits, outputs, *weights))
            logits = self.pointer(*at_step, memory["source_ids"])[:, 0]
        return logits, {**state, "decoder": decoder}

    def attention_weights(self, inputs: dict) -> dict:
        """The weights of each step over the memory.

        Args:
            inputs: as in a call.

        Returns:
            (B, T, S) float32, rows that sum to 1.

        Raises:
            ValueError: if the model has no attention.
        """
        return self.logits_and_attention(inputs)[1]

    def logits_and_attention(self, inputs: dict):
        """The outputs of a call, and `attention_weights`."""
        logits, weights, *_ = self._read(inputs, return_weights=True)
        return logits, ops.cast(weights, "float32")

    def get_config(self) -> dict:
        return config_of(
            self,
            LSTMSeq2Seq,
            "attention",
            "source_layer",
            later_rates=("piece_dropout",),
        )

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "attention", "source_layer"))
