"""BLEU, as sacreBLEU computes it."""

from sacrebleu.metrics import BLEU

from kseq.evaluation.score import Score, check_lengths, streams


def bleu(outputs, references):
    """BLEU of detokenized outputs against one or more references each.

    Args:
        outputs: list of str.
        references: list of str, or of lists of several, whose number may
            differ.

    Returns:
        Score, 0 to 100, printed with sacreBLEU's signature.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> bleu(["a rose is a rose"], ["a rose is a rose"]).text[:12]
        'BLEU 100.00 '

    Reference:
        Papineni et al. 2002, aclanthology.org/P02-1040; Post 2018,
        arXiv:1804.08771.
    """
    check_lengths(outputs, references)
    metric = BLEU(force=True)  # only silences advice about tokenized text
    value = metric.corpus_score(outputs, streams(references)).score
    return Score(value, f"BLEU {value:.2f}  {metric.get_signature()}")
