"""kseq evaluate: translations of a file, judged by their references."""

import sys

from kseq.commands.line_batches import map_lines
from kseq.commands.open_translator import open_translator
from kseq.data import ParallelText
from kseq.training import translation_scores

_CHUNK = 8  # batches between two signs of progress


def run(options):
    """Prints BLEU and chrF with their signatures, and exact matches."""
    text = ParallelText(options.source, options.reference)
    sources, references = list(text.source_lines()), list(text.target_lines())
    translator = open_translator(options)

    outputs = []
    size = _CHUNK * options.batch_size
    for start in range(0, len(sources), size):
        answers = map_lines(
            translator.translate,
            sources[start : start + size],
            batch_size=options.batch_size,
        )
        outputs += [_decoded(answer["text"]) for answer in answers]
        print(f"{len(outputs)} of {len(sources)} lines", file=sys.stderr)

    scores = translation_scores(outputs, [_decoded(r) for r in references])
    print(f"BLEU {scores['bleu']:.2f}  {scores['bleu_signature']}")
    print(f"chrF {scores['chrf']:.2f}  {scores['chrf_signature']}")
    print(f"exact match {100 * scores['exact_match']:.2f} %")


def _decoded(text):
    return text.decode("utf-8", "replace")
