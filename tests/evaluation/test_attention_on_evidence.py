import math
from types import SimpleNamespace

import numpy as np

from kseq.evaluation import attention_on_letters
from kseq.serving import Attention


def heard(tokens, peaks, spans, text):
    times = [f"{place / 10:.2f}" for place in range(10)]
    weights = np.eye(10)[peaks]
    attention = Attention(times, [*tokens, "</s>"], weights)
    predictor = SimpleNamespace(
        source="audio", attention=lambda inputs: [attention] * len(inputs)
    )
    transcripts = SimpleNamespace(
        raw=lambda name: ["?"], texts=[text], spans=[spans]
    )
    [line] = attention_on_letters(predictor, transcripts)
    return [float(part[:-1]) for part in line.split() if part.endswith("%")]


def test_letters_that_are_heard():
    """The second goes back, and the third is far from its sound."""
    spans = [(0.0, 0.2), (0.3, 0.4), (0.5, 0.6)]
    assert heard("\u2581ab", [0, 1, 3, 9], spans[:2], "ab") == [100, 100]
    tokens = ["\u2581a", "b", "c"]
    assert heard(tokens, [4, 3, 9, 9], spans, "abc") == [50, 33.3]
    found = heard(["\u2581x"], [0, 0], spans[:1], "a")
    assert found == [0, 0] and all(map(math.isfinite, found))
