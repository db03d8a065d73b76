"""The training step of `ExactModel`, exact on any number of devices."""

import functools
import itertools

import keras
import tensorflow as tf

from kseq.models.cross_entropy import symmetric_divergence
from kseq.models.minimum_risk import risk_losses, sample_answers
from kseq.models.optimizer_update import (
    compiles_whole_step,
    guarded_update,
    restore_seeds,
    seed_states,
)
from kseq.ops import padding_mask

# The gradients of the last layers, which are known first, are exchanged while
# those of the others are computed.
_IN_PIECES = tf.distribute.experimental.CommunicationOptions(
    bytes_per_pack=32 * 2**20
)


def update(model, data):
    """Updates the weights with the gradient over the global batch.

    If the loss or the gradient is not finite, or that of a step before it was
    not, nothing changes: neither weights and seeds nor the optimizer.

    Args:
        model: `ExactModel`.
        data: `(inputs, labels, sample_weight)`, the part of this replica.

    Returns:
        The sums of the global batch, see `global_sums`; `norm`, that of the
        gradient before clipping; `norms`, which is 1, but 0 of a norm that is
        not finite. All of them are 0 where nothing changes.
    """
    data = _with_answers(model, data)
    seeds = seed_states(model)
    # Of mixed_float16; 1 for every other policy.
    scale = model.optimizer.scale_loss(tf.constant(1.0))
    totals = _totals_on_replica(model)(data, scale)
    replica = tf.distribute.get_replica_context()
    sums, gradients = replica.all_reduce("SUM", totals, options=_IN_PIECES)

    factor = tf.math.divide_no_nan(1.0, sums["weight"])
    norm = tf.linalg.global_norm(gradients) * factor
    is_finite = tf.math.is_finite(norm)
    if model.clip_norm is not None:
        limit = model.clip_norm * scale
        factor *= tf.where(is_finite, limit, norm)
        factor /= tf.maximum(norm, limit)

    # The optimizer skips the update where gradients of a scaled loss overflow.
    is_scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    admitted = model.step_guard.admit(
        tf.math.is_finite(sums["loss"]) & (is_finite | is_scaled)
    )
    guarded_update(model, admitted, gradients, factor, seeds)

    sums["steps"] = tf.ones(())
    sums["norm"] = tf.where(is_finite, norm / scale, 0.0)
    sums["norms"] = tf.cast(is_finite, tf.float32)
    return {k: tf.where(admitted, value, 0.0) for k, value in sums.items()}


def global_sums(model, data):
    """Sums over the global batch, without an update.

    Args:
        model: `ExactModel`.
        data: `(inputs, labels, sample_weight)`, the part of this replica.

    Returns:
        A dict of () float32: `loss` and `weight`; `likelihood` and `right`
        where the model has them; `real` and `positions`, tokens and all
        positions; `losses`, how many there are; `steps`, which is 1.
    """
    sums = _sums(model, data, 0.0, False, model.loss_outputs)
    replica = tf.distribute.get_replica_context()
    return {**replica.all_reduce("SUM", sums), "steps": tf.ones(())}


def loss_and_gradients(model, data):
    """See `ExactModel.loss_and_gradients`."""
    data = _with_answers(model, data)
    sums, gradients = _sums_and_gradients(model, data, scale=1.0)
    factor = tf.math.divide_no_nan(1.0, sums["weight"])
    return sums["loss"] * factor, [g * factor for g in gradients]


def _with_answers(model, data):
    """The data, and the answers of the model where its loss needs them."""
    if not model.minimum_risk:
        return data
    inputs, labels, weight = keras.utils.unpack_x_y_sample_weight(data)
    return inputs, labels, weight, sample_answers(model, inputs, labels)


def _totals_on_replica(model):
    """`_totals` of a model, a function of the other arguments.

    Where XLA cannot have the whole step, it compiles this part of it; but not
    where the losses of a replica depend on the rows of the others.
    """
    totals = functools.partial(_totals, model)
    is_whole = not model.jit_compile or compiles_whole_step(model)
    if is_whole or model.uses_in_batch_negatives:
        return totals
    return tf.function(totals, jit_compile=True, autograph=False)


