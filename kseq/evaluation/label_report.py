"""What the training of a classifier came to, in print."""

from kseq.evaluation.classification_scores import classification_scores
from kseq.evaluation.map_lines import map_lines
from kseq.serving.explained_document import explained_documents


def label_report(path, classifier, run, documents, samples=5):
    """Prints scores on test documents, a few answers, and what to do next.

    Args:
        path: of the export.
        classifier: the export, loaded; has `classify` and `explain`.
        run: `RunDirectory`.
        documents: has `texts`, `labels` and `evidence`, as
            `kseq.data.Documents` does.
        samples: int, answers printed.
    """
    answers = map_lines(classifier.classify, documents.texts, batch_size=32)
    labels = [label.decode() for label in answers[0]["labels"]]
    predicted = [answer["label"].decode() for answer in answers]
    scores = classification_scores(documents.labels, predicted, labels)
    print(f"\n{path} on {len(predicted)} documents:")
    print(f"  accuracy {scores['accuracy']:.2%}")
    print(f"  macro F1 {scores['macro_f1']:.4f}")
    if documents.evidence:
        of_sentences, of_words = _evidence_found(classifier, documents)
        print(f"  the sentence that decides weighs most in {of_sentences:.1%}")
        print(f"  the word that decides weighs most in     {of_words:.1%}")

    print("\nIt says:")
    for text, label in list(zip(documents.texts, predicted, strict=True))[
        :samples
    ]:
        print(f"  {label:<12} {' '.join(text.split())[:60]}")
    print(f"\nClassify your own:    kseq predict {path} < FILE")
    print(f"See what decided:     kseq explain {path} < FILE > page.html")
    print(f"Look at the training: tensorboard --logdir {run.path}")


def _evidence_found(classifier, documents):
    """Shares of the documents whose evidence has the highest weights.

    Of the word, within its sentence, and together for all its pieces: a word
    is what spaces part, and its full stop counts as a part of it.
    """
    sentences = words = 0
    for start in range(0, len(documents.texts), 32):
        part = slice(start, start + 32)
        explained = classifier.explain(documents.texts[part])
        for document, (place, word) in zip(
            explained_documents(explained),
            documents.evidence[part],
            strict=True,
        ):
            weights = document.sentence_weights
            sentences += weights.index(max(weights)) == place
            words += _heaviest_word(document, place) == word
    return sentences / len(documents.texts), words / len(documents.texts)


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
