"""The convolutional encoder-decoder."""

import keras
from keras import layers, ops

from kseq.layers import (
    Dropout,
    GatedConvolution,
    LearnedPositionalEmbedding,
    LuongAttention,
    PieceDropout,
)
from kseq.models import embeddings
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask
from kseq.ops.masks import PLACES

_ROOT = 2**0.5  # by which a sum of two keeps its variance


@keras.saving.register_keras_serializable(package="kseq")
class ConvSeq2Seq(ExactModel):
    """Convolutions over source and target, and attention in each layer.

        e, g    = embeddings of source and target tokens, with positions
        encoder: x = W e; in each layer x = (x + conv(x)) r
                 z = W x, v = (z + e) r sqrt(S)
        decoder: y = W g; in each layer h = conv(y), causal
                 c = attention((W h + g) r; keys z, values v)
                 y = ((h + W c) r + y) r
        logits  = E W y

    where r = sqrt(1/2) keeps the variance of a sum, as sqrt(S), of the real
    length of the source, does that of a mean. Each conv is a
    `GatedConvolution`.

    Args:
        source_vocab_size: int.
        target_vocab_size: int.
        embedding_dim: int, of source and target.
        units: int, width of every convolution.
        num_encoder_layers: int.
        num_decoder_layers: int.
        kernel_size: int, positions that each convolution reads.
        dropout: float, on embeddings, on the inputs of convolutions and on
            those of the output projection.
        piece_dropout: float, on whole pieces of source and target.
        max_length: int, positions that have a vector; later positions use the
            last vector.
        tie_output: bool, the target embedding is also the output projection.
        dtype: dtype policy or its name.
        name: str.
        **kwargs: `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, padded with PAD, and
            `target_ids` (B, T) int32, beginning with START.

    Returns:
        logits, (B, T, V) float32: row t is for the token after target t.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = ConvSeq2Seq(20, 30, embedding_dim=8, units=16)
        >>> source = np.array([[5, 6, 7, 3]])
        >>> target = np.array([[2, 8, 9]])
        >>> model({"source_ids": source, "target_ids": target}).shape
        TensorShape([1, 3, 30])

    Reference:
        Gehring et al. 2017, arXiv:1705.03122. Unlike the paper, only the
        convolutions have weight normalization, the output may be tied, and
        gradients of the encoder are not scaled, which Adam would undo.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        *,
        embedding_dim: int,
        units: int,
        num_encoder_layers: int = 4,
        num_decoder_layers: int = 3,
        kernel_size: int = 3,
        dropout: float = 0.0,
        piece_dropout: float = 0.0,
        max_length: int = 1024,
        tie_output: bool = True,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "conv_seq2seq",
        **kwargs,
    ):
        policy = keras.dtype_policies.get(dtype)
        set_sizes(
            self,
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
            embedding_dim=embedding_dim,
            units=units,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            kernel_size=kernel_size,
            max_length=max_length,
        )
        set_rates(self, dropout=dropout, piece_dropout=piece_dropout)

        # Layers
        self.source_embedding = embeddings.input_embedding(
            source_vocab_size, embedding_dim, policy, "source_embedding"
        )
        self.target_embedding = embeddings.output_embedding(
            *(target_vocab_size, embedding_dim, tie_output),
            *(policy, "target_embedding"),
        )
        self.source_positions = LearnedPositionalEmbedding(
            max_length, dtype=policy, name="source_positions"
        )
        self.target_positions = LearnedPositionalEmbedding(
            max_length, dtype=policy, name="target_positions"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.piece_dropout_layer = PieceDropout(
            piece_dropout, dtype=policy, name="piece_dropout"
        )

        def convolutions(name, count):
            return [
                GatedConvolution(
                    *(units, kernel_size),
                    causal=name == "decoder",
                    dropout=dropout,
                    dtype=policy,
                    name=f"{name}_{i}",
                )
                for i in range(count)
            ]

        self.encoder = convolutions("encoder", num_encoder_layers)
        self.decoder = convolutions("decoder", num_decoder_layers)

        def projection(size, name):
            return layers.Dense(
                size,
                kernel_initializer="lecun_normal",
                dtype=policy,
                name=name,
            )

        self.encoder_input = projection(units, "encoder_input")
        self.encoder_output = projection(embedding_dim, "encoder_output")
        self.decoder_input = projection(units, "decoder_input")
        self.decoder_output = projection(embedding_dim, "decoder_output")
        each = range(num_decoder_layers)
        self.query_projections = [
            projection(embedding_dim, f"query_projection_{i}") for i in each
        ]
        self.context_projections = [
            projection(units, f"context_projection_{i}") for i in each
        ]
        self.attention = LuongAttention("dot", dtype=policy, name="attention")
        self.attention.build(*[(None, None, embedding_dim)] * 2)
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Config
        self.tie_output = tie_output

        # Graph
        inputs = id_inputs("source_ids", "target_ids")
        x, *_ = self._decode(inputs["target_ids"], **self._encode(inputs))
        super().__init__(
            inputs, self._project(x), dtype=policy, name=name, **kwargs
        )

    def _encode(self, inputs):
        """The memory: keys and values (B, S, E), and their mask (B, S)."""
        ids = inputs["source_ids"]
        mask = padding_mask(ids)
        embedded = self.piece_dropout_layer(self.source_embedding(ids))
        embedded = self.source_positions(embedded)
        embedded = self.dropout_layer(embedded)
        x = self.encoder_input(embedded)
        for convolution in self.encoder:
            x = (x + convolution(x, inputs_mask=mask)) / _ROOT
        keys = self.encoder_output(x)
        length = ops.sum(ops.cast(mask, "float32"), axis=1)[:, None, None]
        scale = ops.cast(ops.sqrt(0.5 * length), keys.dtype)
        values = (keys + embedded) * scale
        return {"projected": (keys, values), "mask": mask}

    def _decode(self, ids, projected, mask, start=0, before=None, kernels=None):
        """The last layer, the weights of each, and their last inputs."""
        embedded = self.piece_dropout_layer(self.target_embedding(ids))
        embedded = self.target_positions(embedded, start=start)
        embedded = self.dropout_layer(embedded)
        x = self.decoder_input(embedded)
        every_weights, windows = [], []
        for i, convolution in enumerate(self.decoder):
            arguments = {}
            if before is not None:
                arguments = {"before": before[i], "kernel": kernels[i]}
            hidden = convolution(x, **arguments)
            if before is not None:
                hidden, window = hidden
                windows.append(window)
            query = (self.query_projections[i](hidden) + embedded) / _ROOT
            context, weights = self.attention(
                query,
                projected_memory=projected,
                memory_mask=mask,
                return_weights=True,
            )
            every_weights.append(weights)
            hidden = (hidden + self.context_projections[i](context)) / _ROOT
            x = (hidden + x) / _ROOT
        return x, every_weights, windows

    def _project(self, x, kernel=None):
        x = self.dropout_layer(self.decoder_output(x))
        return self.logits(embeddings.project(self.target_embedding, x, kernel))

    def encode(self, inputs: dict) -> dict:
        """The state before the first step, from the inputs of the source."""
        memory = self._encode(inputs)
        batch = ops.shape(memory["mask"])[0]
        shape = (batch, self.kernel_size - 1, self.units)
        before = ops.zeros(shape, dtype=self.compute_dtype)
        return {
            "memory": memory,
            "before": [before] * self.num_decoder_layers,
            "position": ops.zeros((batch,), dtype=PLACES),
        }

    def decoding_constants(self):
        """What every step needs and no input changes: the matrices."""
        return {
            "output": embeddings.output_kernel(self.target_embedding),
            "convolutions": [each.kernel() for each in self.decoder],
        }

    def decode_step(self, token_ids, state: dict):
        """One step. (B * K,) int, state -> (B * K, V) float32, state.

        It costs the same whatever the number of steps before.
        """
        token_ids = ops.cast(token_ids, "int64")  # int32 is on the host
        constants = state.get("constants") or self.decoding_constants()
        x, weights, before = self._decode(
            token_ids[:, None],
            **state["memory"],
            start=state["position"],
            before=state["before"],
            kernels=constants["convolutions"],
        )
        if "attention" in state:  # what a coverage penalty reads
            weights = _mean_of_layers(weights)[:, 0]
            state = {**state, "attention": weights}
        logits = self._project(x[:, 0], constants["output"])
        position = state["position"] + 1
        return logits, {**state, "before": before, "position": position}

    def attention_weights(self, inputs: dict) -> dict:
        """Over the source: the mean of all layers of the decoder.

        Args:
            inputs: as in a call.

        Returns:
            (B, T, S) float32, rows that sum to 1.
        """
        return self.logits_and_attention(inputs)[1]

    def logits_and_attention(self, inputs: dict):
        """The outputs of a call, and `attention_weights`."""
        memory = self._encode(inputs)
        x, weights, _ = self._decode(inputs["target_ids"], **memory)
        return self._project(x), _mean_of_layers(weights)

    def get_config(self) -> dict:
        return config_of(self, ConvSeq2Seq, later_rates=("piece_dropout",))


def _mean_of_layers(weights):
    return ops.mean(ops.cast(ops.stack(weights), "float32"), axis=0)
