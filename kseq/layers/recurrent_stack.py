"""Stacked recurrent cells, one step or a whole sequence."""

import functools
import itertools
import operator

import keras
import numpy as np
from keras import ops

from kseq.check_integers import check_integers
from kseq.layers.cudnn import cudnn_is_allowed, has_cudnn, lstm_by_cudnn
from kseq.layers.dropout import Dropout
from kseq.ops import lstm_step, scan_time

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
        dropout: float, between the cells, see `draw_keep`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        projected: (B, `gate_units`) float: 4 U with "lstm", 3 U with "gru"
            (z, r, candidate), U with "tanh".
        state: {"hidden": tensors, "cell": tensors}, one (B, U) for each
            cell; "cell" tensors with "lstm" only.
        fed: (B, F) float, or None.
        keep: the output of `draw_keep`, at this step.

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

    def __init__(self, units, num_layers=1, cell="lstm", dropout=0.0, **kwargs):
        check_integers(units=units, num_layers=num_layers)
        if cell not in _GATES:
            raise ValueError(
                f"cell must be one of {tuple(_GATES)}. Received: cell={cell!r}"
            )
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
            keras.layers.Dense(
                units, dtype=self.dtype_policy, name=f"{name}_{i}"
            )
            for i in range(self.num_layers)
        ]

    def _products_of(self, i):
        return [each[i] for each in (self.recurrences, self.candidates) if each]

    def build(self, projected_shape, fed_shape=(None, 0)):
        sizes = [fed_shape[-1]] + [self.units] * (self.num_layers - 1)
        for i, size in enumerate(sizes):
            for layer in self._products_of(i):
                layer.build((None, size + self.units))

    def call(self, projected, state, fed=None, keep=()):
        below = [] if fed is None else [fed]
        parts, after = self._split(projected), []
        for i, before in enumerate(_of_each_cell(state)):
            products = [
                functools.partial(_product, layer, below, part)
                for layer, part in zip(self._products_of(i), parts, strict=True)
            ]
            hidden, *_ = states = self._step(products, *before)
            after.append(states)
            below = [hidden * keep[i] if i < len(keep) else hidden]
            parts = [None] * len(parts)
        hiddens, *cells = map(list, zip(*after, strict=True))
        return {"hidden": hiddens, "cell": cells[0] if cells else []}

    def over_time(self, terms, state, keep=(), unroll=False):
        """The states of the last cell at all steps, where nothing is fed.

        One cell after the other reads the sequence. Only what depends on its
        own state is computed in a loop, and cuDNN can run a whole cell.

        Args:
            terms: list of (inputs, kernel), (B, T, D) float and (D,
                `gate_units`) float, whose products are summed to `projected`;
                after the first, also (B, 1, D).
            state: as in a call.
            keep: the output of `draw_keep`.
            unroll: bool, whether to unroll the loop.

        Returns:
            (B, T, U) float.
        """
        terms = [(x, self._tensor(kernel)) for x, kernel in terms]
        hidden = None
        for i, before in enumerate(_of_each_cell(state)):
            kernel, recurrent, bias = self._weights_of(i)
            if i > 0:
                terms = [(hidden, kernel)]
            if self.runs_by_cudnn and not unroll and cudnn_is_allowed():
                [recurrent] = recurrent
                bias = bias + np.repeat([0.0, 1.0, 0.0, 0.0], self.units)
                hidden = lstm_by_cudnn(terms, recurrent, bias, *before)
            else:
                products = itertools.starmap(ops.matmul, terms)
                projected = functools.reduce(operator.add, products)
                hidden = self._loop(projected + bias, recurrent, before, unroll)
            if i < len(keep):
                hidden = hidden * keep[i]
        return hidden

    @property
    def runs_by_cudnn(self):
        """Whether cuDNN can run `over_time` on this machine."""
        return self.cell == "lstm" and has_cudnn()

    def _weights_of(self, i):
        """Kernels of the inputs of a cell and of its states, and its bias."""
        layers = self._products_of(i)
        kernels = [self._tensor(layer.kernel) for layer in layers]
        biases = [self._tensor(layer.bias) for layer in layers]
        size = kernels[0].shape[0] - self.units
        return (
            ops.concatenate([kernel[:size] for kernel in kernels], axis=-1),
            [kernel[size:] for kernel in kernels],
            ops.concatenate(biases, axis=-1),
        )

    def _tensor(self, variable):
        return ops.convert_to_tensor(variable, dtype=self.compute_dtype)

    def _loop(self, projected, recurrent, before, unroll):
        def step(states, parts):
            products = [
                functools.partial(_sum_with_product, part, kernel)
                for part, kernel in zip(parts, recurrent, strict=True)
            ]
            return list(self._step(products, *states))

        return scan_time(
            step,
            list(before),
            self._split(projected),
            read=operator.itemgetter(0),
            unroll=unroll,
        )

    def _split(self, projected):
        """What goes to the gates and, in a GRU, to the candidate."""
        if self.cell == "gru":
            return ops.split(projected, [2 * self.units], axis=-1)
        return [projected]

    def _step(self, products, hidden, cell=None):
        """The states of one cell after a step.

        Args:
            products: what is read before the activations, as functions of the
                state: of the gates and, in a GRU, of the candidate.
            hidden: (B, U) float.
            cell: (B, U) float, of an LSTM.
        """
        gates = products[0](hidden)
        if self.cell == "lstm":
            return lstm_step(gates, cell)
        if self.cell == "tanh":
            return (ops.tanh(gates),)
        update, reset = ops.split(ops.sigmoid(gates), 2, axis=-1)
        candidate = ops.tanh(products[1](reset * hidden))
        return (update * hidden + (1 - update) * candidate,)

    def zeros(self, batch):
        """The initial state of `batch` sequences."""
        zeros = ops.zeros((batch, self.units), dtype=self.compute_dtype)
        hidden = [zeros] * self.num_layers
        return {"hidden": hidden, "cell": hidden if self.cell == "lstm" else []}

    def draw_keep(self, inputs, training):
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

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "cell": self.cell,
            "dropout": self.dropout,
        }


def _of_each_cell(state):
    """The hidden state of each and, in an LSTM, its cell."""
    states = [part for part in (state["hidden"], state["cell"]) if part]
    return zip(*states, strict=True)


def _product(layer, below, part, hidden):
    product = layer(ops.concatenate([*below, hidden], axis=-1))
    return product if part is None else product + part


def _sum_with_product(part, kernel, hidden):
    return part + ops.matmul(hidden, kernel)
