"""kseq evaluate: answers to a file, judged by its references or labels."""

from kseq.commands.open_predictor import open_predictor
from kseq.evaluation import evaluation_of_files
from kseq.progress import progress


def run(options):
    """Prints the scores of a model on a file."""
    predictor = open_predictor(options)
    evaluation = evaluation_of_files(
        predictor, options.source, options.reference, options.columns
    )
    with progress("Evaluating", len(evaluation), "lines") as advance:
        evaluation.scores(advance)
    for line in evaluation.report():
        print(line)
