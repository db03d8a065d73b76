"""Pairs a second of one core: preparing, SentencePiece alone, and reading.

python tests/benchmarks/prepare_speed.py [PAIRS]
"""

import itertools
import random
import sys
import tempfile
import time
from pathlib import Path

import sentencepiece

from kseq.data import (
    PairTokenizers,
    TextPreprocessor,
    Tokenizer,
    open_prepared,
    prepare_pairs,
    training_batches,
)
from kseq.data.text import pair_parts
from kseq.data.text.prepare_pairs import _Preparation


def main(count=1_000_000):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"a.{side}") for side in ("de", "en")]
        for seed, file in enumerate(files):
            write_lines(file, count, seed)
        with files[0].open() as lines:
            sample = [next(lines) for _ in range(min(count, 20_000))]
        tokenizer = Tokenizer.train(sample, 8000)
        kept = PairTokenizers(kept=(tokenizer, tokenizer))
        seconds = timed_steps(_Preparation, ("read", "tokenize", "join"))
        start = time.process_time()
        prepare_pairs(Path(folder, "out"), files, tokenizers=kept, processes=1)
        total = time.process_time() - start
        for name, spent in seconds.items():
            report(name, count, spent)
        report("other steps", count, total - sum(seconds.values()))
        report("all", count, total)

        processor = sentencepiece.SentencePieceProcessor(
            model_proto=tokenizer.model
        )
        texts = [file.read_text("utf-8").splitlines() for file in files]
        start = time.process_time()
        for side in texts:
            for first in range(0, count, pair_parts._TOKENIZED):
                processor.encode(
                    side[first : first + pair_parts._TOKENIZED], num_threads=1
                )
        report("SentencePiece alone", count, time.process_time() - start)
        for batch_tokens in (32_768, 4096):
            pairs = read_speed(Path(folder, "out"), batch_tokens)
            print(
                f"reading, {batch_tokens} tokens  {pairs:10,.0f} pairs/s a core"
            )


def read_speed(folder, batch_tokens, seconds=10):
    """Pairs a second of processor time, from a prepared folder to batches."""
    corpus = open_prepared(folder)
    pairs = corpus.tokenized(TextPreprocessor(corpus.tokenizers[0]))
    batches = iter(
        training_batches(
            pairs, batch_tokens=batch_tokens, max_length=100, seed=1
        )
    )
    next(batches)
    count, start = 0, time.process_time()
    while time.process_time() < start + seconds:
        inputs, _, _ = next(batches)
        count += len(inputs["source_ids"])
    return count / (time.process_time() - start)


def write_lines(path, count, seed):
    """Sentences of 4 to 14 words, drawn as words of a language are."""
    letters = "etaoinshrdlucmfwypvbgkäöüß"
    with path.open("w", encoding="utf-8") as file:
        for words in words_of_lines(count, seed, letters, 30_000):
            file.write(" ".join(words).capitalize() + ".\n")


def words_of_lines(count, seed, letters, num_words):
    """Yields lists of 4 to 14 of some words, a few of which are frequent."""
    draw = random.Random(seed)
    words = [
        "".join(draw.choices(letters, k=draw.randint(2, 9)))
        for _ in range(num_words)
    ]
    weights = (1 / (rank + 3) for rank in range(len(words)))
    limits = list(itertools.accumulate(weights))
    for _ in range(count):
        yield draw.choices(words, cum_weights=limits, k=draw.randint(4, 14))


def timed_steps(kind, names):
    """The seconds of methods of a class, by their names."""
    seconds = {}

    def timed(name, method):
        def call(*arguments):
            start = time.process_time()
            result = method(*arguments)
            seconds[name] = time.process_time() - start
            return result

        return call

    for name in names:
        setattr(kind, name, timed(name, getattr(kind, name)))
    return seconds


def report(name, count, seconds):
    print(f"{name:20} {count / max(seconds, 1e-9):12,.0f} pairs/s a core")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
