"""What a linear model makes of documents, to compare the recipe with.

    python tests/benchmarks/linear_classifier.py TRAIN TEST

Logistic regression on the TF-IDF of words and word pairs, by scikit-learn. It
is fitted to the documents that recipes/classify_documents.py trains on, and
its regularization is chosen by those that the recipe holds out; then it is
scored on TEST.
"""

import argparse
import time

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from kseq.data import read_document_corpus, read_documents
from kseq.evaluation.classification_scores import classification_scores

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # C: the less, the stronger


def scores(model, features, labels):
    found = classification_scores(
        labels, model.predict(features), model.classes_
    )
    accuracy, macro_f1 = found["accuracy"], found["macro_f1"]
    return accuracy, f"accuracy {accuracy:.1%}  macro F1 {macro_f1:.1%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--columns", nargs=2, default=("label", "text"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    corpus = read_document_corpus(
        options.train, columns=options.columns, seed=options.seed
    )
    test = read_documents(options.test, options.columns)
    start = time.perf_counter()
    tfidf, model, found = fit(corpus)
    size = len(tfidf.vocabulary_)
    print(f"{time.perf_counter() - start:.0f} s, {size} features")
    print(f"validation: {found}")
    _, line = scores(model, tfidf.transform(test.texts), test.labels)
    print(f"test:       {line}")


def fit(corpus):
    """The TF-IDF of a corpus, the best model on validation, and its score."""
    tfidf = TfidfVectorizer(
        ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\w+"
    )
    features = tfidf.fit_transform(corpus.train.texts)
    held_out = tfidf.transform(corpus.validation.texts)
    best = (-1.0, "", None)
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=1000)
        model.fit(features, corpus.train.labels)
        found = scores(model, held_out, corpus.validation.labels)
        print(f"C {strength:5}: {found[1]} on validation", flush=True)
        best = max(best, (*found, model), key=lambda scored: scored[0])
    return tfidf, best[2], best[1]


if __name__ == "__main__":
    main()
