"""Evaluation of attention against the facts of built-in dialogues."""


def facts_found(predictor, dialogues):
    """Share of answers whose attention is on the turn with the fact.

    Only right answers are judged, at the first token of the fact: the turn
    with the highest sum of weights has to be the one that states it.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        dialogues: `kseq.data.Dialogues` with `evidence` and `facts`.

    Returns:
        A list with a line of text.
    """
    judged = found = 0
    for attention, answer, turn, fact, context in zip(
        predictor.attention(dialogues.contexts),
        dialogues.answers,
        dialogues.evidence,
        dialogues.facts,
        dialogues.contexts,
        strict=True,
    ):
        step = _step_of(fact, attention.target_tokens, answer)
        if step is None:
            continue
        weights = attention.turn_weights[step]
        # A model may have dropped the first turns.
        dropped = len(context) - len(weights)
        judged += 1
        found += weights.argmax() + dropped == turn
    return [
        "the turn with the fact has the highest weight in "
        f"{found / max(judged, 1):.1%} of {judged} right answers"
    ]


def _step_of(fact, tokens, answer):
    """The number of the token with which the fact begins, or None.

    None also where the tokens do not spell the right answer.
    """
    texts = [token.replace("\u2581", " ") for token in tokens[:-1]]
    if "".join(texts).strip() != answer:
        return None
    # A tokenizer puts a space before the first token.
    start = f" {answer} ".index(f" {fact}") + 1
    end = 1 - len(texts[0]) + len(texts[0].lstrip())
    for number, text in enumerate(texts):
        end += len(text) if number else len(text.lstrip())
        if end > start:
            return number
    return None
