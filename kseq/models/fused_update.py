"""The update of the optimizer, in one operation for each variable."""

import functools

import keras
import tensorflow as tf


def apply(optimizer, gradients, variables):
    """`optimizer.apply`, where Adam updates a variable in one operation.

    Keras needs about twenty for each variable, which takes longer than their
    arithmetic for most of them. The kernel of TensorFlow has the same formula;
    all else, such as weight decay, moving averages and scaling of the loss,
    is left to Keras, and so are the optimizers that are not Adam or AdamW.

    Args:
        optimizer: a Keras optimizer that has been built.
        gradients: list of float tensors.
        variables: list of Keras variables, those of the gradients.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if _is_fused(inner, variables):
        inner._backend_update_step = functools.partial(_update_all, inner)
        inner.update_step = functools.partial(_update, inner)
    optimizer.apply(gradients, variables)


def _is_fused(optimizer, variables):
    # Subclasses may have a formula of their own.
    adams = (keras.optimizers.Adam, keras.optimizers.AdamW)
    return (
        type(optimizer) in adams
        and not optimizer.amsgrad
        and all(variable.dtype == "float32" for variable in variables)
    )


def _update_all(optimizer, gradients, variables, learning_rate):
    # They are the same for all variables.
    step = tf.cast(optimizer.iterations + 1, tf.float32)
    scalars = {
        "lr": tf.cast(learning_rate, tf.float32),
        "beta1_power": tf.pow(tf.cast(optimizer.beta_1, tf.float32), step),
        "beta2_power": tf.pow(tf.cast(optimizer.beta_2, tf.float32), step),
    }
    # Of the class: it hands them to `_update`, on the device of the variable.
    type(optimizer)._backend_update_step(
        optimizer, gradients, variables, scalars
    )


def _update(optimizer, gradient, variable, scalars):
    index = optimizer._get_variable_index(variable)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[index].value.handle,
        v=optimizer._velocities[index].value.handle,
        beta1=optimizer.beta_1,
        beta2=optimizer.beta_2,
        epsilon=optimizer.epsilon,
        grad=gradient,
        **scalars,
    )
