"""kseq predict: standard input to standard output, a line for a line."""

import itertools
import json
import sys

from kseq.commands.counted import counted
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import read_chunks
from kseq.data import read_lines
from kseq.data.text_files import LONGEST_LINE
from kseq.user_error import UserError

_CHUNK = 16  # batches, among which lines are sorted by length


def run(options):
    """Answers until the input ends."""
    if options.attention and not options.json:
        raise UserError("--attention needs --json.")
    predictor = open_predictor(options)
    prefixes = options.prefix and _Prefixes(options.prefix)
    number = 0
    stdin = sys.stdin.fileno()
    chunks = read_chunks(stdin, size=_CHUNK * options.batch_size)
    for lines in counted(chunks, stdin, "Predicting"):
        answers = predictor.answers(
            lines,
            n_best=options.n_best,
            prefixes=prefixes and prefixes.take(len(lines)),
            attention=options.attention,
        )
        for line, answer in zip(lines, answers, strict=True):
            number += 1
            if answer.truncated or len(line) > LONGEST_LINE:
                print(
                    f"line {number} is too long; its end was left out.",
                    file=sys.stderr,
                )
            text = _formatted(answer, options).encode("utf-8", "replace")
            sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    if prefixes:
        prefixes.check_end(number)


class _Prefixes:
    """The lines of a file, one for each line of the input."""

    def __init__(self, path):
        self.path = path
        self._lines = (line.text for line in read_lines(path))

    def take(self, count):
        lines = list(itertools.islice(self._lines, count))
        if len(lines) < count:
            raise UserError(f"{self.path} has fewer lines than the input.")
        return lines

    def check_end(self, count):
        if next(self._lines, None) is not None:
            raise UserError(
                f"{self.path} has more lines than the {count} of the input."
            )


def _formatted(answer, options):
    if options.json:
        return json.dumps(answer.record, ensure_ascii=False)
    has_columns = options.scores or options.n_best > 1
    columns = []
    for text, score in answer.hypotheses:
        if options.scores:
            columns.append(f"{score:.4f}")
        text = text.replace("\n", " ")  # one line stays one line
        columns.append(text.replace("\t", " ") if has_columns else text)
    return "\t".join(columns)
