"""A recurrent network that predicts bits."""

import keras
from keras import layers, ops

from kseq.layers import NeuralTuringMachine
from kseq.layers.layer_config import with_layers
from kseq.models.arguments import config_of, set_sizes
from kseq.models.exact_model import ExactModel, TokenLosses
from kseq.user_error import ArgumentError


@keras.saving.register_keras_serializable(package="kseq")
class BinaryRNN(ExactModel):
    """A recurrent network that predicts the bits of a vector at each step.

        logits_t = outputs(RNN(source_1, ..., source_t))

    It is trained on the cross-entropy of each bit, in nats, and reports the
    fraction of bits that are right as `accuracy`.

    Args:
        input_dim: int, F, features of a step.
        output_dim: int, D, bits of a step.
        cell: a cell of `keras.layers.RNN` that has a config, such as
            `kseq.layers.NeuralTuringMachine`, `keras.layers.LSTMCell` or
            `keras.layers.StackedRNNCells` of them. The model has a copy.
        dtype: dtype policy or its name.
        **kwargs: `name`, `trainable`.

    Call arguments:
        inputs: dict of `source` (B, T, F) float.

    Returns:
        Logits (B, T, D) float32. Those of a step depend on no later step.

    Raises:
        ArgumentError: if a size is out of range, or `cell` is not a layer.

    Example:
        >>> cell = keras.layers.LSTMCell(16)
        >>> model = BinaryRNN(9, 8, cell)
        >>> model({"source": np.ones((2, 5, 9))}).shape
        TensorShape([2, 5, 8])

    Reference:
        Graves et al. 2014, arXiv:1410.5401, section 4.
    """

    uses_softmax = False

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        cell: keras.layers.Layer,
        dtype: str | keras.DTypePolicy | None = None,
        name: str = "binary_rnn",
        **kwargs,
    ):
        set_sizes(self, input_dim=input_dim, output_dim=output_dim)
        if not isinstance(cell, layers.Layer):
            raise ArgumentError(
                f"cell must be a cell of an RNN. Received: cell={cell!r}"
            )
        policy = keras.dtype_policies.get(dtype)
        config = {**cell.get_config(), "dtype": policy, "name": "cell"}
        for stacked in config.get("cells", ()):  # of StackedRNNCells
            stacked["config"]["dtype"] = policy
        self.cell = type(cell).from_config(config)
        self.rnn = layers.RNN(
            self.cell, return_sequences=True, dtype=policy, name="rnn"
        )
        self.outputs_layer = layers.Dense(
            output_dim, dtype="float32", name="outputs"
        )

        source = keras.Input((None, input_dim), name="source")
        logits = self.outputs_layer(self.rnn(source))
        super().__init__(
            {"source": source}, logits, dtype=policy, name=name, **kwargs
        )

    def token_losses(
        self, inputs, labels, outputs, sample_weight, label_smoothing: float
    ) -> TokenLosses:
        labels = ops.cast(labels, "float32")
        smoothed = labels * (1 - label_smoothing) + label_smoothing / 2
        loss = ops.softplus(outputs) - smoothed * outputs
        if sample_weight is not None:
            sample_weight = ops.broadcast_to(
                sample_weight[:, :, None], ops.shape(loss)
            )
        right = ops.equal(outputs > 0, labels > 0.5)
        return TokenLosses(loss, sample_weight, right=right)

    @property
    def has_memory(self) -> bool:
        """Whether its cell is a Neural Turing machine."""
        return isinstance(self.cell, NeuralTuringMachine)

    def weightings(self, inputs):
        """The weightings of a Neural Turing machine at each step.

        Args:
            inputs: dict of `source` (B, T, F) float.

        Returns:
            A dict: `read_weights` (B, T, H, N) and `write_weights`
            (B, T, H', N) float32, for N slots of the memory; `logits`
            (B, T, D) float32.

        Raises:
            ValueError: if the cell has no memory.
        """
        if not self.has_memory:
            raise ValueError(
                "Only a NeuralTuringMachine has weightings. Received: "
                f"cell={type(self.cell).__name__}"
            )
        traced = layers.RNN(_WithWeightings(self.cell), return_sequences=True)
        source = ops.cast(inputs["source"], self.compute_dtype)
        units, heads = self.cell.units, self.cell.read_heads
        outputs, weights = ops.split(traced(source), [units], axis=-1)
        batch, steps, _ = ops.shape(weights)
        shape = (batch, steps, self.cell.heads, self.cell.slots)
        weights = ops.reshape(weights, shape)
        return {
            "logits": self.outputs_layer(outputs),
            "read_weights": weights[:, :, :heads],
            "write_weights": weights[:, :, heads:],
        }

    def get_config(self) -> dict:
        return config_of(self, BinaryRNN, "cell")

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "cell"))


class _WithWeightings(layers.Layer):
    """A cell whose outputs are those of a Turing machine and its weightings."""

    def __init__(self, cell):
        super().__init__(dtype="float32")
        self.cell = cell
        self.state_size = cell.state_size
        self.output_size = cell.units + cell.heads * cell.slots
        self.get_initial_state = cell.get_initial_state
        self.built = True

    def call(self, inputs, states):
        outputs, states = self.cell(inputs, states)
        outputs = ops.cast(outputs, "float32")
        return ops.concatenate([outputs, states[3]], axis=-1), states
