"""The update by the optimizer, or none where a step is not admitted."""

import functools

import keras
import tensorflow as tf


def compiles_whole_step(model):
    """Whether XLA gets a step in one piece, with its update.

    Not where devices exchange values: there it gets what each device computes
    of a batch by itself. Nor where the model answers the batch first, in a
    loop whose tensors grow.
    """
    is_fixed = model.jit_compile and not model.minimum_risk
    return is_fixed and not isinstance(
        model.distribute_strategy,
        (
            tf.distribute.MirroredStrategy,
            tf.distribute.MultiWorkerMirroredStrategy,
        ),
    )


def seed_states(model):
    """What dropout draws next: the states of all seeds, for `restore_seeds`."""
    return _values_of(_seeds_of(model))


def restore_seeds(model, states):
    """Makes dropout draw again what it drew after `seed_states`."""
    for seed, state in zip(_seeds_of(model), states, strict=True):
        seed.assign(state)


def _seeds_of(model):
    """The seeds of dropout, which a step changes in addition to weights."""
    return [v for v in model.non_trainable_variables if v.dtype == "int64"]


def _values_of(variables):
    """Their values now, which later assignments do not change."""
    return [tf.identity(variable.value) for variable in variables]


def guarded_update(model, admitted, gradients, factor, states):
    """Updates a model where its step is admitted; else nothing has changed.

    Args:
        model: `ExactModel`.
        admitted: () bool, the same on all replicas; see `StepGuard`.
        gradients: list of tensors, the same on all replicas.
        factor: () float32, by which the gradients are multiplied.
        states: the `seed_states` before the step.
    """

    def apply(gradients, factor):
        gradients = [gradient * factor for gradient in gradients]
        apply_fused(model.optimizer, gradients, model.trainable_variables)

    def branch(strategy, admitted, gradients, factor, states):
        first, *_ = strategy.experimental_local_results(admitted)
        on_each = strategy.extended.call_for_each_replica
        restore = functools.partial(restore_seeds, model)
        tf.cond(
            first,
            lambda: on_each(apply, args=(gradients, factor)),
            lambda: on_each(restore, args=(states,)),
        )

    if not compiles_whole_step(model):
        # TensorFlow cannot branch on a replica where a branch may communicate
        # with other replicas, as an optimizer does.
        tf.distribute.get_replica_context().merge_call(
            branch, args=(admitted, gradients, factor, states)
        )
        return
    # XLA makes one operation of an update and of this selection. At a branch,
    # a GPU would wait for the host.
    variables = [*model.trainable_variables, *model.optimizer.variables]
    states = [*_values_of(variables), *states]
    apply(gradients, factor)
    for variable, state in zip(
        [*variables, *_seeds_of(model)], states, strict=True
    ):
        variable.assign(tf.where(admitted, variable.value, state))


def apply_fused(optimizer, gradients, variables):
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
    inner = nested_optimizers(optimizer)[-1]
    if _is_fused(inner, variables):
        inner._backend_update_step = functools.partial(_update_all, inner)
        inner.update_step = functools.partial(_update, inner)
    optimizer.apply(gradients, variables)


def nested_optimizers(optimizer):
    """An optimizer, the one in it, such as that of mixed_float16, and so on."""
    inner = getattr(optimizer, "inner_optimizer", None)
    return (
        [optimizer] if inner is None else [optimizer, *nested_optimizers(inner)]
    )


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
