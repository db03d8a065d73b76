"""Errors of training that a user can act on."""

import keras
from keras import ops

from kseq.models.optimizer_update import restore_seeds, seed_states
from kseq.user_error import ArgumentError, UserError


class DivergedError(UserError):
    """A loss or gradient is not finite; the weights still are."""

    exit_code = 3


class OutOfMemoryError(UserError, MemoryError):
    """A step ran out of memory."""

    exit_code = 4


def diverged_error(model, step, batches):
    """The `DivergedError` of a step, counted from 1.

    The model has its weights before the step; there is a batch for each
    device.
    """
    seeds = seed_states(model)
    loss, norm, source = _where(model, batches)
    restore_seeds(model, seeds)
    rate = float(ops.convert_to_numpy(model.optimizer.learning_rate))
    return DivergedError(
        f"Training diverged at step {step}: loss {loss:.4g}, gradient norm "
        f"{norm:.4g}, learning rate {rate:.4g}. {source} The update was "
        "skipped, and all checkpoints are finite. In a new run, a lower "
        "learning rate, more warm-up or clipping may help."
    )


def out_of_memory_error(model, step, batches):
    """The `OutOfMemoryError` of a step, see `diverged_error`."""
    shapes = []
    for batch in batches:
        inputs = batch[0]
        if not isinstance(inputs, dict):
            inputs = {"inputs": inputs}
        names = (f"{name} {tuple(x.shape)}" for name, x in inputs.items())
        shapes.append(", ".join(names))
    more = 2 * model.accumulation_steps
    return OutOfMemoryError(
        f"Out of memory at step {step}, with a batch of {'; '.join(shapes)}. "
        f"All checkpoints are intact. --accumulation-steps {more}, or compile("
        f"accumulation_steps={more}), keeps fewer rows in memory at a time and "
        "gives the same update; smaller batches change it."
    )


def no_libdevice_error():
    """The error where XLA lacks the part of CUDA that it compiles with."""
    return UserError(
        "XLA cannot compile the training step for the GPU: it does not find "
        "libdevice.10.bc, a part of CUDA. Install it with pip install "
        "'tensorflow[and-cuda]', or set XLA_FLAGS=--xla_gpu_cuda_data_dir=PATH "
        "to the folder of CUDA that has nvvm/libdevice."
    )


def _where(model, batches):
    """Loss, gradient norm, and a sentence about what is not finite first."""
    loss = squares = 0.0
    for batch in batches:
        batch_loss, gradients = model.loss_and_gradients(batch)
        loss += float(batch_loss)
        squares += float(sum(ops.sum(ops.square(g)) for g in gradients))
        if source := _not_finite(model, batch[0], gradients):
            return loss, squares**0.5, source
    return loss, squares**0.5, "Repeating the step gave finite values."


def _not_finite(model, inputs, gradients):
    for name, output in _layer_outputs(model, inputs):
        if not _is_finite(output):
            return f'The first output that is not finite is that of "{name}".'
    for variable, gradient in zip(
        model.trainable_variables, gradients, strict=True
    ):
        if not _is_finite(gradient):
            return (
                "The outputs of all layers are finite; the gradient of "
                f'"{variable.path}" is not.'
            )
    return None


def _layer_outputs(model, inputs):
    """(name, outputs) of the layers of a functional model, in their order."""
    if not isinstance(inputs, dict):
        inputs = {model.inputs[0].name: inputs}
    if "target_ids" in inputs:
        # A language model is trained without prompts: the first token is one.
        inputs = {"source_ids": inputs["target_ids"][:, :1], **inputs}
    outputs = []

    def recorded(operation):
        def call(*args, **kwargs):
            output = operation(*args, **kwargs)
            if isinstance(operation, keras.layers.Layer):
                outputs.append((operation.name, output))
            return output

        return call

    # Not by `layer.output`, which may be that in another model.
    model._run_through_graph(
        [inputs[tensor.name] for tensor in model.inputs], operation_fn=recorded
    )
    return outputs


def _is_finite(outputs):
    return all(
        bool(ops.all(ops.isfinite(output)))
        for output in keras.tree.flatten(outputs)
        if keras.backend.is_float_dtype(output.dtype)
    )


def id_limits(model):
    """How many ids a model knows, by what they are of.

    Args:
        model: has some of the attributes `source_vocab_size`, `vocab_size`,
            `target_vocab_size`, `num_classes`, `num_tags` and `_num_labels`.

    Returns:
        A dict of those of `source_ids`, `target_ids` and `labels` that are
        known, int.
    """
    attributes = {
        "source_ids": ("source_vocab_size", "vocab_size"),
        "target_ids": ("target_vocab_size", "source_vocab_size", "vocab_size"),
        "labels": (
            "num_classes",
            "num_tags",
            "target_vocab_size",
            "_num_labels",
        ),
    }
    limits = {}
    for ids, names in attributes.items():
        known = [getattr(model, name, None) for name in names]
        if any(known):
            limits[ids] = next(filter(None, known))
    return limits


def check_ids(model, batch):
    """Refuses ids that an embedding or the logits have no row for.

    A CPU stops at them without saying which data they are from; XLA and a GPU
    read another row, or zeros.

    Args:
        model: see `id_limits`.
        batch: `(inputs, labels, sample_weight)`, values of one device.

    Raises:
        ArgumentError: with the id and the size of the vocabulary.
    """
    inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(batch)
    values = {**inputs} if isinstance(inputs, dict) else {}
    values["labels"] = labels
    for name, limit in id_limits(model).items():
        ids = values.get(name)
        if ids is None or keras.backend.is_float_dtype(
            keras.backend.standardize_dtype(ids.dtype)
        ):
            continue
        ids = keras.ops.convert_to_numpy(ids)
        wrong = ids[(ids < 0) | (ids >= limit)]
        if wrong.size:
            of_classes = name == "labels" and "target_ids" not in values
            kind = "classes" if of_classes else "pieces"
            raise ArgumentError(
                f"{name} must be from 0 to {limit - 1}: {model.name} knows "
                f"{limit} {kind}. Make it for the data, such as with "
                "tokenizer.vocab_size. "
                f"Received: {name} with {wrong.max()}"
            )
