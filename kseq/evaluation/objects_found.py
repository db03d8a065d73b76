"""Evaluation of attention against the objects of built-in scenes."""


def objects_found(predictor, captions):
    """Share of the words that name an object and attend to its cell.

    A word has the sum of the weights of its pieces. The name of an object that
    is not in the scene counts as one that looks elsewhere.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        captions: `kseq.data.Captions` with `objects`.

    Returns:
        A list with a line of text.
    """
    nouns = {name.split()[-1] for each in captions.objects for name in each}
    named = found = 0
    explained = predictor.attention(captions.raw(predictor.source))
    for attention, objects in zip(explained, captions.objects, strict=True):
        before = ""
        for word, weights in _words(attention):
            if word in nouns:
                cell = objects.get(f"{before} {word}")
                named += 1
                found += cell is not None and weights.argmax() == cell
            before = word
    return [
        "the cell of an object has the highest weight for "
        f"{found / max(named, 1):.1%} of the words that name one"
    ]


def _words(attention):
    """Words of an answer and their weights (S,)."""
    words = []
    for piece, weights in zip(
        attention.target_tokens, attention.weights, strict=True
    ):
        if piece.startswith("\u2581") or not words:
            words.append([piece.removeprefix("\u2581"), weights])
        else:
            words[-1][0] += piece
            words[-1][1] = words[-1][1] + weights
    return words
