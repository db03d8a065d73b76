"""BLEU and chrF of translations, as everyone computes them: by sacreBLEU."""

from sacrebleu.metrics import BLEU, CHRF


def translation_scores(outputs, references):
    """Scores detokenized outputs against one reference each.

    Args:
        outputs: list of str.
        references: list of str, as many.

    Returns:
        A dict: `bleu` and `chrf`, 0 to 100, `exact_match`, 0 to 1, and
        `bleu_signature` and `chrf_signature`, which say how they were
        computed.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Reference:
        Post 2018, arXiv:1804.08771.
    """
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            "outputs and references must be as many, and not none. "
            f"Received: {len(outputs)} outputs, {len(references)} references"
        )
    # `force` only silences the advice about tokenized text.
    bleu, chrf = BLEU(force=True), CHRF()
    pairs = zip(outputs, references, strict=True)
    return {
        "bleu": bleu.corpus_score(outputs, [references]).score,
        "chrf": chrf.corpus_score(outputs, [references]).score,
        "exact_match": sum(a == b for a, b in pairs) / len(outputs),
        "bleu_signature": str(bleu.get_signature()),
        "chrf_signature": str(chrf.get_signature()),
    }
