"""Many translations in plain Python values."""

from kseq.evaluation.map_lines import map_lines


def strings(pairs):
    """All sources and all targets of a data set, two lists of str.

    Args:
        pairs: finite `tf.data.Dataset` of strings (source, target).
    """
    pairs = list(pairs.as_numpy_iterator())
    return tuple(
        [pair[side].decode("utf-8", errors="replace") for pair in pairs]
        for side in (0, 1)
    )


def translate_all(translate, sources, batch_size=128):
    """Translates a list.

    Args:
        translate: (B,) string tensor -> dict with `text` (B,).
        sources: list of str.
        batch_size: int, sentences at once.

    Returns:
        list of str, in the order of `sources`.
    """
    answers = map_lines(translate, sources, batch_size=batch_size)
    return [answer["text"].decode("utf-8") for answer in answers]


def real_parts(explained):
    """What `Translator.explain` gives, sentence by sentence, unpadded.

    Args:
        explained: dict of `source_tokens` (B, S), `target_tokens` (B, T) and
            `attention` (B, T, S), tensors.

    Returns:
        A list of B tuples: S source tokens, T target tokens, both lists of
        str, and the weights (T, S), an array.
    """
    parts = []
    for source, target, weights in zip(
        explained["source_tokens"].numpy(),
        explained["target_tokens"].numpy(),
        explained["attention"].numpy(),
        strict=True,
    ):
        source = [token.decode("utf-8", "replace") for token in source if token]
        target = [token.decode("utf-8", "replace") for token in target if token]
        parts.append((source, target, weights[: len(target), : len(source)]))
    return parts
