"""Additional losses of translators: guided alignment, coverage and CTC."""

from keras import layers, ops

from kseq.ops import padding_mask, with_padded_batch
from kseq.user_error import (
    BELOW_ONE,
    ArgumentError,
    check_number,
    check_weights,
)

_LEAST = 1e-6  # attention; the gradient of its logarithm would overflow float16


def alignment_losses(weights, alignment):
    """Minus the logarithm of the attention to the position of an alignment.

    Args:
        weights: (B, T, S) float.
        alignment: (B, T) int, 0 for none, otherwise 1 more than a position.

    Returns:
        (B, T) float32, 0 where there is none.

    Reference:
        Chen et al. 2016, arXiv:1607.01628, equation 5, for one position.
    """
    aligned = ops.one_hot(alignment - 1, ops.shape(weights)[2], dtype="float32")
    given = ops.sum(ops.cast(weights, "float32") * aligned, axis=2)
    return -ops.log(given + _LEAST) * ops.cast(alignment > 0, "float32")


def set_auxiliary_losses(model, attention, coverage, ctc):
    """Sets the weights of both losses, attributes of the same name.

    Raises:
        ArgumentError: if one is out of range or needs attention.
    """
    check_weights(coverage=coverage)
    check_number("ctc", ctc, 0, BELOW_ONE, "in [0, 1)")
    for name, weight in (("coverage", coverage), ("ctc", ctc)):
        if weight and attention is None:
            raise ArgumentError(
                f"{name} needs attention. Received: {name}={weight}, "
                "attention=None"
            )
        setattr(model, name, weight)


def build_ctc(model, memory):
    """Creates the layer of the CTC loss of a memory, if the model has one."""
    if model.ctc:
        model.ctc_logits = layers.Dense(
            model.target_vocab_size, dtype="float32", name="ctc_logits"
        )
        model.ctc_logits.build(memory.shape)


def add_auxiliary_losses(
    model, losses, inputs, labels, weights, memory, memory_mask
):
    """The losses of tokens, mixed with those of their row.

        loss = (1 - ctc) * cross-entropy + (ctc * CTC + coverage * penalty) / n

    where n is the number of tokens of the row, those with a weight.

    Args:
        model: has `coverage`, `ctc` and `ctc_logits`.
        losses: `TokenLosses` of (B, T).
        inputs: dict of the inputs of the model.
        labels: (B, T) int.
        weights: (B, T, S) float, of the attention.
        memory: (B, S, D) float.
        memory_mask: (B, S) bool, True at real positions; with coverage alone
            it may be that of turns, (B, N, W).

    Returns:
        `TokenLosses`.
    """
    if model.ctc:
        logits = model.ctc_logits(memory)
        ctc = ctc_losses(logits, memory_mask, labels, losses.weight)
        losses = losses._replace(loss=(1 - model.ctc) * losses.loss)
        losses = _with_row_losses(losses, model.ctc * ctc)
    if model.coverage:
        steps = padding_mask(inputs["target_ids"])
        memory_mask = ops.reshape(memory_mask, ops.shape(memory)[:2])
        penalty = coverage_penalty(weights, steps, memory_mask)
        losses = _with_row_losses(losses, model.coverage * penalty)
    return losses


def ctc_memory(model, memory):
    """The CTC inputs of a search with `ctc_weight`, from a memory (B, S, D).

    Returns:
        {"ctc_log_probs": (B, S, V) float32}, or {} where there is no CTC.
    """
    if not model.ctc:
        return {}
    return {"ctc_log_probs": ops.log_softmax(model.ctc_logits(memory))}


def _with_row_losses(losses, row_losses):
    """Adds a number for each row, (B,), to its tokens, in equal parts."""
    weight = losses.weight
    if weight is None:
        weight = ops.ones_like(losses.loss)
    tokens = ops.sum(ops.cast(weight > 0, "float32"), axis=1, keepdims=True)
    part = ops.cast(row_losses, "float32")[:, None] / ops.maximum(tokens, 1.0)
    return losses._replace(loss=losses.loss + part)


def coverage_penalty(weights, target_mask, memory_mask):
    """How far the attention to each position is from 1 over all steps.

        sum_i (1 - sum_t weights_ti)^2

    Args:
        weights: (B, T, S) float.
        target_mask: (B, T) bool, True at real steps.
        memory_mask: (B, S) bool, True at real positions.

    Returns:
        (B,) float32.

    Reference:
        Xu et al. 2015, arXiv:1502.03044, section 4.2.1.
    """
    weights = ops.cast(weights, "float32")
    steps = ops.cast(target_mask, "float32")[:, :, None]
    given = ops.sum(weights * steps, axis=1)  # (B, S)
    missing = ops.square(1 - given) * ops.cast(memory_mask, "float32")
    return ops.sum(missing, axis=1)


def ctc_losses(logits, memory_mask, labels, sample_weight=None):
    """The loss of connectionist temporal classification (CTC).

    Each position of the memory is one label or, with the id of PAD, none;
    equal neighbours are one label. The loss is minus the logarithm of the
    probability of all ways to read the labels, without END, in that manner.

    Args:
        logits: (B, S, V) float.
        memory_mask: (B, S) bool, True at real positions, which come first.
        labels: (B, T) int, END after the last one, then PAD.
        sample_weight: (B, T) float, 0 where there is no label, or None.

    Returns:
        (B,) float32; 0 for rows without labels and for those whose labels
        have no room in their memory.

    Reference:
        Graves et al. 2006, Connectionist Temporal Classification, section 4; in
        addition to attention: Kim et al. 2017, arXiv:1609.06773.
    """
    real = padding_mask(labels)
    if sample_weight is not None:
        real = ops.logical_and(real, sample_weight > 0)
    counts = ops.sum(ops.cast(real, "int32"), axis=1) - 1  # without END
    lengths = ops.sum(ops.cast(memory_mask, "int32"), axis=1)

    # Between two equal labels there has to be a position without one.
    places = ops.arange(1, ops.shape(labels)[1], dtype="int32")
    repeated = ops.logical_and(
        ops.equal(labels[:, 1:], labels[:, :-1]), places < counts[:, None]
    )
    needed = counts + ops.sum(ops.cast(repeated, "int32"), axis=1)
    fits = ops.logical_and(counts > 0, needed <= lengths)
    counts = ops.where(fits, counts, 0)

    losses = with_padded_batch(ops.ctc_loss, labels, logits, counts, lengths)
    return ops.where(fits, ops.cast(losses, "float32"), 0.0)
