"""Pairs with the same source as one example with several references."""

import tensorflow as tf

_BLOCK = 1024  # pairs that leave a data set together


def split_examples(corpus, split: str = "validation"):
    """A split as `kseq.evaluation.Translations` judges it.

    Args:
        corpus: `Corpus` or `PreparedPairs`.
        split: "validation" or "test".
    """
    pairs = getattr(corpus, split)
    return with_references(pairs) if corpus.of_tables else pairs


def with_references(pairs: tf.data.Dataset) -> list[tuple[str, list[str]]]:
    """Groups pairs by their sources, in the order of the first of each.

    White space at the ends of a source does not count, and a reference is
    listed once.

    Args:
        pairs: finite, of scalar strings (source, reference).

    Returns:
        A list of (source, references).

    Example:
    >>> pairs = [["hi", "hello", "hi"], ["salut", "bonjour", "bonjour"]]
    >>> pairs = tf.data.Dataset.from_tensor_slices(tuple(pairs))
    >>> with_references(pairs)
    [('hi', ['salut', 'bonjour']), ('hello', ['bonjour'])]
    """
    examples: dict[bytes, dict[str, None]] = {}
    for block in pairs.batch(_BLOCK).as_numpy_iterator():
        for source, reference in zip(*block, strict=True):
            references = examples.setdefault(source.strip(), {})
            references[reference.decode("utf-8", "replace")] = None
    return [
        (source.decode("utf-8", "replace"), list(references))
        for source, references in examples.items()
    ]
