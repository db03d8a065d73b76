"""Ids that a model has no row for."""

import keras

from kseq.user_error import ArgumentError


def id_limits(model):
    """How many ids a model knows, by what they are of.

    Args:
        model: has some of the attributes `source_vocab_size`, `vocab_size`,
            `target_vocab_size` and `num_classes`.

    Returns:
        A dict of those of `source_ids`, `target_ids` and `labels` that are
        known, int.
    """
    source, whole, target, classes = (
        getattr(model, name, None)
        for name in (
            *("source_vocab_size", "vocab_size"),
            *("target_vocab_size", "num_classes"),
        )
    )
    limits = {
        "source_ids": source or whole,
        "target_ids": target or source or whole,
        "labels": classes or target,
    }
    return {name: limit for name, limit in limits.items() if limit}


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
            of_classes = name == "labels" and hasattr(model, "num_classes")
            kind = "classes" if of_classes else "pieces"
            raise ArgumentError(
                f"{name} must be from 0 to {limit - 1}: {model.name} knows "
                f"{limit} {kind}. Make it for the data, such as with "
                "tokenizer.vocab_size. "
                f"Received: {name} with {wrong.max()}"
            )
