"""Texts that are longer than any that a model reads."""

import numpy as np
import tensorflow as tf

from kseq.sources import source_named

# Bytes, as `kseq predict` reads of a line. To tokenize more takes seconds, of
# which a model keeps a few hundred tokens.
LONGEST = 64 * 1024


def cut_texts(inputs):
    """Cuts texts of more than 64 KiB at a character.

    Args:
        inputs: dict, name -> `np.ndarray`.

    Returns:
        Such a dict, and the numbers of the rows in which a text was cut.
    """
    found, rows = dict(inputs), set()
    for name, array in inputs.items():
        source = source_named(name)
        if array.dtype != object or source.is_file or not array.ndim:
            continue
        cut = _cut_end if source.continues else _cut
        places = [
            place
            for place, text in np.ndenumerate(array)
            if len(text) > LONGEST
        ]
        if places:
            found[name] = array.copy()
            for place in places:
                found[name][place] = cut(array[place])
            rows.update(place[0] for place in places)
    return found, sorted(rows)


def cut_examples(inputs):
    """The same for the texts in serialized `tf.train.Example`s.

    A feature that is the bytes of a file, such as a recording, is not cut.

    Args:
        inputs: (B,) object, bytes.
    """
    found = inputs.copy()
    for row, serialized in enumerate(inputs):
        if len(serialized) <= LONGEST:
            continue
        example = tf.train.Example.FromString(serialized)
        for name, feature in example.features.feature.items():
            if source_named(name).is_file:
                continue
            texts = feature.bytes_list.value
            for number, text in enumerate(texts):
                texts[number] = _cut(text)
        found[row] = example.SerializeToString()
    return found


def _cut(text):
    if len(text) <= LONGEST:
        return text
    end = LONGEST
    while end and _is_inside(text[end]):
        end -= 1
    return text[:end]


def _cut_end(text):
    start = len(text) - LONGEST
    while start < len(text) and _is_inside(text[start]):
        start += 1
    return text[start:]


def _is_inside(byte):
    """Whether a byte continues a character of UTF-8."""
    return byte & 0xC0 == 0x80
