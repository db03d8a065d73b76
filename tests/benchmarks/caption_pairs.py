"""Pairs of captions, of the same picture or of different ones (paraphrase).

    python tests/benchmarks/caption_pairs.py FLICKR8K FOLDER

FLICKR8K has captions.tsv (picture, number, caption) and the lists of the
official split. Writes FOLDER/train.tsv, val.tsv and test.tsv with the columns
label, first and second. Four captions of each picture make two pairs with the
label `same`; the same captions, paired with those of other pictures, make two
with the label `different`, so that no caption shows the label alone.

Prints the accuracy of a baseline: a pair is `same` if the cosine of the TF-IDF
of its words is above a threshold, which is fitted to the training pairs.
"""

import argparse
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

SPLITS = {"train": "train", "dev": "val", "test": "test"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flickr8k", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    captions = defaultdict(list)
    table = (options.flickr8k / "captions.tsv").read_text("utf-8")
    for line in table.splitlines():
        picture, _, caption = line.split("\t")
        captions[picture].append(caption)

    baseline = None
    for split, name in SPLITS.items():
        listed = options.flickr8k / f"Flickr_8k.{split}Images.txt"
        rows = pairs([captions[name] for name in listed.read_text().split()])
        lines = ["label\tfirst\tsecond", *map("\t".join, rows)]
        text = "\n".join(lines) + "\n"
        (options.folder / f"{name}.tsv").write_text(text, "utf-8")
        baseline = baseline or Baseline(rows)
        accuracy = baseline.accuracy(rows)
        print(f"{name}: {len(rows)} pairs, baseline {100 * accuracy:.1f} %")


def pairs(captions):
    """(label, first, second) of all pairs, in random order, with seed 1."""
    draw, rows = random.Random(1), []
    captions = [draw.sample(own, len(own)) for own in captions]
    for number in (0, 2):
        draw.shuffle(captions)
        firsts, seconds = (
            [own[number + place] for own in captions] for place in (0, 1)
        )
        rows += zip(["same"] * len(firsts), firsts, seconds, strict=True)
        seconds = seconds[1:] + seconds[:1]
        rows += zip(["different"] * len(firsts), firsts, seconds, strict=True)
    draw.shuffle(rows)
    return rows


class Baseline:
    def __init__(self, rows):
        self.tfidf = TfidfVectorizer(sublinear_tf=True)
        self.tfidf.fit([text for _, *texts in rows for text in texts])
        cosines, same = self.cosines(rows), is_same(rows)
        thresholds = np.quantile(cosines, np.linspace(0, 1, 201))
        self.threshold = max(
            thresholds, key=lambda t: np.mean((cosines >= t) == same)
        )

    def cosines(self, rows):
        _, firsts, seconds = zip(*rows, strict=True)
        product = self.tfidf.transform(firsts).multiply(
            self.tfidf.transform(seconds)
        )
        return np.asarray(product.sum(axis=1)).ravel()

    def accuracy(self, rows):
        return np.mean((self.cosines(rows) >= self.threshold) == is_same(rows))


def is_same(rows):
    return np.array([label == "same" for label, _, _ in rows])


if __name__ == "__main__":
    main()
