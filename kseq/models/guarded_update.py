"""The update of a model, or none where a step is not admitted."""

import functools

import tensorflow as tf

from kseq.models import fused_update


def compiles_whole_step(model):
    """Whether XLA gets a step in one piece, with its update.

    Not where devices exchange values: there it gets what each device computes
    of a batch by itself.

    Args:
        model: `ExactModel`.
    """
    return model.jit_compile and not isinstance(
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
    """Has dropout draw again what it drew after `seed_states`."""
    for seed, state in zip(_seeds_of(model), states, strict=True):
        seed.assign(state)


def _seeds_of(model):
    """The variables that a step changes besides weights: seeds of dropout."""
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
        fused_update.apply(
            model.optimizer, gradients, model.trainable_variables
        )

    if not compiles_whole_step(model):
        restore = functools.partial(restore_seeds, model)
        _branch(admitted, (apply, gradients, factor), (restore, states))
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


def _branch(condition, chosen, otherwise):
    """Calls one of two functions on each replica.

    TensorFlow takes no branch on a replica if it may talk to others, as an
    optimizer does.

    Args:
        condition: () bool, the same on all replicas.
        chosen: a function and its arguments, where the condition is true.
        otherwise: the same where it is false.
    """

    def across_replicas(strategy, condition, chosen, otherwise):
        first, *_ = strategy.experimental_local_results(condition)
        on_each = strategy.extended.call_for_each_replica
        tf.cond(
            first,
            lambda: on_each(functions[0], args=chosen),
            lambda: on_each(functions[1], args=otherwise),
        )

    functions = chosen[0], otherwise[0]
    tf.distribute.get_replica_context().merge_call(
        across_replicas, args=(condition, chosen[1:], otherwise[1:])
    )
