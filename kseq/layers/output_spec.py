"""The outputs of a layer whose arguments decide how many there are."""

import inspect

import keras

_MORE_OUTPUTS = ("return_weights", "cache", "before")  # if they are given


def output_spec(layer: keras.layers.Layer, *args, **kwargs):
    """`Layer.compute_output_spec`, which traces `call` only if it has to.

    A block of a Transformer takes a tenth of a second to be traced. The one
    output that it usually has is known: `compute_output_shape`.

    Args:
        layer: layer with one output of its own dtype, unless an argument of
            `call` asks for more: attention weights or states. What it refuses
            of its arguments is in `check_arguments`, if it has that.
        *args: arguments of `call`.
        **kwargs: the same, by keyword.

    Returns:
        `keras.KerasTensor`, or a tuple of them.
    """
    given = inspect.signature(layer.call).bind(*args, **kwargs).arguments
    if layer.built and hasattr(layer, "check_arguments"):
        layer.check_arguments(**given)
    more = [given.get(name) for name in _MORE_OUTPUTS]
    has_one = all(each is None or each is False for each in more)
    kind = keras.layers.Layer if has_one else keras.Operation
    return kind.compute_output_spec(layer, *args, **kwargs)
