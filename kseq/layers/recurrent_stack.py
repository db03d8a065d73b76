"""One step of recurrent cells that stand on each other."""

import keras
from keras import ops

from kseq.layers.dropout import Dropout
from kseq.ops import lstm_step


@keras.saving.register_keras_serializable(package="kseq")
class RecurrentStack(keras.layers.Layer):
    """One step of LSTM or tanh cells, to be called within a loop.

    With h_i the state of cell i before the step and h'_i after it,

        gates_1 = projected + W_1 [fed; h_1] + b_1
        gates_i = W_i [h'_{i-1}; h_i] + b_i
        h'_i    = tanh(gates_i), or that of an LSTM cell

    What `projected` is made of does not depend on the loop, and so its
    projection can be computed outside, for all steps at once.

    Args:
        units: int, U, width of every cell.
        num_layers: int, number of cells.
        cell: "lstm" or "tanh".
        dropout: float, on what goes from cell to cell, see `draw_keep`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        projected: (B, `gate_units`) float: 4 U with "lstm", U with "tanh".
        state: {"hidden": tensors, "cell": tensors}, one (B, U) for each
            cell; no "cell" tensors with "tanh".
        fed: (B, F) float, or None.
        keep: what `draw_keep` returned, at this step.

    Returns:
        the state after the step.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> stack = RecurrentStack(units=8, num_layers=2, cell="tanh")
        >>> state = stack(np.ones((3, 8)), stack.zeros(batch=3))
        >>> state["hidden"][-1].shape
        TensorShape([3, 8])

    Reference:
        Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al.
        2000; stacked as in Sutskever et al. 2014, arXiv:1409.3215.
    """

    def __init__(self, units, num_layers=1, cell="lstm", dropout=0.0, **kwargs):
        for name, value in (("units", units), ("num_layers", num_layers)):
            if value < 1:
                raise ValueError(
                    f"{name} must be positive. Received: {name}={value}"
                )
        if cell not in ("lstm", "tanh"):
            raise ValueError(
                f'cell must be "lstm" or "tanh". Received: cell={cell!r}'
            )
        super().__init__(**kwargs)
        self.units = units
        self.num_layers = num_layers
        self.cell = cell
        self.dropout = dropout
        self.gate_units = 4 * units if cell == "lstm" else units
        self.recurrences = [
            keras.layers.Dense(
                self.gate_units, dtype=self.dtype_policy, name=f"recurrence_{i}"
            )
            for i in range(num_layers)
        ]
        self.dropout_layer = Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, projected_shape, fed_shape=(None, 0)):
        below = fed_shape[-1]
        for recurrence in self.recurrences:
            recurrence.build((None, below + self.units))
            below = self.units

    def call(self, projected, state, fed=None, keep=()):
        below = [] if fed is None else [fed]
        hiddens, cells = [], []
        for i, recurrence in enumerate(self.recurrences):
            read = ops.concatenate([*below, state["hidden"][i]], axis=-1)
            gates = recurrence(read)
            if i == 0:
                gates = gates + projected
            if self.cell == "lstm":
                hidden, cell = lstm_step(gates, state["cell"][i])
                cells.append(cell)
            else:
                hidden = ops.tanh(gates)
            hiddens.append(hidden)
            below = [hidden * keep[i] if i < len(keep) else hidden]
        return {"hidden": hiddens, "cell": cells}

    def zeros(self, batch):
        """A state for `batch` sequences that have not begun."""
        zeros = ops.zeros((batch, self.units), dtype=self.compute_dtype)
        hidden = [zeros] * self.num_layers
        return {"hidden": hidden, "cell": hidden if self.cell == "lstm" else []}

    def draw_keep(self, inputs, training):
        """Factors for dropout, drawn outside the loop, for all its steps.

        Args:
            inputs: (B, T, E), read by the loop.
            training: bool.

        Returns:
            tensors (B, T, U), one for each cell but the last; none where
            nothing is dropped.
        """
        if not training or not self.dropout:
            return []
        shape = (*ops.shape(inputs)[:2], self.units)
        ones = ops.ones(shape, dtype=self.compute_dtype)
        between = range(self.num_layers - 1)
        return [self.dropout_layer(ones, training=True) for _ in between]

    def compute_output_shape(self, projected_shape, state_shape):
        return state_shape

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "cell": self.cell,
            "dropout": self.dropout,
        }
