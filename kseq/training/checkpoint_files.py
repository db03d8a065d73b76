"""Checkpoints as files: finding them, and reading them whole."""

import warnings

import tensorflow as tf

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # what tf.train adds to a name


def checkpoint_paths(directory):
    """The checkpoints in a directory, the oldest first.

    All that are there, whatever TensorFlow's own list in the file
    `checkpoint` says: that one may be broken, or a save behind.

    Args:
        directory: a `pathlib.Path`; need not exist.

    Returns:
        A list of str, as `tf.train` wants them.
    """
    indices = directory.glob("ckpt-*.index")
    return sorted((str(path.with_suffix("")) for path in indices), key=step_of)


def step_of(path):
    """How many steps had been trained when a checkpoint was written."""
    return int(path.rsplit("-", 1)[1])


def read_checkpoint(path):
    """Everything in a checkpoint; so that what is broken shows.

    Every tensor has a checksum, and is compared with it.

    Args:
        path: one of `checkpoint_paths`.

    Returns:
        A dict of tensors; `vars/0`, `vars/1`, ... are the values of
        `model.variables`, `opt/0`, ... those of the optimizer.

    Raises:
        tf.errors.OpError: where a file is broken or missing.
    """
    types = tf.train.load_checkpoint(path).get_variable_to_dtype_map()
    tensors = tf.raw_ops.RestoreV2(
        prefix=path,
        tensor_names=list(types),
        shape_and_slices=[""] * len(types),
        dtypes=list(types.values()),
    )
    names = (name.removesuffix(_VALUE) for name in types)
    return dict(zip(names, tensors, strict=True))


def read_newest(directory):
    """Reads the newest checkpoint that is whole.

    There is a warning for each newer one that is not.

    Args:
        directory: a `pathlib.Path`; need not exist.

    Returns:
        path and dict of `read_checkpoint`, or None where there is no whole
        checkpoint.
    """
    for path in reversed(checkpoint_paths(directory)):
        try:
            return path, read_checkpoint(path)
        except tf.errors.OpError as error:
            warnings.warn(
                f"{path} is broken and passed over: {error.message}",
                stacklevel=2,
            )
    return None


def numbered(tensors, name):
    """The values of `name/0`, `name/1`, ... in this order."""
    names = [key for key in tensors if key.startswith(f"{name}/")]
    return [tensors[f"{name}/{index}"] for index in range(len(names))]
