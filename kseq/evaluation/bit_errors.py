"""Evaluation of predicted bits."""

import json

import numpy as np

from kseq.evaluation.score import Score

_SMALLEST = 1e-7  # probability of a bit, of float32
_IN_A_ROW = 32  # steps of a sequence that are shown as text


class BitErrors:
    """Wrong bits of sequences, and the cost of a sequence in bits.

    A bit is wrong where its probability is on the wrong side of 1/2. The cost
    is the cross-entropy in bits. Both are sums over a sequence, and means
    over all sequences of a set.

    Args:
        predictor: a `kseq.serving.TransducerPredictor`.
        sets: dict, name -> list of `BinarySequences`, one sequence each; the
            scores have the names as suffixes, except for the name "".
        best: function of `BinarySequences` with a batch axis; gives the best
            possible probabilities (B, T, D); or None.

    Attributes:
        results: dict, `bits_wrong`, `error` and `cost` of each set -> `Score`,
            after `scores`. `error` is the fraction of wrong bits.

    Raises:
        ValueError: if a set is empty.

    Reference:
        Graves et al. 2014, arXiv:1410.5401, figures 3 and 13.
    """

    columns = ("inputs", "targets", "outputs")
    hints = ()

    def __init__(self, predictor, sets, best=None):
        for name, examples in sets.items():
            if not examples:
                raise ValueError(
                    f"A set must have at least one example. Received: {name}"
                )
        self.predictor = predictor
        self.sets = sets
        self.best = best
        self.results = {}
        self._first = []  # outputs of the first set

    def __len__(self):
        return sum(map(len, self.sets.values()))

    def scores(self, progress=None):
        """Predicts all sequences.

        Args:
            progress: see `kseq.serving.predict_batches`.

        Returns:
            A dict, name -> float.
        """
        self.results = {}
        for number, (name, examples) in enumerate(self.sets.items()):
            inputs = [example.inputs for example in examples]
            found = self.predictor(inputs, progress)
            if number == 0:
                self._first = found
            self._score(name, examples, found)
        return {name: score.value for name, score in self.results.items()}

    def _score(self, name, examples, found):
        wrong, cost, asked, least = [], [], [], []
        for example, probabilities in zip(examples, found, strict=True):
            weights = example.weights[:, None]
            of_right = _of_right(example, probabilities)
            # One half is wrong, whatever the bit is.
            wrong.append(np.sum((of_right <= 0.5) * weights))
            cost.append(-np.sum(np.log2(of_right) * weights))
            asked.append(weights.sum() * example.targets.shape[1])
            if self.best is not None:
                one = [part[None] for part in example]
                best = np.asarray(self.best(type(example)(*one)))[0]
                of_right = _of_right(example, best)
                least.append(-np.sum(np.log2(of_right) * weights))
        error = float(np.sum(wrong) / np.sum(asked))
        values = {
            "bits_wrong": (np.mean(wrong), "wrong bits per sequence {:.3f}"),
            "error": (error, "wrong bits {:.3%}"),
            "cost": (np.mean(cost), "cost per sequence {:.3f} bits"),
        }
        suffix = name and f"_{name}"
        signature = f"  sequences:{len(examples)}"
        for key, (value, text) in values.items():
            line = text.format(value) + signature
            if key == "cost" and least:
                line += f"|best possible:{np.mean(least):.3f}"
            self.results[key + suffix] = Score(float(value), line)

    def report(self):
        """The scores as lines of text, after `scores`."""
        return [
            f"{name.replace('_', ' ')}: {self.results[key].text}".lstrip(": ")
            for name in self.sets
            for key in (
                kind + (name and f"_{name}") for kind in ("error", "cost")
            )
        ]

    def rows(self, count):
        """The first sequences of the first set as text, after `scores`.

        A vector of bits is a group of digits; steps without a target are
        left out of targets and outputs.
        """
        examples = next(iter(self.sets.values()))
        return [
            (
                _numbers(example.inputs),
                _bits(example.targets, example.weights),
                _bits(outputs, example.weights),
            )
            for example, outputs in zip(
                examples[:count], self._first, strict=False
            )
        ]

    def pictures(self, count):
        """The longest sequence of each of the first sets, with its memory.

        Args:
            count: int, maximum number of pictures.

        Returns:
            A dict, name -> PNG image, bytes; empty for a model without memory.
        """
        if "explain" not in self.predictor.signatures:
            return {}
        from kseq.pictures import memory_picture

        found = {}
        for name, examples in list(self.sets.items())[:count]:
            longest = max(examples, key=lambda example: len(example.inputs))
            [use] = self.predictor.explain([longest.inputs])
            asked = longest.weights[:, None] > 0
            targets = np.where(asked, longest.targets, np.nan)
            picture = memory_picture(*use[:4], targets=targets)
            found["memory" + (name and f"_{name}")] = picture
        return found


def _numbers(inputs):
    rounded = np.round(inputs[:_IN_A_ROW].astype(float), 2)
    return json.dumps(rounded.tolist())


def _bits(values, weights):
    rows = values[weights > 0][:_IN_A_ROW] > 0.5
    return " ".join("".join("01"[int(bit)] for bit in row) for row in rows)


def _of_right(example, probabilities):
    """The probability of the right value of each bit, (T, D)."""
    is_one = example.targets > 0.5
    of_right = np.where(is_one, probabilities, 1 - probabilities)
    return np.maximum(of_right.astype(float), _SMALLEST)
