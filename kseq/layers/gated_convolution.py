"""A convolution over time with a gated linear unit."""

import keras
from keras import ops

from kseq.layers.check_mask import check_mask
from kseq.layers.dropout import Dropout
from kseq.layers.layer_config import config_of
from kseq.layers.output_spec import output_spec
from kseq.ops import project
from kseq.ops.masks import masked
from kseq.user_error import check_integers


@keras.saving.register_keras_serializable(package="kseq")
class GatedConvolution(keras.layers.Layer):
    """A convolution over time, weight normalization, a gated linear unit.

        [a; b] = W [x_{t-p}; ...; x_{t-p+k-1}] + c
        output = a * sigmoid(b)
        W      = scale * direction / |direction|, for each column

    where k is `kernel_size` and p is k - 1 in a causal convolution, so that
    x_t is the last input of output t, and (k - 1) // 2 otherwise. Inputs
    before the first, after the last and at padding are 0.

    Args:
        units: int, U.
        kernel_size: int, k.
        causal: bool, whether outputs depend on no later inputs.
        dropout: float, on the inputs.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: (B, T, D) float.
        inputs_mask: (B, T) bool, True at real positions. By default the
            Keras mask of `inputs`, if it has one. Padding at the end of a
            causal convolution needs no mask.
        before: (B, k - 1, D) float, the inputs before the first of a causal
            convolution.
        kernel: the output of `kernel()`, computed once for many calls.
        training: bool, whether to apply dropout.

    Returns:
        (B, T, U), or with `before` a tuple of it and the last k - 1 inputs:
        `before` of the next call.

    Raises:
        ValueError: if `units` or `kernel_size` is not a positive integer, or
            if `before` is given to a convolution that is not causal.

    Example:
        >>> GatedConvolution(units=16, kernel_size=3)(np.ones((2, 5, 8))).shape
        TensorShape([2, 5, 16])

    Reference:
        Gehring et al. 2017, arXiv:1705.03122, sections 3.2 and 3.5 and
        appendix A; gated linear units: Dauphin et al. 2017, arXiv:1612.08083;
        weight normalization: Salimans and Kingma 2016, arXiv:1602.07868.
    """

    def __init__(
        self,
        units: int,
        kernel_size: int,
        causal: bool = False,
        dropout: float = 0.0,
        **kwargs,
    ):
        check_integers(units=units, kernel_size=kernel_size)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.units = units
        self.kernel_size = kernel_size
        self.causal = causal
        self.dropout = dropout
        self.dropout_layer = Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, inputs_shape):
        axes = {-1: inputs_shape[-1]}
        self.input_spec = keras.layers.InputSpec(ndim=3, axes=axes)
        size = self.kernel_size * inputs_shape[-1]
        # A gated unit quarters the variance of small inputs.
        length = 2 * (1 - self.dropout) ** 0.5
        self.direction = self.add_weight(
            name="direction",
            shape=(size, 2 * self.units),
            initializer=keras.initializers.RandomNormal(
                stddev=length / size**0.5
            ),
            autocast=False,
        )
        self.scale = self.add_weight(
            name="scale",
            shape=(2 * self.units,),
            initializer=keras.initializers.Constant(length),
            autocast=False,
        )
        self.bias = self.add_weight(
            name="bias", shape=(2 * self.units,), initializer="zeros"
        )

    def kernel(self):
        """The normalized weights, (k D, 2 U), computed in float32."""
        direction = ops.cast(self.direction, "float32")
        squares = ops.sum(ops.square(direction), axis=0)
        scale = ops.cast(self.scale, "float32")
        scale = scale * ops.rsqrt(ops.maximum(squares, 1e-12))
        return ops.cast(direction * scale, self.compute_dtype)

    def call(
        self,
        inputs,
        inputs_mask=None,
        before=None,
        kernel=None,
        training: bool | None = None,
        mask=None,
    ):
        if before is not None and not self.causal:
            raise ValueError(
                "Only a causal convolution has inputs before the first. "
                "Received: causal=False and before"
            )
        x = self.dropout_layer(inputs, training=training)
        inputs_mask = mask if inputs_mask is None else inputs_mask
        if inputs_mask is not None:
            check_mask("inputs_mask", inputs_mask, *inputs.shape[:2])
            x = masked(x, inputs_mask)

        time = ops.shape(x)[1]
        later = self.kernel_size - 1
        if before is not None:
            x = ops.concatenate([before, x], axis=1)
        else:
            left = later if self.causal else later // 2
            x = ops.pad(x, [(0, 0), (left, later - left), (0, 0)])
        # One product of two matrices, also of one step or of no rows.
        windows = [x[:, i : i + time] for i in range(self.kernel_size)]
        if kernel is None:
            kernel = self.kernel()
        both = project(ops.concatenate(windows, axis=-1), kernel) + self.bias
        linear, gate = ops.split(both, 2, axis=-1)
        outputs = linear * ops.sigmoid(gate)
        return outputs if before is None else (outputs, x[:, time:])

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.units)

    compute_output_spec = output_spec

    def get_config(self) -> dict:
        return config_of(self, GatedConvolution)
