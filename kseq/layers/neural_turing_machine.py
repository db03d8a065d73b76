"""A recurrent cell that reads and writes a memory by attention."""

import keras
from keras import ops

from kseq.layers.layer_config import config_of
from kseq.layers.recurrent_stack import RecurrentStack
from kseq.ops import (
    content_weights,
    interpolate,
    read_slots,
    sharpen,
    shift_weights,
    write_slots,
)
from kseq.user_error import (
    ArgumentError,
    check_choice,
    check_integers,
    check_positive,
)

# With heads that start at the same slot, copying is learned in a fraction of
# the steps. Sharp heads, and an LSTM that forgets, make it hold for sequences
# that are longer than those of training.
_FOCUS = 10.0  # logit of the slot at which all heads are before the first step
_SHARP = 3.0  # of the power of a head: one that idles stays where it is
_FORGET = -2.0  # added to the 1 of `lstm_step`: the memory keeps what must last
_FIRST = 1e-6  # in all of a constant memory, which makes training reliable
_SPREAD = 0.1  # standard deviation of a random one: little beside what is added


@keras.saving.register_keras_serializable(package="kseq")
class NeuralTuringMachine(keras.layers.Layer):
    """A recurrent cell that reads and writes a memory by attention.

        h_t = controller([x_t; r_{t-1}], h_{t-1})
        w_t = address(heads(h_t), w_{t-1}, M_{t-1}), of each head
        M_t = M_{t-1} prod_i (1 - w_i e_i^T) + sum_i w_i a_i^T
        r_t = M_t^T w_t, of each head that reads
        y_t = W [h_t; r_t] + b

    A head addresses by content (a key k and its strength), and by location:
    it interpolates with its last weighting (gate g), shifts it (s) and
    sharpens it (gamma). Use it as `keras.layers.RNN(NeuralTuringMachine(8))`,
    which also has the options for masks, directions and states. `reset_state`
    of a stateful `RNN` gives states of zeros, not those of
    `get_initial_state`.

    Args:
        units: int, U, size of the output of a step.
        slots: int, N, of the memory.
        slot_dim: int, M, features of a slot.
        read_heads: int, H.
        write_heads: int, H'.
        controller: "lstm", or "dense" for a feed-forward network.
        controller_units: int, C, width of the controller.
        shift_range: int, maximum shift in slots.
        clip: float, the outputs of the controller and of the heads stay
            between -clip and clip.
        initial_memory: "constant", all slots alike; or "random", drawn once
            for the layer. Only with "random" can a head find an empty slot by
            content, and so write to a slot that depends on the input, as
            `PrioritySort` needs.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, F) float, of one step.
        states: list of tensors, see `get_initial_state`.

    Returns:
        outputs (B, U), and the states after the step.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> cell = NeuralTuringMachine(8, slots=16, slot_dim=4)
        >>> outputs = keras.layers.RNN(cell, return_sequences=True)
        >>> outputs(np.ones((2, 5, 9))).shape
        TensorShape([2, 5, 8])

    Reference:
        Graves et al. 2014, arXiv:1410.5401. The constant initial memory and the
        learned initial reads and weightings are from Collier and Beel 2018,
        arXiv:1807.08518. Three initial values are ours: all heads start at the
        same slot and are sharp, and an LSTM forgets. Copying is then learned
        in a fraction of the steps, and holds for longer sequences.
    """

    def __init__(
        self,
        units: int,
        slots: int = 128,
        slot_dim: int = 20,
        read_heads: int = 1,
        write_heads: int = 1,
        controller: str = "lstm",
        controller_units: int = 100,
        shift_range: int = 1,
        clip: float = 20.0,
        initial_memory: str = "constant",
        **kwargs,
    ):
        check_integers(
            units=units,
            slots=slots,
            slot_dim=slot_dim,
            read_heads=read_heads,
            write_heads=write_heads,
            controller_units=controller_units,
        )
        check_integers(shift_range=shift_range, minimum=0)
        if 2 * shift_range + 1 > slots:
            raise ArgumentError(
                "A shift must not wrap around to the same slot. "
                f"Received: shift_range={shift_range}, slots={slots}"
            )
        check_choice("controller", controller, ("lstm", "dense"))
        check_choice("initial_memory", initial_memory, ("constant", "random"))
        check_positive(clip=clip)
        super().__init__(**kwargs)
        self.units = units
        self.slots = slots
        self.slot_dim = slot_dim
        self.read_heads = read_heads
        self.write_heads = write_heads
        self.controller = controller
        self.controller_units = controller_units
        self.shift_range = shift_range
        self.clip = clip
        self.initial_memory = initial_memory

        self.heads = read_heads + write_heads
        self.output_size = units
        self.state_size = [
            units,  # keras.layers.RNN on JAX repeats it where a mask is False
            *(slots * slot_dim, read_heads * slot_dim, self.heads * slots),
            *([controller_units] * 2 if controller == "lstm" else []),
        ]
        projected = controller_units
        bias: str | keras.Initializer = "zeros"
        if controller == "lstm":
            self.recurrence = RecurrentStack(
                controller_units, dtype=self.dtype_policy, name="recurrence"
            )
            projected = self.recurrence.gate_units
            bias = _forget_gate_bias
        self.projection = self._dense(projected, "projection", bias)
        # A key, its strength, a gate, shifts and a power, of each head.
        self.address_size = slot_dim + 3 + 2 * shift_range + 1
        self.addressing = self._dense(
            self.heads * self.address_size,
            "addressing",
            _sharpening_bias(self.heads, power=slot_dim + 2),
        )
        self.writing = self._dense(2 * write_heads * slot_dim, "writing")
        self.output_layer = self._dense(units, "outputs")

    def _dense(self, units, name, bias="zeros"):
        return keras.layers.Dense(
            units, bias_initializer=bias, dtype=self.dtype_policy, name=name
        )

    @property
    def compute_dtype(self):
        """Float32: a policy of half precision is for the layers in the cell.

        Weightings remain distributions over many steps.
        """
        return "float32"

    def build(self, input_shape):
        read = self.read_heads * self.slot_dim
        self.first_reads = self.add_weight(
            shape=(read,),
            initializer="zeros",
            autocast=False,  # float32, also within a layer of half precision
            name="first_reads",
        )
        self.first_weights = self.add_weight(
            shape=(self.heads, self.slots),
            initializer=_focused_weightings,
            autocast=False,
            name="first_weights",
        )
        self.first_memory = None
        if self.initial_memory == "random":
            # Not trained: the gradient of a cosine grows where vectors are
            # short, and would be most of the norm that is clipped.
            self.first_memory = self.add_weight(
                shape=(self.slots * self.slot_dim,),
                initializer=keras.initializers.RandomNormal(stddev=_SPREAD),
                trainable=False,
                autocast=False,
                name="first_memory",
            )
        self.projection.build((None, input_shape[-1] + read))
        if self.controller == "lstm":
            self.recurrence.build((None, self.recurrence.gate_units))
        self.addressing.build((None, self.controller_units))
        self.writing.build((None, self.controller_units))
        self.output_layer.build((None, self.controller_units + read))

    def get_initial_state(self, batch_size=None):
        """The states before the first step.

        Args:
            batch_size: int or a scalar tensor, B.

        Returns:
            list of the outputs (B, U), the memory (B, N * M), what was read
            (B, H * M), and the weightings (B, (H + H') * N), heads that read
            first; then hidden and cell state (B, C) of an LSTM. All are
            float32.
        """
        outputs = ops.zeros((self.units,), "float32")
        memory = ops.full((self.slots * self.slot_dim,), _FIRST, "float32")
        if self.first_memory is not None:
            memory = ops.cast(self.first_memory, "float32")
        reads = ops.tanh(ops.cast(self.first_reads, "float32"))
        weights = ops.softmax(ops.cast(self.first_weights, "float32"), axis=-1)
        first = (outputs, memory, reads, ops.reshape(weights, (-1,)))
        states = [
            ops.broadcast_to(values[None], (batch_size, values.shape[0]))
            for values in first
        ]
        zeros = ops.zeros((batch_size, self.controller_units), "float32")
        return states + [zeros] * (len(self.state_size) - len(states))

    def call(self, inputs, states):
        _, memory, reads, last, *controller = states
        memory = ops.reshape(memory, (-1, self.slots, self.slot_dim))
        last = ops.reshape(last, (-1, self.heads, self.slots))

        hidden, controller = self._control(inputs, reads, controller)
        weights = self.address(hidden, memory, last)
        erase, add = ops.split(self._float32(self.writing(hidden)), 2, axis=-1)
        shape = (-1, self.write_heads, self.slot_dim)
        memory = write_slots(
            memory,
            weights[:, self.read_heads :],
            ops.reshape(ops.sigmoid(erase), shape),
            ops.reshape(ops.tanh(add), shape),
        )
        reads = read_slots(memory, weights[:, : self.read_heads])

        def flat(values):
            size = values.shape[1] * values.shape[2]
            return ops.reshape(values, (-1, size))

        states = [flat(memory), flat(reads), flat(weights)]
        read = ops.cast(states[1], hidden.dtype)
        known = ops.concatenate([hidden, read], axis=-1)
        outputs = self._clipped(self.output_layer(known))
        states = [ops.cast(outputs, "float32"), *states]
        return outputs, [*states, *controller]

    def _control(self, inputs, reads, states):
        """The output of the controller for an input and what was read."""
        dtype = self.dtype_policy.compute_dtype
        known = [ops.cast(values, dtype) for values in (inputs, reads)]
        projected = self.projection(ops.concatenate(known, axis=-1))
        if self.controller == "dense":
            return ops.tanh(projected), []
        hidden, cell = ([ops.cast(state, dtype)] for state in states)
        state = self.recurrence(projected, {"hidden": hidden, "cell": cell})
        [hidden], [cell] = state["hidden"], state["cell"]
        states = [ops.cast(state, "float32") for state in (hidden, cell)]
        return self._clipped(hidden), states

    def _clipped(self, values):
        return ops.clip(values, -self.clip, self.clip)

    def _float32(self, values):
        return self._clipped(ops.cast(values, "float32"))

    def address(self, hidden, memory, last):
        """The weightings of all heads, equations 5 to 9.

        Args:
            hidden: (B, C) float, of the controller.
            memory: (B, N, M) float32.
            last: (B, H + H', N) float32, the weightings of the last step.

        Returns:
            (B, H + H', N) float32.
        """
        values = self._float32(self.addressing(hidden))
        values = ops.reshape(values, (-1, self.heads, self.address_size))
        ends = [self.slot_dim + i for i in range(4)]
        keys, strengths, gates, powers, shifts = ops.split(values, ends, -1)
        weights = content_weights(
            memory, ops.tanh(keys), ops.softplus(strengths[..., 0])
        )
        weights = interpolate(weights, last, ops.sigmoid(gates[..., 0]))
        weights = shift_weights(weights, ops.softmax(shifts, axis=-1))
        return sharpen(weights, 1 + ops.softplus(powers[..., 0]))

    def weights_of(self, states):
        """Weightings in the states after a step.

        Args:
            states: as a call returns them.

        Returns:
            of heads that read (B, H, N), of heads that write (B, H', N).
        """
        weights = ops.reshape(states[3], (-1, self.heads, self.slots))
        return weights[:, : self.read_heads], weights[:, self.read_heads :]

    def compute_output_shape(self, input_shape, states_shape=None):
        batch = input_shape[0]
        states = [(batch, size) for size in self.state_size]
        return (batch, self.units), states

    def get_config(self) -> dict:
        return config_of(self, NeuralTuringMachine)


def _focused_weightings(shape, dtype=None):
    """Logits of the first weightings, (heads, slots)."""
    heads, slots = shape
    places = ops.zeros((heads,), "int32")
    return _FOCUS * ops.one_hot(places, slots, dtype=dtype or "float32")


def _forget_gate_bias(shape, dtype=None):
    """Biases of an LSTM: input, forget, candidate and output gate."""
    gates = ops.array([0.0, _FORGET, 0.0, 0.0], dtype or "float32")
    return ops.repeat(gates, shape[0] // 4)


def _sharpening_bias(heads, power):
    """Biases of all heads, each with its power at this place."""

    def initializer(shape, dtype=None):
        size = shape[0] // heads
        of_a_head = ops.one_hot(power, size, dtype=dtype or "float32")
        return ops.tile(_SHARP * of_a_head, heads)

    return initializer
