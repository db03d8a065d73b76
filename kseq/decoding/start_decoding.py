"""The first state of a search."""

import tensorflow as tf


def start_decoding(model, inputs, rows_per_item=1):
    """The step of a model and the state that it starts from.

    Args:
        model: has `encode` and `decode_step`.
        inputs: what `model.encode` takes, passed on unread.
        rows_per_item: int, hypotheses of an item; their rows are consecutive.

    Returns:
        A callable (token_ids (B * rows_per_item,), state) -> (logits, state),
        and the first state, B * rows_per_item rows. The memory is in neither:
        it has one row an item and never changes.
    """
    encoded = model.encode(inputs)
    memory = {name: encoded[name] for name in encoded if name == "memory"}

    def without_memory(state):
        return {name: state[name] for name in state if name != "memory"}

    def step(token_ids, state):
        logits, state = model.decode_step(token_ids, {**state, **memory})
        return logits, without_memory(state)

    state = without_memory(encoded)
    if rows_per_item > 1:
        state = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, rows_per_item, axis=0), state
        )
    return step, state
