"""The projections of an attention layer."""

import keras

from kseq.ops import project


class _Dense(keras.layers.Dense):
    """That of Keras, by one product of two matrices, also within a loop."""

    def call(self, inputs, training=None):
        outputs = project(inputs, self.kernel)
        return outputs + self.bias if self.use_bias else outputs


def projection(attention, units, name):
    """A Dense layer with the policy, bias, initializer and constraint given.

    Args:
        attention: an attention layer with `use_bias`, `kernel_initializer`
            and `kernel_constraint`.
        units: int.
        name: str.
    """
    initializer = attention.kernel_initializer
    if isinstance(initializer, keras.Initializer):
        initializer = initializer.clone()  # one object repeats its values
    return _Dense(
        units,
        use_bias=attention.use_bias,
        kernel_initializer=initializer,
        kernel_constraint=attention.kernel_constraint,
        dtype=attention.dtype_policy,
        name=name,
    )


def projection_config(attention):
    """The arguments of the projections, for `get_config`."""
    serialize = keras.saving.serialize_keras_object
    return {
        "use_bias": attention.use_bias,
        "kernel_initializer": serialize(attention.kernel_initializer),
        "kernel_constraint": serialize(attention.kernel_constraint),
    }
