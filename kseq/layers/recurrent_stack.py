"""Stacked recurrent cells, one step or a whole sequence."""

import keras
from keras import ops

from kseq.layers.cudnn import cudnn_allowed, cudnn_lstm, has_cudnn
from kseq.layers.dense import Dense
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of
from kseq.ops import lstm_over_time, lstm_step
from kseq.user_error import check_choice, check_integers

_GATES = {"lstm": 4, "gru": 3, "tanh": 1}


@keras.saving.register_keras_serializable(package="kseq")
class RecurrentStack(keras.layers.Layer):
    """Stacked LSTM, GRU or tanh cells: a call is one step, for use in a loop.

    With h_i the state of cell i before the step and h'_i after it,

        gates_1 = projected + W_1 [fed; h_1] + b_1
        gates_i = W_i [h'_{i-1}; h_i] + b_i
        h'_i    = tanh(gates_i), or the state of an LSTM cell

    The cells of a GRU reset h before the product, as in the paper:

        z, r    = sigmoid(W [fed; h] + b + projected)
        h'      = z * h + (1 - z) * tanh(V [fed; r * h] + c + projected)

    `projected` does not depend on the state, so it can be computed for all
    steps before the loop.

    Args:
        units: int, U, width of every cell.
        num_layers: int, number of cells.
        cell: "lstm", "gru" or "tanh".
        dropout: float, between the cells, see `dropout_masks`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        projected: (B, `gate_units`) float: 4 U with "lstm", 3 U with "gru"
            (z, r, candidate), U with "tanh".
        state: {"hidden": tensors, "cell": tensors}, one (B, U) for each
            cell; "cell" tensors with "lstm" only.
        fed: (B, F) float, or None.
        keep: the output of `dropout_masks`, at this step.

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
        2000; GRU: Cho et al. 2014, arXiv:1406.1078, section 2.3, equal to
        `keras.layers.GRU(reset_after=False)`; stacked as in Sutskever et al.
        2014, arXiv:1409.3215.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        cell: str = "lstm",
        dropout: float = 0.0,
        **kwargs,
    ):
        check_integers(units=units, num_layers=num_layers)
        check_choice("cell", cell, tuple(_GATES))
        super().__init__(**kwargs)
        self.units = units
        self.num_layers = num_layers
        self.cell = cell
        self.dropout = dropout
        self.gate_units = _GATES[cell] * units
        recurrent_units = 2 * units if cell == "gru" else self.gate_units
        self.recurrences = self._dense(recurrent_units, "recurrence")
        self.candidates = []
        if cell == "gru":
            self.candidates = self._dense(units, "candidate")
        self.dropout_layer = Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def _dense(self, units, name):
        return [
            Dense(units, dtype=self.dtype_policy, name=f"{name}_{i}")
            for i in range(self.num_layers)
        ]

    def build(self, projected_shape, fed_shape=(None, 0)):
        sizes = [fed_shape[-1]] + [self.units] * (self.num_layers - 1)
        for layers in (self.recurrences, self.candidates):
            for size, layer in zip(sizes, layers, strict=False):
                layer.build((None, size + self.units))

    def call(self, projected, state, fed=None, keep=()):
        below = [] if fed is None else [fed]
        hiddens, cells = [], []
        for i, hidden in enumerate(state["hidden"]):
            if self.cell == "gru":
                hidden = self._gru_step(i, projected, below, hidden)
            else:
                read = ops.concatenate([*below, hidden], axis=-1)
                gates = self.recurrences[i](read)
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

    def _gru_step(self, i, projected, below, hidden):
        of_gates, of_candidate = 0, 0
        if i == 0:
            splits = [2 * self.units]
            of_gates, of_candidate = ops.split(projected, splits, axis=-1)
        read = ops.concatenate([*below, hidden], axis=-1)
        gates = ops.sigmoid(self.recurrences[i](read) + of_gates)
        update, reset = ops.split(gates, 2, axis=-1)
        read = ops.concatenate([*below, reset * hidden], axis=-1)
        candidate = ops.tanh(self.candidates[i](read) + of_candidate)
        return update * hidden + (1 - update) * candidate

    def over_time(self, terms, state, keep=(), unroll=False):
        """The states of the last cell at all steps, where nothing is fed.

        One cell after the other reads the sequence: all that does not depend
        on its own state is one product, and cuDNN can run it.

        Args:
            terms: list of (inputs, kernel), (B, T, D) float and (D, 4 U)
                float, whose products are summed to `projected`; after the
                first, (B, 1, D) float.
            state: as in a call.
            keep: the output of `dropout_masks`.
            unroll: bool, whether to unroll the loop.

        Returns:
            (B, T, U) float.
        """
        terms = [(x, self._tensor(kernel)) for x, kernel in terms]
        hidden = None
        for i, before in enumerate(
            zip(state["hidden"], state["cell"], strict=True)
        ):
            recurrence = self.recurrences[i]
            kernel, bias = map(
                self._tensor, (recurrence.kernel, recurrence.bias)
            )
            if i > 0:
                terms = [(hidden, kernel[: -self.units])]
            hidden = self._cell_over_time(
                *(terms, kernel[-self.units :], bias, before, unroll)
            )
            if i < len(keep):
                hidden = hidden * keep[i]
        return hidden

    def _cell_over_time(self, terms, recurrent_kernel, bias, before, unroll):
        # Of the gates in their order, see `lstm_step`.
        forget_bias = [
            float(g == 1) for g in range(4) for _ in range(self.units)
        ]
        bias = bias + ops.convert_to_tensor(forget_bias, bias.dtype)
        (inputs, kernel), *others = terms
        if not unroll and cudnn_allowed() and has_cudnn():
            time = ops.shape(inputs)[1]
            for values, of_values in others:
                shape = (*ops.shape(values)[:1], time, values.shape[-1])
                values = ops.broadcast_to(values, shape)
                inputs = ops.concatenate([inputs, values], axis=-1)
                kernel = ops.concatenate([kernel, of_values], axis=0)
            return cudnn_lstm(inputs, kernel, recurrent_kernel, bias, before)
        for values, of_values in others:
            bias = bias + ops.matmul(values[:, 0], of_values)
        hidden, _ = lstm_over_time(
            inputs, kernel, recurrent_kernel, bias, before, unroll=unroll
        )
        return hidden

    def _tensor(self, variable):
        return ops.convert_to_tensor(variable, dtype=self.compute_dtype)

    def zeros(self, batch) -> dict:
        """The initial state of `batch` sequences."""
        zeros = ops.zeros((batch, self.units), dtype=self.compute_dtype)
        hidden = [zeros] * self.num_layers
        return {"hidden": hidden, "cell": hidden if self.cell == "lstm" else []}

    def dropout_masks(self, inputs, training: bool | None) -> list:
        """Dropout factors for all steps, drawn before the loop.

        Args:
            inputs: (B, T, E), the inputs of the loop.
            training: bool.

        Returns:
            tensors (B, T, U), one for each cell except the last; no tensors
            without dropout.
        """
        if not training or not self.dropout:
            return []
        shape = (*ops.shape(inputs)[:2], self.units)
        ones = ops.ones(shape, dtype=self.compute_dtype)
        between = range(self.num_layers - 1)
        return [self.dropout_layer(ones, training=True) for _ in between]

    def compute_output_shape(self, projected_shape, state_shape):
        return state_shape

    def get_config(self) -> dict:
        return config_of(self, RecurrentStack)
