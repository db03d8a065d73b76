"""Answers to many inputs, in their order."""

import itertools
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from kseq.data.files.records import without_surrogates
from kseq.devices import check_not_forked, has_gpu, is_out_of_memory
from kseq.user_error import ArgumentError, UserError, check_integers

_AT_ONCE = 2  # batches: the small operations of one leave processors idle
_LEAST, _MOST = 32, 128  # inputs of a batch
_LENGTH = 16_384  # of all inputs of a batch with padding, if they are short
# A GPU takes about as long for a few inputs as for many: times as many, or as
# long, on it.
_ON_GPU = 8
_log = logging.getLogger(__name__)

# Functions of batches of tensors by keyword, which give dicts of tensors.
Signatures = Mapping[str, Callable[..., Any]]
Progress = Callable[[int], object]  # of the inputs done since its last call


def predict_batches(
    signatures: Signatures,
    name: str,
    columns: Mapping[str, Sequence[Any]],
    batch_size: int | None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Calls a signature with batches of inputs of similar length.

    Args:
        signatures: dict of functions of (B, ...) tensors by keyword, which
            give dicts of tensors (B, ...).
        name: of the signature.
        columns: dict, name -> list of bytes, str, lists of str, float arrays
            or numbers, all of the same length; inputs are sorted by the length
            in the first column, which has no numbers.
        batch_size: int; None for 32 to 128, fewer if they are long, and for
            32 to 1,024 where there is a GPU. A batch that does not fit into
            memory is halved, and so are all later batches.
        progress: callable of the number of inputs done since its last call,
            see `kseq.terminal.progress`; or None.

    Returns:
        A list with a dict of arrays for each input, in the order of the
        inputs.

    Raises:
        UserError: if there is no such signature.
        ValueError: if the columns are not lists of the same length, a value
            is not what the signature takes, or the batch size is not positive.
    """
    check_not_forked()
    check_integers(batch_size=batch_size, optional=True)
    if name not in signatures:
        raise UserError(
            f"This model has no signature {name}; it has "
            f"{', '.join(sorted(signatures))}."
        )
    function = signatures[name]
    check_lists(**columns)
    columns = {key: [*values] for key, values in columns.items()}
    first = columns[next(iter(columns))]
    check_values(function, columns)
    lengths = list(map(_length, first))
    order = sorted(range(len(first)), key=lambda i: -lengths[i])
    results: list[Any] = [None] * len(order)
    fits = math.inf  # length of all inputs of a batch with padding

    def answer(places):
        nonlocal fits
        length = len(places) * max(1, lengths[places[0]])
        if length > fits and len(places) > 1:
            return in_halves(places)
        batch = {
            name: to_tensor([values[i] for i in places])
            for name, values in columns.items()
        }
        try:
            outputs = {k: v.numpy() for k, v in function(**batch).items()}
        except tf.errors.OpError as error:
            if len(places) == 1 or not is_out_of_memory(error):
                raise
            if length // 2 < fits:
                fits = length // 2
                _log.warning(
                    f"A batch of {len(places)} inputs does not fit into "
                    "memory: it is halved, and so are all later batches. A "
                    f"batch size of {-(-len(places) // 2)} avoids that."
                )
            return in_halves(places)
        for row, place in enumerate(places):
            results[place] = {k: v[row] for k, v in outputs.items()}
        return len(places)

    def in_halves(places):
        half = -(-len(places) // 2)
        return answer(places[:half]) + answer(places[half:])

    batches = _batches(order, lengths, batch_size)
    # The first may have to be traced, which no thread should do twice.
    for count in itertools.chain(
        map(answer, batches[:1]), _map_at_once(answer, batches[1:])
    ):
        if progress is not None:
            progress(count)
    return results


def check_lists(**columns: Any) -> None:
    """Raises ValueError unless all are lists of the same length."""
    count = None
    for key, values in columns.items():
        is_list = hasattr(values, "__len__") and not isinstance(
            values, str | bytes
        )
        if is_list and count is None:
            count = len(values)
        if not is_list or len(values) != count:
            raise ValueError(
                f"{key} must be a list with one item per input. Received: "
                f"{key}={values!r:.200}"
            )


def check_texts(**columns: Any) -> None:
    """Raises ValueError unless all are lists of strings of the same length."""
    check_lists(**columns)
    for name, values in columns.items():
        _check_kind(name, values, "a string", _is_text)


def check_values(
    function: Callable[..., Any], columns: Mapping[str, Sequence[Any]]
) -> None:
    """Raises ValueError unless a TensorFlow function takes these values.

    One that was loaded would read some of a list where a string belongs.
    """
    kinds = getattr(function, "function_type", None)
    if kinds is None:  # a function of Python
        return
    for name, values in columns.items():
        spec = kinds.parameters[name].type_constraint
        _check_kind(name, values, *_kind_of(spec.dtype, spec.shape.rank - 1))


def _check_kind(name, values, kind, is_of_kind):
    for value in values:
        if not is_of_kind(value):
            raise ArgumentError(
                f"A value of {name} must be {kind}. Received: {value!r:.200}"
            )


def most_at_once() -> int:
    """The largest batch where no size is given."""
    return _MOST * _times()


def _times():
    return _ON_GPU if has_gpu() else 1


def _batches(order, lengths, batch_size):
    """Lists of positions; `order` has the longest input first."""
    times = _times()
    batches, start = [], 0
    while start < len(order):
        size = batch_size
        if size is None:
            fit = times * _LENGTH // max(1, lengths[order[start]])
            size = min(max(fit, _LEAST), times * _MOST)
        batches.append(order[start : start + size])
        start += size
    return batches


def _map_at_once(function, values):
    """`map` in several threads; pending calls are cancelled after an error."""
    pool = ThreadPoolExecutor(_at_once())
    try:
        yield from pool.map(function, values)
    finally:
        pool.shutdown(cancel_futures=True)


def _at_once():
    """Batches: one for each processor if an operation runs on one of them."""
    if tf.config.threading.get_intra_op_parallelism_threads() != 1:
        return _AT_ONCE
    return max(_AT_ONCE, os.cpu_count() or 1)


def _kind_of(dtype, rank):
    """What a value of this rank is: in words, and a function of a value."""
    if rank == 0:
        is_text = dtype == tf.string
        return ("a string", _is_text) if is_text else ("a number", _is_number)
    if dtype == tf.string:
        return "a list of strings", _is_list_of_texts
    return (
        f"an array of {rank} axes",
        lambda value: getattr(value, "ndim", None) == rank,
    )


def _valid(text):
    return without_surrogates(text) if isinstance(text, str) else text


def _is_text(value):
    return isinstance(value, str | bytes)


def _is_number(value):
    return isinstance(value, int | float | np.number)


def _is_list_of_texts(value):
    return isinstance(value, list) and all(map(_is_text, value))


def _length(value):
    return sum(map(len, value)) if isinstance(value, list) else len(value)


def to_tensor(values: Sequence[Any]) -> tf.Tensor:
    """A batch of inputs of Python as a tensor, padded.

    Args:
        values: list of str, bytes, lists of str, numbers or float arrays. An
            unpaired surrogate becomes U+FFFD, as in files.
    """
    if isinstance(values[0], list):
        most = max(1, *map(len, values))
        padded = [
            [*map(_valid, texts), *[""] * (most - len(texts))]
            for texts in values
        ]
        return tf.constant(padded, tf.string)
    if isinstance(values[0], str | bytes):
        return tf.constant(list(map(_valid, values)), tf.string)
    if isinstance(values[0], int | float):
        kind = tf.int64 if isinstance(values[0], int) else tf.float32
        return tf.constant(values, kind)
    if len({len(value) for value in values}) == 1:
        return tf.constant(np.stack(values), tf.float32)
    # What is not finite is padding.
    longest = max(map(len, values))
    padded = np.full((len(values), longest, *values[0].shape[1:]), np.nan)
    for row, value in zip(padded, values, strict=True):
        row[: len(value)] = value
    return tf.constant(padded, tf.float32)
