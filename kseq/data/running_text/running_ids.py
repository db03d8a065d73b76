"""The tokens of running text."""

import io
import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from kseq.control_tokens import END, START
from kseq.data.running_text.text_documents import Chunk
from kseq.data.text.tokenizer import Tokenizer
from kseq.data.text.tokenizer_training import parts_of
from kseq.terminal import progress

_CHARACTERS = 2**18  # that are tokenized together, unless one chunk has more
_LONGEST = 2**16  # characters of a line that are tokenized together


def running_ids(documents: list[str], tokenizer: Tokenizer) -> np.ndarray:
    """The tokens of all documents, each between START and END.

    Unlike a target, which gets END from `Tokenizer.tokenize_with_end`, a
    document has many lines, and END only after the last one.

    Args:
        documents: list of str.
        tokenizer: `Tokenizer`, verbatim.

    Returns:
        (N,) int32.

    Raises:
        ValueError: the tokenizer is not verbatim.
    """
    parts = []
    size = sum(map(len, documents))
    with progress("Tokenizing", size, "characters") as advance:
        for ids, characters in ids_of_chunks(map(Chunk, documents), tokenizer):
            parts.append(ids)
            advance(characters)
    return np.concatenate(parts)


def ids_of_chunks(
    chunks: Iterable[Chunk], tokenizer: Tokenizer
) -> Iterator[tuple[np.ndarray, int]]:
    """The tokens of some chunks at a time, and the number of characters.

    Raises:
        ValueError: the tokenizer is not verbatim.
    """
    if not tokenizer.is_verbatim:
        raise ValueError("Running text needs a verbatim tokenizer.")
    for some in groups_of(chunks, _CHARACTERS):
        lines = [_parts_of_lines(chunk.text) for chunk in some]
        texts = tf.constant(list(itertools.chain(*lines)), tf.string)
        ids = tokenizer.tokenize(texts)
        ids = tf.RaggedTensor.from_row_lengths(ids, list(map(len, lines)))
        starts = _tokens(START, [chunk.begins for chunk in some])
        ends = _tokens(END, [chunk.ends for chunk in some])
        ids = tf.concat([starts, ids.merge_dims(1, 2), ends], axis=1)
        yield ids.flat_values.numpy(), sum(len(chunk.text) for chunk in some)


def _tokens(token, has):
    """A row with a token for each True, an empty one for each False."""
    rows = tf.fill([sum(has)], token)
    return tf.RaggedTensor.from_row_lengths(rows, np.array(has, np.int64))


def lines_of(document: str) -> list[str]:
    r"""The lines of a document, each with its line break.

    >>> lines_of("a\nb")
    ['a\n', 'b']
    """
    return list(io.StringIO(document))


def _parts_of_lines(text):
    """The lines of a text; long ones, which take much memory, in parts."""
    lines = (parts_of(line, _LONGEST) for line in lines_of(text))
    return list(itertools.chain.from_iterable(lines))


def groups_of(chunks: Iterable[Chunk], size: int) -> Iterator[list[Chunk]]:
    """Groups of chunks of at least `size` characters, but for the last one."""
    group, characters = [], 0
    for chunk in chunks:
        group.append(chunk)
        characters += len(chunk.text)
        if characters >= size:
            yield group
            group, characters = [], 0
    if group:
        yield group
