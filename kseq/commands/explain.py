"""kseq explain: what decided, as a page."""

import itertools
import sys

from kseq.commands.abilities import abilities
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import (
    counted,
    read_chunks,
    standard_input,
    warn_if_cut,
)
from kseq.user_error import UserError


def run(options):
    """Reads an input a line, and prints one page with all of them."""
    abilities(options.path).check_signature("explain", "explain")
    predictor = open_predictor(options)
    predictor.explain([])  # a model without attention refuses before the input
    explanations = _explanations(predictor, options.batch_size)
    first = next(explanations, None)
    if first is None:
        raise UserError("there is no line in the input.")
    page = predictor.page(itertools.chain([first], explanations))
    sys.stdout.buffer.write(page.encode("utf-8", "replace"))


def _explanations(predictor, batch_size):
    """Explains line by line, so that not all of them are kept."""
    number = 0
    stdin = standard_input()
    chunks = read_chunks(stdin, size=batch_size)
    for lines in counted(chunks, stdin, "Explaining"):
        for line, explanation in zip(
            lines, predictor.explain(lines), strict=True
        ):
            number += 1
            warn_if_cut(number, explanation.truncated, line)
            yield explanation
