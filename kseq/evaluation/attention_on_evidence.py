"""Attention against the known evidence of the built-in corpora."""

import itertools


def attention_on_evidence(predictor, documents):
    """How often the decisive sentence and word have the highest weights.

    The weight of a word is the sum of the weights of its pieces; it ends at a
    space, and includes its full stop.

    Args:
        predictor: see `kseq.serving.ClassifierPredictor`.
        documents: `kseq.data.Documents` with `evidence`.

    Returns:
        Two lines of text.
    """
    sentences = words = 0
    explained = predictor.explain(documents.texts)
    for document, (position, word) in zip(
        explained, documents.evidence, strict=True
    ):
        weights = document.sentence_weights
        sentences += weights.index(max(weights)) == position
        words += _heaviest_word(document, position) == word
    count = len(documents.texts)
    return [
        f"highest weight on the decisive sentence: {sentences / count:.1%}",
        f"highest weight on the decisive word: {words / count:.1%}",
    ]


def _heaviest_word(document, position):
    words = []
    for piece, weight in zip(
        document.words[position], document.word_weights[position], strict=True
    ):
        if piece.startswith(" ") or not words:
            words.append(["", 0.0])
        words[-1][0] += piece
        words[-1][1] += weight
    return max(words, key=lambda word: word[1])[0].strip(" .,")


def attention_on_facts(predictor, dialogues):
    """How often the turn that states the fact has the highest weight.

    Only correct answers count. The weight of a turn is the sum of the weights
    of its pieces, at the step that generates the first token of the fact.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        dialogues: `kseq.data.Dialogues` with `evidence` and `facts`.

    Returns:
        A list with a line of text.
    """
    correct = found = 0
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
        correct += 1
        found += weights.argmax() + dropped == turn
    return [
        "the turn with the fact has the highest weight in "
        f"{found / max(correct, 1):.1%} of {correct} right answers"
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


def attention_on_objects(predictor, captions):
    """How often the cell of an object has the highest weight for its name.

    The weight of a word is the sum of the weights of its pieces. A name of an
    object that is not in the scene counts as a miss.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        captions: `kseq.data.Captions` with `objects`.

    Returns:
        A list with a line of text.
    """
    nouns = {name.split()[-1] for each in captions.objects for name in each}
    named = found = 0
    explained = predictor.attention(captions.raw(predictor.source))
    for attention, objects in zip(explained, captions.objects, strict=True):
        before = ""
        for word, weights in _words(attention):
            if word in nouns:
                cell = objects.get(f"{before} {word}")
                named += 1
                found += cell is not None and weights.argmax() == cell
            before = word
    return [
        "the cell of an object has the highest weight for "
        f"{found / max(named, 1):.1%} of the words that name one"
    ]


def _words(attention):
    """Words of an answer and their weights (S,)."""
    words = []
    for piece, weights in zip(
        attention.target_tokens, attention.weights, strict=True
    ):
        if piece.startswith("\u2581") or not words:
            words.append([piece.removeprefix("\u2581"), weights])
        else:
            words[-1][0] += piece
            words[-1][1] = words[-1][1] + weights
    return words


def attention_on_letters(predictor, transcripts):
    """How often attention moves forward, and is at the sound of a letter.

    Only correct transcripts count, because the spans are those of their
    letters. The peak of a letter may be up to half its duration, or one
    position, before or after its sound.

    Args:
        predictor: see `kseq.serving.GeneratorPredictor`.
        transcripts: `kseq.data.Transcripts` with `spans`, of models whose
            pieces are characters.

    Returns:
        A list with a line of text.
    """
    explained = predictor.attention(transcripts.raw(predictor.source))
    steps = forward = letters = heard = 0
    for attention, text, spans in zip(
        explained, transcripts.texts, transcripts.spans, strict=True
    ):
        tokens = attention.target_tokens[:-1]  # without END
        if "".join(tokens).replace("\u2581", " ").strip() != text:
            continue
        times = [float(time) for time in attention.source_tokens]
        width = times[1] - times[0] if len(times) > 1 else 0.0
        # A tokenizer may put a space before the first letter.
        tokens = attention.weights[len(tokens) - len(text) : len(tokens)]
        peaks = [times[row.argmax()] for row in tokens]
        steps += len(peaks) - 1
        forward += sum(a <= b for a, b in itertools.pairwise(peaks))
        for peak, (start, end), letter in zip(peaks, spans, text, strict=True):
            slack = max((end - start) / 2, width)
            letters += letter != " "
            heard += letter != " " and start - slack <= peak <= end + slack
    return [
        f"attention moves forward at {forward / max(steps, 1):.1%} of the "
        f"steps; {heard / max(letters, 1):.1%} of the letters attend to their "
        "own sound"
    ]
