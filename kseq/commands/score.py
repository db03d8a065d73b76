"""kseq score: how likely a model finds given answers."""

from kseq.commands.abilities import abilities
from kseq.commands.inputs_of_lines import InputsOfLines
from kseq.commands.open_predictor import open_predictor
from kseq.commands.read_chunks import warn_if_cut
from kseq.data import ParallelText, read_lines
from kseq.data.text_files import LONGEST_LINE
from kseq.progress import progress
from kseq.user_error import UserError


def run(options):
    """Prints one score a line: what `predict --scores` would give it."""
    able = abilities(options.path)
    able.check_signature("score", "score")
    inputs_of = InputsOfLines(able, options)
    sources, targets = _lines(able, options)
    predictor = open_predictor(options)
    with progress("Scoring", len(sources), "lines") as advance:
        inputs = inputs_of(sources)
        scores = predictor.scores_and_cuts(inputs, targets, advance)
    for number, (score, truncated) in enumerate(scores, start=1):
        print(f"{score:.4f}")
        lines = sources[number - 1], targets[number - 1]
        warn_if_cut(number, truncated, *lines)


def _lines(able, options):
    """Sources and answers; a language model may be given texts alone."""
    if options.target is None:
        if able.source != "prompt":
            raise UserError("score needs SOURCE and TARGET for this model.")
        targets = [line.text for line in read_lines(options.source)]
        sources = [b""] * len(targets)
    else:
        text = ParallelText(options.source, options.target)
        sources, targets = text.source_lines(), text.target_lines()
    return tuple(
        [line[: LONGEST_LINE + 1] for line in lines]
        for lines in (sources, targets)
    )
