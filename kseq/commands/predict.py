"""kseq predict: standard input to standard output, a line for a line."""

import sys

from kseq.commands.label_lines import label_lines
from kseq.commands.open_model import is_classifier, open_model
from kseq.commands.read_chunks import LONGEST_LINE, read_chunks
from kseq.commands.translate_lines import translate_lines
from kseq.user_error import UserError

_CHUNK = 16  # batches, among which lines are sorted by length


def run(options):
    """Answers until the input ends."""
    if options.attention and not options.json:
        raise UserError("--attention needs --json.")
    model = open_model(options)
    answer = label_lines if is_classifier(model) else translate_lines
    number = 0
    for lines in read_chunks(
        sys.stdin.fileno(), size=_CHUNK * options.batch_size
    ):
        answers = answer(model, lines, options)
        for line, (text, is_cut) in zip(lines, answers, strict=True):
            number += 1
            if is_cut or len(line) > LONGEST_LINE:
                print(
                    f"line {number} is too long; its end was left out.",
                    file=sys.stderr,
                )
            sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
