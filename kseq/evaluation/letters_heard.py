"""Evaluation of attention against the letters of built-in recordings."""

import itertools


def letters_heard(predictor, transcripts):
    """Share of steps that move forward, and of letters at their sound.

    Only recordings whose transcript is right are judged, since the letters of
    others have no known place. The peak of a letter may be up to half its
    length, or one position, before or after its sound.

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
