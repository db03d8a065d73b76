"""A recurrent decoder that attends to a memory at every step."""

import functools

import keras
from keras import ops

from kseq.layers.attention_scores import check_memory
from kseq.layers.cudnn import has_cudnn
from kseq.layers.dense import Dense
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of, copy_of, with_layers
from kseq.layers.recurrent_stack import RecurrentStack
from kseq.ops import fold_hypotheses, scan_time, unfold_hypotheses
from kseq.ops.masks import PLACES
from kseq.user_error import ArgumentError, check_choice


@keras.saving.register_keras_serializable(package="kseq")
class AttentionDecoder(keras.layers.Layer):
    """Recurrent layers and attention, over a whole sequence or step by step.

    With h the state of the top layer, the values of `order` are

        luong        h_t = cell(x_t, h_{t-1})
                     c_t = attention(h_t)
                     y_t = tanh(W [h_t; c_t])
        bahdanau     c_t = attention(h_{t-1})
                     h_t = cell([x_t; c_t], h_{t-1})
                     y_t = tanh(W [h_t; c_t; x_t])

    With input feeding, Luong's cell reads [x_t; y_{t-1}]. With `context_gate`
    the context is multiplied by sigmoid(w . h + b), where h is the query of
    the attention. Without attention
    the memory is one vector c, h_t = cell([x_t; c], h_{t-1}) and y_t = h_t.

    Projections and attention on which no later step depends are computed for
    all steps at once. Padding at the end of the inputs needs no mask.

    Args:
        units: int, U, width of every layer and of the outputs.
        num_layers: int, recurrent layers.
        attention: an attention layer, or None. The decoder creates a copy
            with its own dtype policy. A layer with the attribute
            `reads_last_weights` is given the weights of the previous step, (B,
            1, S), as `last_weights`; it needs `order="bahdanau"` or input
            feeding. A layer with `reads_positions` is given the number of each
            step, from 0, (B, T) int, as `positions`.
        order: "luong" or "bahdanau".
        input_feeding: bool, only with `order="luong"`.
        cell: "lstm", "gru", or "tanh" for h_t = tanh(W x_t + U h_{t-1} + b),
            see `RecurrentStack`.
        dropout: float, between the layers and on the outputs.
        unroll: bool, whether to unroll the loop over time, for T known in
            advance.
        context_gate: bool, whether the context is gated; needs attention.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, E) float.
        memory: (B, S, M) float; (B, 1, M) without attention.
        memory_mask: (B, S) bool, True at real positions. By default the
            Keras mask of `memory`, if it has one.
        initial_state: {"hidden": tensors, "cell": tensors}, one (B, U) for
            each layer; cells with "lstm" only. Zeros if None.
        return_weights: bool, whether to return the attention weights too.
        training: bool, whether to apply dropout.

    Returns:
        outputs, (B, T, U), or `(outputs, weights)` with weights (B, T, S).

    Raises:
        ValueError: if an argument is out of range or does not fit the others.

    Example:
        >>> decoder = AttentionDecoder(
        ...     units=8, attention=kseq.layers.LuongAttention("dot")
        ... )
        >>> inputs, memory = np.ones((2, 5, 4)), np.ones((2, 7, 8))
        >>> decoder(inputs, memory).shape
        TensorShape([2, 5, 8])

    Reference:
        Bahdanau et al. 2015, arXiv:1409.0473, sections 3.1 and A.2.2, with
        tanh in place of a maxout layer; Luong et al. 2015, arXiv:1508.04025,
        sections 3 and 3.3; Cho et al. 2014, arXiv:1406.1078, section 2.2; the
        gate: Xu et al. 2015, arXiv:1502.03044, section 4.2.1.
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        attention: keras.layers.Layer | None = None,
        order: str = "luong",
        input_feeding: bool = False,
        cell: str = "lstm",
        dropout: float = 0.0,
        unroll: bool = False,
        context_gate: bool = False,
        **kwargs,
    ):
        check_order(attention, order, input_feeding)
        if context_gate and attention is None:
            raise ValueError(
                "context_gate needs attention. Received: attention=None"
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.units = units
        self.num_layers = num_layers
        self.attention = copy_of(attention, dtype=self.dtype_policy)
        self.order = order
        self.input_feeding = input_feeding
        self.cell = cell
        self.dropout = dropout
        self.unroll = unroll
        self.context_gate = context_gate
        self._feeds_back = input_feeding or (attention and order == "bahdanau")
        # Step by step; or one LSTM after the other, over all steps.
        self._steps = bool(self._feeds_back) or cell != "lstm"
        self._reads_last = getattr(attention, "reads_last_weights", False)
        self._reads_positions = getattr(attention, "reads_positions", False)
        self.recurrent = RecurrentStack(
            units,
            num_layers=num_layers,
            cell=cell,
            dropout=dropout,
            dtype=self.dtype_policy,
            name="recurrent",
        )
        dense = functools.partial(
            Dense, use_bias=False, dtype=self.dtype_policy
        )
        gate_units = self.recurrent.gate_units
        self.input_projection = dense(gate_units, name="input_projection")
        if attention is None:
            self.memory_projection = dense(gate_units, name="memory_projection")
        else:
            self.output_projection = dense(
                units, activation="tanh", name="output_projection"
            )
        if context_gate:
            self.gate = dense(1, use_bias=True, name="context_gate")
        self.output_dropout = Dropout(
            dropout, dtype=self.dtype_policy, name="output_dropout"
        )

    @property
    def uses_cudnn(self) -> bool:
        """Whether cuDNN runs its recurrence on this machine."""
        return not (self._steps or self.unroll) and has_cudnn()

    def build(self, inputs_shape, memory_shape):
        axes = {-1: inputs_shape[-1]}
        self.input_spec = keras.layers.InputSpec(ndim=3, axes=axes)
        self.input_projection.build(inputs_shape)
        if self.attention is None:
            if memory_shape[1] != 1:
                raise ValueError(
                    "Without attention the memory is one vector, (B, 1, M). "
                    f"Received: {memory_shape}"
                )
            self.memory_projection.build(memory_shape)
            self.recurrent.build((None, self.recurrent.gate_units))
            return

        combined = self.units + memory_shape[-1]
        fed = self.units if self.input_feeding else 0
        if self.order == "bahdanau":
            combined += inputs_shape[-1]
            fed = memory_shape[-1]
        self.recurrent.build((None, self.recurrent.gate_units), (None, fed))
        self.attention.build((None, None, self.units), memory_shape)
        if self.context_gate:
            self.gate.build((None, None, self.units))
        self.output_projection.build((None, None, combined))

    def call(
        self,
        inputs,
        memory,
        memory_mask=None,
        initial_state=None,
        return_weights: bool = False,
        training: bool | None = None,
    ):
        if return_weights and self.attention is None:
            raise ValueError(
                "There are no attention weights. Received: return_weights=True"
            )
        check_memory(memory, inputs)
        projected_memory = self.project_memory(memory)
        attend = self._attend(projected_memory, memory_mask)
        state = self.start(memory, initial_state)
        keep = self.recurrent.dropout_masks(inputs, training)
        if self._steps:
            projected = self._project_inputs(inputs, projected_memory)
            states = scan_time(
                functools.partial(self._advance, attend=attend),
                state,
                {"projected": projected, "keep": keep},
                read=_without_cells,
                unroll=self.unroll,
            )
        else:
            terms = [(inputs, self.input_projection.kernel)]
            if self.attention is None:
                terms.append((memory, self.memory_projection.kernel))
            hidden = self.recurrent.over_time(terms, state, keep, self.unroll)
            states = {"hidden": [hidden]}
        outputs, weights = self._read_out(inputs, states, attend)
        outputs = self.output_dropout(outputs, training=training)
        return (outputs, weights) if return_weights else outputs

    def project_memory(self, memory):
        """The part of the computation that depends on the memory alone."""
        if self.attention is None:
            return self.memory_projection(memory)
        return self.attention.project_memory(memory)

    def start(self, memory, initial_state=None):
        """The state before the first step.

        Args:
            memory: (B, S, M) float.
            initial_state: as in a call.
        """
        batch, memory_time, memory_dim = ops.shape(memory)
        if initial_state is None:
            initial_state = self.recurrent.zeros(batch)
        self._check_state(initial_state)
        state = dict(initial_state)
        if self._feeds_back:
            attended = self.units if self.input_feeding else memory_dim
            dtype = self.compute_dtype
            state["attended"] = ops.zeros((batch, attended), dtype=dtype)
            state["weights"] = ops.zeros((batch, memory_time), dtype=dtype)
        if self._reads_positions:
            state["position"] = ops.zeros((batch,), dtype=PLACES)
        return state

    def _check_state(self, state):
        num_cells = self.num_layers if self.cell == "lstm" else 0
        expected = {"hidden": self.num_layers, "cell": num_cells}
        parts = {"cell": [], **state} if isinstance(state, dict) else {}
        counts = {
            name: len(part) if isinstance(part, list | tuple) else None
            for name, part in parts.items()
        }
        if counts != expected:
            raise ValueError(
                'initial_state must be {"hidden": tensors, "cell": tensors}, '
                f"lists of {self.num_layers} and {num_cells} (B, {self.units}) "
                f"with cell={self.cell!r}. Received: {state!r:.200}"
            )

    def step(
        self,
        inputs,
        state,
        projected_memory,
        memory_mask=None,
        return_weights: bool = False,
    ):
        """One step.

        Args:
            inputs: (B * K, E) float, K hypotheses of each item.
            state: the output of `start` or of the previous step, for B * K.
            projected_memory: the output of `project_memory`, for B.
            memory_mask: (B, S) bool.
            return_weights: bool, as in a call.

        Returns:
            outputs (B * K, U); weights (B * K, S), if `return_weights`; state.
        """
        inputs = inputs[:, None]
        attend = self._attend(projected_memory, memory_mask)
        projected = self._project_inputs(inputs, projected_memory)[:, 0]
        state = self._advance(state, {"projected": projected}, attend)
        states = keras.tree.map_structure(lambda x: x[:, None], state)
        outputs, weights = self._read_out(inputs, states, attend)
        if return_weights:
            return outputs[:, 0], weights[:, 0], state
        return outputs[:, 0], state

    def _attend(self, projected_memory, memory_mask):
        """A function from queries to contexts and weights, or None."""
        attend = self.attention and functools.partial(
            self.attention,
            projected_memory=projected_memory,
            memory_mask=memory_mask,
            return_weights=True,
        )
        if not self.context_gate:
            return attend

        def attend_through_gate(query, **given):
            context, weights = attend(query, **given)
            gate = self.gate(query)
            return context * ops.sigmoid(gate), weights

        return attend_through_gate

    def _project_inputs(self, inputs, projected_memory):
        projected = self.input_projection(inputs)
        if self.attention is not None:
            return projected
        folded = fold_hypotheses(projected, projected_memory)
        return unfold_hypotheses(folded + projected_memory, projected)

    def _advance(self, state, step, attend):
        """The part of a step that the next one depends on: (B, .) tensors."""
        recur = functools.partial(self.recurrent, state=state, **step)
        others = {}
        if self._reads_positions:
            others["position"] = state["position"] + 1
        if not self._feeds_back:
            return {**recur(), **others}

        given = {}
        if self._reads_last:
            given["last_weights"] = state["weights"][:, None]
        if self._reads_positions:
            given["positions"] = state["position"][:, None]
        attend = functools.partial(attend, **given)
        if self.order == "bahdanau":
            attended, weights = _at_one_step(attend, state["hidden"][-1])
            advanced = recur(fed=attended)
        else:
            advanced = recur(fed=state["attended"])
            hidden = advanced["hidden"][-1]
            context, weights = _at_one_step(attend, hidden)
            attended = self._combine(hidden, context)
        others |= {"attended": attended, "weights": weights}
        return {**advanced, **others}

    def _read_out(self, inputs, states, attend):
        """Outputs and weights of all steps, from their states."""
        hidden = states["hidden"][-1]
        if self.attention is None:
            return hidden, None
        if self.input_feeding:
            return states["attended"], states["weights"]
        if self.order == "bahdanau":
            outputs = self._combine(hidden, states["attended"], inputs)
            return outputs, states["weights"]
        if "position" in states:  # otherwise all steps, from the first
            positions = states["position"] - 1
            attend = functools.partial(attend, positions=positions)
        context, weights = attend(hidden)
        return self._combine(hidden, context), weights

    def _combine(self, *parts):
        return self.output_projection(ops.concatenate(parts, axis=-1))

    def compute_output_shape(self, inputs_shape, memory_shape):
        return (*inputs_shape[:-1], self.units)

    # The arguments decide how many outputs there are, and `call` refuses some.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict:
        return config_of(self, AttentionDecoder, "attention")

    @classmethod
    def from_config(cls, config: dict):
        return cls(**with_layers(config, "attention"))


def _at_one_step(attend, query):
    context, weights = attend(query[:, None])
    return context[:, 0], weights[:, 0]


def _without_cells(state):
    """What is read out of a state: of the top layer, and what is fed back."""
    return state | {"hidden": state["hidden"][-1:], "cell": []}


def check_order(attention, order, input_feeding):
    """Raises an error unless the arguments of a decoder fit each other.

    Args:
        attention: an attention layer, or None.
        order: str.
        input_feeding: bool.

    Raises:
        ValueError: if `order` is unknown, or if input feeding has no attention
            in the order of Luong, or if an attention that reads the weights
            of the last step would not get them.
    """
    check_choice("order", order, ("luong", "bahdanau"))
    if not isinstance(attention, keras.layers.Layer | None):
        raise ArgumentError(
            "attention must be an attention layer, or None. Received: "
            f"attention={attention!r}"
        )
    received = f"Received: attention={attention}, order={order!r}"
    if input_feeding and (attention is None or order != "luong"):
        raise ValueError(
            f'input_feeding needs attention and order="luong". {received}'
        )
    reads_last = getattr(attention, "reads_last_weights", False)
    if reads_last and order == "luong" and not input_feeding:
        raise ValueError(
            "This attention reads the weights of the previous step: set "
            f'order="bahdanau" or input_feeding=True. {received}, '
            f"input_feeding={input_feeding}"
        )
