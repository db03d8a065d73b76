"""kseq score: how likely a model finds given answers."""

import contextlib
import itertools
import sys

from kseq.commands.capabilities import Capabilities
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import (
    above_the_answers,
    chunk_size,
    count_invalid,
    warn_if_cut,
    warn_of_invalid,
)
from kseq.data import ParallelText, read_lines
from kseq.data.files.text_files import LONGEST_LINE
from kseq.data.files.url_files import copy_urls
from kseq.terminal import progress
from kseq.user_error import UserError


def run(options):
    """Prints one score per line: that of an answer in the tokenizer's pieces.

    `predict --scores` prints that of the pieces that the search found, which
    are rarely others, and with a share of CTC if the search has one.
    """
    copy_urls(options)
    model = Capabilities(options.path)
    model.check_signature("score", "score")
    model.check_options(options)
    inputs_of = model.source.read_lines(model, options)
    # Read once before the first score, for what is wrong with the files.
    count, of_sources, of_targets = 0, 0, 0
    for source, target in _lines(model.source, options):
        count += 1
        of_sources += count_invalid([source])
        of_targets += count_invalid([target])
    if model.source.has_tokenizer:
        warn_of_invalid(options.source, of_sources)
    # Texts alone, which the model continues, are in the first file.
    warn_of_invalid(options.target or options.source, of_targets)
    predictor = open_predictor(options)
    lines, number = _lines(model.source, options), 0
    size = chunk_size(options.batch_size)
    with _beside_the_scores(count) as advance:
        while chunk := list(itertools.islice(lines, size)):
            sources, targets = map(list, zip(*chunk, strict=True))
            with above_the_answers("Scoring", len(chunk)) as advance_chunk:
                scores = predictor.scores_and_cuts(
                    inputs_of(sources), targets, advance or advance_chunk
                )
            for (score, truncated), pair in zip(scores, chunk, strict=True):
                number += 1
                print(f"{score:.4f}")
                warn_if_cut(number, truncated, *pair)
            sys.stdout.flush()


def _beside_the_scores(count):
    if sys.stdout.isatty():
        return contextlib.nullcontext()
    return progress("Scoring", count, "lines")


def _lines(source, options):
    """Pairs of source and answer; a language model may be given texts alone."""
    if options.target is None:
        if not source.continues:
            raise UserError("score needs SOURCE and TARGET for this model.")
        pairs = ((b"", line.text) for line in read_lines(options.source))
    else:
        text = ParallelText(options.source, options.target)
        pairs = zip(text.source_lines(), text.target_lines(), strict=True)
    return (tuple(line[: LONGEST_LINE + 1] for line in pair) for pair in pairs)
