"""kseq evaluate: answers to a file, judged by its references or labels."""

from kseq.commands.abilities import abilities
from kseq.commands.open_predictor import open_predictor
from kseq.evaluation.evaluation_of_files import (
    check_files,
    evaluation_of_files,
)
from kseq.progress import progress


def run(options):
    """Prints the scores of a model on a file."""
    files = options.source, options.reference, options.columns
    check_files(abilities(options.path).has_labels, *files)
    evaluation = evaluation_of_files(open_predictor(options), *files)
    with progress("Evaluating", len(evaluation), "lines") as advance:
        evaluation.scores(advance)
    for line in evaluation.report():
        print(line)
