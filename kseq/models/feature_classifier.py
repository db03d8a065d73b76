"""Attention over features: a recording or a picture to a class."""

import keras
from keras import layers, ops

from kseq.layers import AttentionPooling, Dropout
from kseq.layers.layer_config import copy_of, with_layers
from kseq.models.arguments import config_of, set_rates, set_sizes
from kseq.models.exact_model import ExactModel
from kseq.models.source_inputs import feature_inputs


@keras.saving.register_keras_serializable(package="kseq")
class FeatureClassifier(ExactModel):
    """A classifier of recordings or pictures, by attention over their parts.

        memory = source_layer(source)
        logits = W (attention over the memory) + b

    Args:
        source_dim: int, F, features of a frame or a cell.
        num_classes: int, C.
        source_layer: layer that reads the source, such as
            `kseq.layers.PyramidalEncoder` for the frames of speech or
            `kseq.layers.GridEncoder` for the cells of a picture. The model
            creates a copy with its own dtype policy.
        attention_units: int, size of the learned query.
        dropout: float, on what the attention gives.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source` (B, S, F) float and `source_mask` (B, S) bool,
            True at real frames or cells.

    Returns:
        logits, (B, C) float32.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> model = FeatureClassifier(
        ...     16, 3, source_layer=kseq.layers.PyramidalEncoder(8),
        ...     attention_units=5,
        ... )
        >>> source, mask = np.ones((2, 21, 16)), np.ones((2, 21), bool)
        >>> model({"source": source, "source_mask": mask}).shape
        TensorShape([2, 3])

    Reference:
        Yang et al. 2016, aclanthology.org/N16-1174, equations 5 to 7, over
        the memory of Chan et al. 2016, arXiv:1508.01211, section 3.1.
    """

    def __init__(
        self,
        source_dim: int,
        num_classes: int,
        *,
        source_layer: keras.layers.Layer,
        attention_units: int,
        dropout: float = 0.0,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "feature_classifier",
        **kwargs,
    ):
        set_sizes(
            self,
            source_dim=source_dim,
            num_classes=num_classes,
            attention_units=attention_units,
        )
        set_rates(self, dropout=dropout)

        # Layers
        policy = keras.dtype_policies.get(dtype)
        self.source_layer = copy_of(
            source_layer, dtype=policy, name="source_layer"
        )
        self.pooling = AttentionPooling(
            attention_units, dtype=policy, name="pooling"
        )
        self.dropout_layer = Dropout(dropout, dtype=policy, name="dropout")
        self.classes = layers.Dense(num_classes, dtype=policy, name="classes")
        self.logits = layers.Identity(dtype="float32", name="logits")

        # Graph
        inputs = feature_inputs(source_dim)
        logits = self.explain(inputs)["logits"]
        super().__init__(inputs, logits, dtype=policy, name=name, **kwargs)

    def explain(self, inputs):
        """The logits and what they were computed from.

        Args:
            inputs: as in a call.

        Returns:
            A dict of `logits` (B, C) and `attention` (B, S'), the weights of
            the positions of `source_layer`, which sum to 1; all float32.
        """
        memory, mask, _ = self.source_layer(
            inputs["source"], inputs["source_mask"]
        )
        pooled, weights = self.pooling(memory, mask, return_weights=True)
        logits = self.classes(self.dropout_layer(pooled))
        return {
            "logits": self.logits(logits),
            "attention": ops.cast(weights, "float32"),
        }

    def get_config(self):
        return config_of(self, FeatureClassifier, "source_layer")

    @classmethod
    def from_config(cls, config):
        return cls(**with_layers(config, "source_layer"))
