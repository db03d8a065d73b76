"""Tags the words of a text by a rule that only their context can tell.

    python tests/benchmarks/tag_determiners.py TRAIN VAL TEST FOLDER

TRAIN, VAL and TEST are texts of a sentence a line. Writes FOLDER/train.conll,
val.conll and test.conll. The tag of a word is how far the next determiner is:
`det` for a determiner itself, `1` if the next word is one, `2` if that after
the next is, `3+` if a later one is, and `none` if no determiner follows.

Prints the accuracy on TEST of a baseline that gives each word the tag that it
has most often in TRAIN, and a word that is not in TRAIN the commonest tag.
"""

import argparse
import itertools
from collections import Counter, defaultdict
from pathlib import Path

from kseq.data import read_lines

DETERMINERS = {
    *("a", "an", "the", "this", "that", "these", "those", "some", "any"),
    *("each", "every", "another", "his", "her", "its", "their", "my"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("train", "val", "test", "folder"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    counts = defaultdict(Counter)
    for name in ("train", "val", "test"):
        sentences = [
            tagged(line.text.decode().split())
            for line in read_lines(getattr(options, name))
        ]
        text = "\n".join(
            "".join(f"{word}\t{tag}\n" for word, tag in sentence)
            for sentence in sentences
        )
        (options.folder / f"{name}.conll").write_text(text, "utf-8")
        if name == "train":
            for word, tag in itertools.chain.from_iterable(sentences):
                counts[word][tag] += 1
        print(f"{name}: {len(sentences)} sentences")
    print_baseline(counts, sentences)


def tagged(words):
    """(word, tag) of each word."""
    tags, next_one = [], None
    for place in range(len(words) - 1, -1, -1):
        if words[place].lower() in DETERMINERS:
            next_one = place
            tags.append("det")
        elif next_one is None:
            tags.append("none")
        else:
            distance = next_one - place
            tags.append("3+" if distance > 2 else str(distance))
    return list(zip(words, tags[::-1], strict=True))


def print_baseline(counts, sentences):
    [(commonest, _)] = sum(counts.values(), Counter()).most_common(1)
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    words = right = whole = 0
    for sentence in sentences:
        hits = [best.get(word, commonest) == tag for word, tag in sentence]
        words += len(hits)
        right += sum(hits)
        whole += all(hits)
    print(
        f"baseline on test: accuracy {100 * right / words:.2f} % of {words} "
        f"words, exact match {100 * whole / len(sentences):.2f} %"
    )


if __name__ == "__main__":
    main()
