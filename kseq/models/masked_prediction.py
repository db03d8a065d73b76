"""Masked pieces, predicted from those around them."""

import keras
from keras import layers, ops

from kseq.layers.layer_config import with_layers
from kseq.models.arguments import config_of
from kseq.models.exact_model import ExactModel
from kseq.models.piece_prediction import candidate_logits, one_row
from kseq.models.source_inputs import id_inputs


@keras.saving.register_keras_serializable(package="kseq")
class MaskedPrediction(ExactModel):
    """Pretrains the encoder of a Transformer on text without labels.

    Some pieces of each row x are masked or replaced. Each of these pieces is
    predicted from the whole row, among several candidates:

        logits_t = [x_t; candidates] . W encoder(masked x)_t

    with one embedding for inputs and outputs, see `PiecePrediction`.

    Args:
        classifier: `TransformerClassifier`, whose encoder is shared.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source_ids` (B, T) int32, in which 0 is a masked
            piece; of `places` (B, M) int32, the positions to predict; of
            `pieces` (B, M) int32, what was there; and of `candidates` (B, K)
            int32, the same in each row.

    Returns:
        logits, (B, M, 1 + K) float32. All labels are 0.

    Example:
        >>> classifier = kseq.models.TransformerClassifier(
        ...     30, 2, num_layers=1, model_dim=8, ffn_dim=16, num_heads=2
        ... )
        >>> model = MaskedPrediction(classifier)
        >>> inputs = {
        ...     "source_ids": np.array([[4, 0, 6]]),
        ...     "places": np.array([[1]]),
        ...     "pieces": np.array([[5]]),
        ...     "candidates": np.array([[8, 9]]),
        ... }
        >>> model(inputs).shape
        TensorShape([1, 1, 3])

    Reference:
        Devlin et al. 2019, arXiv:1810.04805, section 3.1, with the loss of
        `PiecePrediction`.
    """

    def __init__(
        self,
        classifier: keras.Model,
        *,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "masked_prediction",
        **kwargs,
    ):
        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.classifier = classifier
        embedding = classifier.embedding
        self.projection = layers.Dense(
            embedding.dim, dtype=policy, name="projection"
        )
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = id_inputs("source_ids", "places", "pieces", "candidates")
        hidden = classifier.encode(inputs["source_ids"])
        at_places = ops.take_along_axis(
            hidden, inputs["places"][..., None], axis=1
        )
        logits = candidate_logits(
            embedding,
            self.projection(at_places),
            inputs["pieces"],
            one_row(inputs["candidates"]),
        )
        logits = self.logits(logits)
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def get_config(self) -> dict:
        return config_of(self, MaskedPrediction, "classifier")

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "classifier"))
