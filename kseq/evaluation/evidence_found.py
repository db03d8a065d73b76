"""Evaluation of attention against the evidence of a built-in corpus."""


def evidence_found(predictor, documents):
    """Share of documents whose decisive sentence and word weigh most.

    A word has the sum of the weights of its pieces; it ends at a space, and
    its full stop counts as part of it.

    Args:
        predictor: see `kseq.serving.ClassifierPredictor`.
        documents: has `texts` and `evidence`, as `kseq.data.Documents` does.

    Returns:
        Two lines of text.
    """
    sentences = words = 0
    explained = predictor.explain(documents.texts)
    for document, (place, word) in zip(
        explained, documents.evidence, strict=True
    ):
        weights = document.sentence_weights
        sentences += weights.index(max(weights)) == place
        words += _heaviest_word(document, place) == word
    count = len(documents.texts)
    return [
        f"highest weight on the decisive sentence: {sentences / count:.1%}",
        f"highest weight on the decisive word: {words / count:.1%}",
    ]


def _heaviest_word(document, place):
    words = []
    for piece, weight in zip(
        document.words[place], document.word_weights[place], strict=True
    ):
        if piece.startswith(" ") or not words:
            words.append(["", 0.0])
        words[-1][0] += piece
        words[-1][1] += weight
    return max(words, key=lambda word: word[1])[0].strip(" .,")
