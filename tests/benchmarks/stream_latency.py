"""How soon a stream shows the first words of an answer.

    python tests/benchmarks/stream_latency.py PATH FILE [LINES]

PATH is a run or an export, FILE has inputs for `kseq predict`. Each line is
answered as a whole and as a stream, in turn. Prints milliseconds: until the
first part, until the last, and of the whole answer; and the number of parts.
"""

import itertools
import statistics
import sys
import time

import kseq
from kseq.sources import source_named


def main(path, file, lines=50):
    predictor = kseq.load(path)
    with open(file, encoding="utf-8") as text:
        some = itertools.islice(text, int(lines))
        given = [line.rstrip("\n") for line in some]
    if source_named(predictor.source).chat_input is list:
        given = [line.split("\t") for line in given]
    for each in given[:3]:  # traced, and optimized
        list(predictor.stream(each))
        predictor([each])
    firsts, lasts, wholes, counts = [], [], [], []
    for each in given:
        start = time.perf_counter()
        [answer] = predictor([each])
        wholes.append(time.perf_counter() - start)
        start = time.perf_counter()
        parts = []
        for part in predictor.stream(each):
            if not parts:
                firsts.append(time.perf_counter() - start)
            parts.append(part)
        lasts.append(time.perf_counter() - start)
        counts.append(len(parts))
        assert "".join(parts) == answer
    print(f"{path}: {len(given)} inputs, {statistics.mean(counts):.1f} parts")
    for name, seconds in (
        ("first part", firsts),
        ("last part", lasts),
        ("whole answer", wholes),
    ):
        middle = 1000 * statistics.median(seconds)
        slow = 1000 * statistics.quantiles(seconds, n=20)[-1]
        print(f"  {name}: median {middle:.0f} ms, 95 % under {slow:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