def _totals(model, data, scale):
    """`_sums_and_gradients` of all micro-batches."""
    if model.uses_in_batch_negatives and model.accumulation_steps > 1:
        return _of_outputs(model, data, scale)
    return _total(
        lambda batch: _sums_and_gradients(model, batch, scale),
        _micro_batches(data, model.accumulation_steps),
    )


def _total(function, batches):
    """The sum of a function of micro-batches, which returns a nest."""
    total = None
    for batch in batches:
        # In sequence: in parallel they would need the memory of one batch.
        with tf.control_dependencies(tf.nest.flatten(total or [])):
            part = function(batch)
            total = (
                tf.nest.map_structure(tf.add, total, part) if total else part
            )
    return total


def _of_outputs(model, data, scale):
    """`_sums_and_gradients` in micro-batches, of losses that compare rows.

    First the outputs of all rows, then the loss and its gradient by these;
    then, of each micro-batch, the outputs once more, with the same dropout, and
    their gradient by the weights. Only outputs are in memory for all rows.

    Reference:
        Gao et al. 2021, arXiv:2101.06983, section 3.
    """
    weights = _weights(model)
    seeds = seed_states(model)
    parts = _micro_batches(data, model.accumulation_steps)
    outputs = []
    for inputs, *_ in parts:
        with tf.control_dependencies(tf.nest.flatten(outputs)):
            outputs.append(model.loss_outputs(inputs, training=True))
    outputs = tf.nest.map_structure(lambda *x: tf.concat(x, axis=0), *outputs)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        sums, loss, count = _scaled_loss(
            model, data, scale, lambda inputs, training: outputs
        )
    of_outputs, gradients = tape.gradient(
        loss, (outputs, weights), unconnected_gradients="zero"
    )

    def through(batch):
        (inputs, *_), of_outputs = batch
        with tf.GradientTape() as tape:
            outputs = model.loss_outputs(inputs, training=True)
        parts = tape.gradient(
            outputs,
            weights,
            output_gradients=of_outputs,
            unconnected_gradients="zero",
        )
        return _in_float32(parts)

    with tf.control_dependencies(tf.nest.flatten(of_outputs)):
        restore_seeds(model, seeds)
    of_parts = _micro_batches(of_outputs, model.accumulation_steps)
    further = _total(through, zip(parts, of_parts, strict=True))
    return sums, [
        (one + other) * count
        for one, other in zip(_in_float32(gradients), further, strict=True)
    ]


def _sums_and_gradients(model, data, scale):
    """`_sums`, and the gradients of `scale` times their loss."""
    with tf.GradientTape() as tape:
        sums, loss, count = _scaled_loss(model, data, scale, model.loss_outputs)
    gradients = tape.gradient(
        loss, _weights(model), unconnected_gradients="zero"
    )
    return sums, [g * count for g in _in_float32(gradients)]


def _in_float32(gradients):
    """As tensors; weights of half precision could not hold their sums."""
    return [tf.convert_to_tensor(tf.cast(g, tf.float32)) for g in gradients]


def _weights(model):
    # Of a variable of Keras without a gradient TensorFlow makes no zeros.
    return [variable.value for variable in model.trainable_variables]


def _scaled_loss(model, data, scale, loss_outputs):
    """`_sums`; what is differentiated; and by what its gradient is multiplied.

    The gradient of a sum would overflow in float16: it is that of a mean. It
    is divided by the same number on all replicas where a loss depends on the
    rows of the others.
    """
    sums = _sums(model, data, model.label_smoothing, True, loss_outputs)
    count = sums["losses"]
    if model.uses_in_batch_negatives:
        replica = tf.distribute.get_replica_context()
        count = replica.all_reduce("MEAN", count)
    count = tf.maximum(count, 1.0)
    return sums, sums["loss"] / count * scale, count


