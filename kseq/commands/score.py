"""kseq score: how likely a model finds given answers."""

from kseq.commands.open_predictor import open_predictor
from kseq.data import ParallelText
from kseq.progress import progress


def run(options):
    """Prints one score a line: what `predict --scores` would give it."""
    text = ParallelText(options.source, options.target)
    sources, targets = list(text.source_lines()), list(text.target_lines())
    predictor = open_predictor(options)
    with progress(f"Scoring {len(sources):,} lines"):
        scores = predictor.scores(sources, targets)
    for score in scores:
        print(f"{score:.4f}")
