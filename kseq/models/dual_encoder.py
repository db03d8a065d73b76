"""A dual encoder: the vectors of a text and its answer are similar."""

import keras

from kseq.layers import (
    Dropout,
    NormalizedProjection,
    RecurrentPooling,
    ScaledSimilarity,
)
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.embeddings import input_embedding
from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.models.source_inputs import id_inputs
from kseq.ops import padding_mask
from kseq.user_error import check_integers

if keras.backend.backend() == "tensorflow":  # the only one that trains
    from kseq.models.in_batch_losses import in_batch_losses


@keras.saving.register_keras_serializable(package="kseq")
class DualEncoder(ExactModel):
    """A dual encoder: the vectors of a text and its answer are similar.

        x = P attention over the pieces of [forward GRU; backward GRU] of source
        y = the same of the target, with weights of its own
        logits = scale * cosine of x and each y of the batch

    It is trained to find the target of each source among all targets of the
    global batch, on any number of devices. Targets equal to the correct one,
    and those of rows whose weights are all zero, are left out. With
    `accumulation_steps`, the encoders read a batch in micro-batches, and the
    loss still compares all of its rows.

    Args:
        source_vocab_size: int.
        target_vocab_size: int; or None where source and target have one
            vocabulary, and so one embedding.
        embedding_dim: int.
        units: int, of each direction, and of the learned queries.
        dim: int, D, size of the vectors.
        dropout: float, on embeddings and before the last projection.
        dtype: dtype policy or its name; the vectors are float32.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, S) int32, padded with PAD, and of
            `target_ids` (B, T) int32, beginning with START.

    Returns:
        logits, (B, B) float32: row i is for the target of each row of the
        batch, after source i.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = DualEncoder(30, embedding_dim=8, units=5, dim=4)
        >>> source, target = np.array([[4, 5], [6, 3]]), np.array([[2], [2]])
        >>> model({"source_ids": source, "target_ids": target}).shape
        TensorShape([2, 2])
        >>> model.encode_source({"source_ids": source}).shape
        TensorShape([2, 4])

    Reference:
        Henderson et al. 2017, arXiv:1705.00652: multiple negatives. The
        recurrent encoders and the learned scale are ours.
    """

    uses_in_batch_negatives = True
    uses_softmax = False

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int | None = None,
        *,
        embedding_dim: int,
        units: int,
        dim: int,
        dropout: float = 0.0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "dual_encoder",
        **kwargs,
    ):
        set_sizes(
            self,
            source_vocab_size=source_vocab_size,
            embedding_dim=embedding_dim,
            units=units,
            dim=dim,
        )
        check_integers(target_vocab_size=target_vocab_size, optional=True)
        set_rates(self, dropout=dropout)
        self.target_vocab_size = target_vocab_size

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.source_embedding = input_embedding(
            source_vocab_size, embedding_dim, policy, "source_embedding"
        )
        self.target_embedding = self.source_embedding
        if target_vocab_size is not None:
            self.target_embedding = input_embedding(
                target_vocab_size, embedding_dim, policy, "target_embedding"
            )
        self.source_encoder, self.target_encoder = (
            RecurrentPooling(units, units, dtype=policy, name=f"{side}_encoder")
            for side in ("source", "target")
        )
        self.source_projection, self.target_projection = (
            NormalizedProjection(
                dim, dtype="float32", name=f"{side}_projection"
            )
            for side in ("source", "target")
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.similarity = ScaledSimilarity(dtype="float32", name="similarity")

        # Graph
        inputs = id_inputs("source_ids", "target_ids")
        similarity = self.similarity(*self.loss_outputs(inputs, training=None))
        super().__init__(inputs, similarity, dtype=policy, name=name, **kwargs)

    def loss_outputs(self, inputs, training: bool | None):
        """The vectors of sources and targets, each (B, D) float32."""
        return (
            self.encode_source(inputs, training=training),
            self.encode_target(inputs["target_ids"], training=training),
        )

    def encode_source(self, inputs: dict, training: bool | None = None):
        """The vectors of sources.

        Args:
            inputs: dict of `source_ids` (B, S) int.
            training: bool, whether to apply dropout.

        Returns:
            (B, D) float32, of length 1; zeros where there is no piece.
        """
        return self._encode(
            inputs["source_ids"],
            (self.source_embedding, self.source_encoder),
            self.source_projection,
            training,
        )

    def encode_target(self, target_ids, training: bool | None = None):
        """The vectors of targets.

        Args:
            target_ids: (B, T) int, beginning with START.
            training: bool, whether to apply dropout.

        Returns:
            (B, D) float32, of length 1; zeros where there is no piece.
        """
        return self._encode(
            target_ids,
            (self.target_embedding, self.target_encoder),
            self.target_projection,
            training,
        )

    def _encode(self, ids, encoder, projection, training):
        embedding, pooling = encoder
        x = embedding(ids) * self.embedding_dim**0.5
        x = pooling(self.dropout_layer(x, training=training), padding_mask(ids))
        return projection(self.dropout_layer(x, training=training))

    def token_losses(
        self, inputs, labels, outputs, sample_weight, label_smoothing: float
    ) -> TokenLosses:
        sources, targets = outputs
        return in_batch_losses(
            self.similarity,
            sources,
            targets,
            inputs["target_ids"],
            sample_weight,
            label_smoothing,
        )

    def get_config(self) -> dict:
        return config_of(self, DualEncoder)