def _sums(model, data, label_smoothing, training, loss_outputs):
    answers = None
    if training and model.minimum_risk:
        data, answers = data[:3], data[3]
    inputs, labels, weight = keras.utils.unpack_x_y_sample_weight(data)
    outputs = [loss_outputs(inputs, training)]
    if training and model.r_drop:
        outputs.append(loss_outputs(inputs, training))
    if model.losses:
        raise ValueError(
            "Regularizers and add_loss are not part of the exact step: add "
            f"them in token_losses. Received: {len(model.losses)} losses"
        )
    losses = [
        model.token_losses(inputs, labels, each, weight, label_smoothing)
        for each in outputs
    ]
    _check_losses(losses[0])
    losses = _r_drop(model, losses, outputs) if losses[1:] else losses[0]
    if answers is not None:
        risks = risk_losses(model, inputs, labels, answers)
        losses = _add_risks(losses, risks, model.minimum_risk)
    loss = tf.cast(losses.loss, tf.float32)
    weight = losses.weight
    weight = tf.ones_like(loss) if weight is None else weight
    weight = tf.cast(weight, tf.float32)
    if not loss.shape.is_compatible_with(weight.shape):
        raise ValueError(
            "Each loss needs one weight; class_weight of fit gives one to a "
            "row. Use sample_weight where rows have several labels. "
            f"Received: losses of shape {loss.shape}, "
            f"weights of shape {weight.shape}"
        )

    real = _real_positions(inputs, weight)
    sums = {
        "loss": tf.reduce_sum(loss * weight),
        "weight": tf.reduce_sum(weight),
        "real": tf.reduce_sum(tf.cast(real, tf.float32)),
        "positions": tf.cast(tf.size(real), tf.float32),
        "losses": tf.cast(tf.size(weight), tf.float32),
    }
    for name in ("likelihood", "right", "risk"):
        values = getattr(losses, name)
        if values is not None:
            sums[name] = tf.reduce_sum(tf.cast(values, tf.float32) * weight)
    return sums


def _check_losses(losses):
    """Refuses the mean of a batch: it would count all batches the same."""
    loss = getattr(losses, "loss", None)
    if loss is None or tf.TensorShape(loss.shape).rank == 0:
        raise ValueError(
            "token_losses must return TokenLosses, with one loss for each "
            f"token or row. Received: {losses!r}"
        )


def _r_drop(model, losses, outputs):
    """The token losses of two predictions of a batch, and their divergence.

        (loss_p + loss_q) / 2 + r_drop / 4 * (KL(p || q) + KL(q || p))

    It is half the loss of the paper, so that it is that of one prediction
    where both agree.

    Args:
        model: `ExactModel`.
        losses: two `TokenLosses`.
        outputs: two of `loss_outputs`: logits (..., V), or the first of them.

    Returns:
        `TokenLosses`.

    Reference:
        Wu et al. 2021, arXiv:2106.14448.
    """
    logits = [each[0] if isinstance(each, tuple) else each for each in outputs]
    first, second = losses
    mean = {
        name: (tf.cast(one, tf.float32) + tf.cast(other, tf.float32)) / 2
        for name in ("loss", "likelihood", "right")
        for one, other in [(getattr(first, name), getattr(second, name))]
        if one is not None
    }
    divergence = symmetric_divergence(*logits)
    mean["loss"] += model.r_drop / 4 * divergence
    return first._replace(**mean)


def _add_risks(losses, risks, weight):
    """Token losses, each mixed with the risk of its row, (B,)."""
    loss = tf.cast(losses.loss, tf.float32)
    risks = risks[:, None] * tf.ones_like(loss)
    return losses._replace(loss=loss + weight * (risks - loss), risk=risks)


def _real_positions(inputs, weight):
    """True at the tokens to be counted: of the source for one loss a row."""
    if weight.shape.rank == 1 and isinstance(inputs, dict):
        if "source_ids" in inputs:
            return padding_mask(inputs["source_ids"])
        if "source_mask" in inputs:
            return inputs["source_mask"]
    return weight > 0


def _micro_batches(data, count):
    """Cuts a nest of (B, ...) tensors into `count` parts along the batch."""
    if count == 1:
        return [data]
    first, *_ = (x for x in keras.tree.flatten(data) if x is not None)
    batch = tf.shape(first)[0]
    edges = [batch * part // count for part in range(count + 1)]
    return [
        keras.tree.map_structure(
            lambda x: None if x is None else x[start:stop],  # noqa: B023
            data,
        )
        for start, stop in itertools.pairwise(edges)
    ]
