"""What the rule costs and brings by which a beam search ends.

    python tests/benchmarks/end_of_search.py RUN SOURCE REFERENCE

Answers the lines of SOURCE with a run, in turn and several times over: by
greedy search, by a beam that ends when as many answers have finished as it is
wide (`patience=1`), and by the default rule, which ends when no live
hypothesis can be better. Prints the ratios of their median times to the
second, BLEU, the mean score, and in how many lines the score is worse than
that of greedy search.
"""

import argparse
import statistics
import time
from pathlib import Path

import kseq
from kseq.decoding import BeamSearch, GreedySearch
from kseq.evaluation import bleu


def lines_of(path):
    return Path(path).read_text("utf-8").removesuffix("\n").split("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("source")
    parser.add_argument("reference")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    sources = lines_of(options.source)
    references = lines_of(options.reference)
    searches = {
        "greedy": GreedySearch(),
        "patience 1": BeamSearch(options.beam_size, patience=1.0),
        "default": BeamSearch(options.beam_size),
    }
    translators = {}
    for name, search in searches.items():
        translators[name] = kseq.load(options.run, search=search)
        translators[name].batch_size = options.batch_size
        translators[name](sources[:1])  # traced

    seconds = {name: [] for name in searches}
    found = {}
    for _ in range(options.rounds):
        for name, translator in translators.items():
            start = time.perf_counter()
            answers = translator.answers(sources)
            seconds[name].append(time.perf_counter() - start)
            found[name] = [answer.hypotheses[0] for answer in answers]

    medians = {name: statistics.median(s) for name, s in seconds.items()}
    greedy = [answer.score for answer in found["greedy"]]
    print(f"{len(sources)} lines; time as a ratio to patience 1")
    for name, answers in found.items():
        scores = [answer.score for answer in answers]
        worse = sum(
            score < other - 1e-4
            for score, other in zip(scores, greedy, strict=True)
        )
        print(
            f"  {name:10}  {medians[name] / medians['patience 1']:5.2f}  "
            f"{bleu([answer.text for answer in answers], references).text}  "
            f"mean score {statistics.mean(scores):.4f}  worse than greedy in "
            f"{worse}"
        )


if __name__ == "__main__":
    main()
