"""Comparison of two systems by their answers to the same examples."""

import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from kseq.evaluation.comet import with_sources
from kseq.evaluation.line_statistics import line_statistics
from kseq.evaluation.resampling import (
    RESAMPLES,
    SEED,
    TRIALS,
    bootstrap,
    bootstrap_p_value,
    half_width,
    interval,
    randomization_p_value,
    randomized_differences,
)
from kseq.evaluation.score import check_lengths, listed
from kseq.pictures import comparison_page

LEVEL = 0.05  # of significance
_SHOWN = 25  # lines of a page, at which the second system is better; or worse
_GROUPS = 4  # of lines, by length
_LEAST = 40  # lines that are divided into groups
_P_VALUES = ("p, bootstrap", "p, randomization")
_FREQUENCIES = (1, 2, 5, 20)  # the smallest of each group of words


class PairedScores(NamedTuple):
    """The values of a metric for two systems, and whether they differ.

    Args:
        metric: str, its name in `metrics_named`.
        label: str, as it is printed.
        values: (float, float), 0 to 100; error rates may be higher.
        half_widths: (float, float), of the 95 % confidence intervals.
        interval: (float, float), the 95 % confidence interval of the
            difference, the second value minus the first.
        p_bootstrap, p_randomization: float, two-sided p-values of paired
            bootstrap resampling and of approximate randomization.
        less_is_better: bool.
        signature: str, how all of this was computed, as sacreBLEU writes it.
    """

    metric: str
    label: str
    values: tuple[float, float]
    half_widths: tuple[float, float]
    interval: tuple[float, float]
    p_bootstrap: float
    p_randomization: float
    less_is_better: bool
    signature: str

    @property
    def difference(self):
        """The second value minus the first."""
        return self.values[1] - self.values[0]

    @property
    def better(self):
        """0 or 1, the system that is better by both tests; None if neither."""
        if max(self.p_bootstrap, self.p_randomization) >= LEVEL:
            return None
        return int((self.difference > 0) != self.less_is_better)


class ComparedLine(NamedTuple):
    """An example that two systems answer differently.

    Args:
        place: int, its position in the data, from 0.
        source: str.
        references: list of str.
        outputs: (str, str).
        values: (float, float), of this example alone.
    """

    place: int
    source: str
    references: list[str]
    outputs: tuple[str, str]
    values: tuple[float, float]


class ComparedGroup(NamedTuple):
    """The values of two systems for a part of the data.

    Args:
        least, most: int, bounds of what the examples or words are grouped by;
            `most` may be None.
        size: int, how many there are.
        values: (float, float).
    """

    least: int
    most: int | None
    size: int
    values: tuple[float, float]


class Comparison:
    """Answers of two systems to the same examples, compared.

    Args:
        sources: list of str, what was answered, as it is shown.
        references: list of str, or of lists of several.
        outputs: two lists of str, the answers of either system.
        metrics: functions of outputs and references that can be resampled,
            see `has_line_statistics`.
        progress: callable of the number of resamples done since its last
            call; or None. There are `Comparison.resamples`.

    Attributes:
        scores: list of `PairedScores`, one for each metric.

    Raises:
        ValueError: if the lists are empty or differ in length.

    Example:
        >>> from kseq.evaluation import exact_match
        >>> right, wrong = ["one", "two", "three"], ["one", "too", "tree"]
        >>> compared = Comparison(right, right, [wrong, right], [exact_match])
        >>> [scores] = compared.scores
        >>> round(scores.difference, 2), scores.better is None
        (66.67, True)
        >>> [line.place for line in compared.gains(9)]
        [1, 2]

    Reference:
        Koehn 2004, aclanthology.org/W04-3250; Riezler and Maxwell 2005,
        aclanthology.org/W05-0908. Groups: Neubig et al. 2019,
        arXiv:1903.07926.
    """

    resamples = RESAMPLES + TRIALS

    def __init__(self, sources, references, outputs, metrics, progress=None):
        check_lengths(sources, references)
        self.sources = sources
        self.references = listed(references)
        self.outputs = outputs
        metrics = with_sources(metrics, sources)
        self._names = [metric.__name__ for metric in metrics]
        # (systems, metrics)
        self._statistics = [
            [line_statistics(metric, each, references) for metric in metrics]
            for each in outputs
        ]
        self.scores = self._scores(progress)
        # Of a single line BLEU is zero or smoothed, whereas chrF is not.
        self._chosen = self._names.index("chrf") if "chrf" in self._names else 0
        self._ranked = self._ranked_lines()

    def __len__(self):
        return len(self.sources)

    def _scores(self, progress):
        first, second = self._statistics
        values = bootstrap([*first, *second], progress)
        values = values.reshape(2, len(first), -1)
        randomized = randomized_differences(first, second, progress)
        found = []
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            resampled = values[:, number]
            differences = resampled[1] - resampled[0]
            totals = one.total(), other.total()
            observed = totals[1] - totals[0]
            how = f"bs:{RESAMPLES}|ar:{TRIALS}|seed:{SEED}"
            found.append(
                PairedScores(
                    metric=self._names[number],
                    label=one.label,
                    values=totals,
                    half_widths=tuple(map(half_width, resampled)),
                    interval=interval(differences),
                    p_bootstrap=bootstrap_p_value(differences, observed),
                    p_randomization=randomization_p_value(
                        randomized[number], observed
                    ),
                    less_is_better=one.less_is_better,
                    signature="|".join(filter(None, (how, one.signature))),
                )
            )
        return found

    @property
    def ranked_by(self):
        """The `PairedScores` of the metric by which lines are compared.

        That is chrF if it is one of the metrics, otherwise the first one.
        """
        return self.scores[self._chosen]

    def _ranked_lines(self):
        """Lines and by how much the second system is better, best first."""
        pair = [each[self._chosen] for each in self._statistics]
        sign = -1 if pair[0].less_is_better else 1
        gains = []
        for place, outputs in enumerate(zip(*self.outputs, strict=True)):
            if outputs[0] == outputs[1]:
                continue
            one, other = (each.value(each.rows[place]) for each in pair)
            if one != other:
                gains.append((sign * (other - one), place, (one, other)))
        return sorted(gains, key=lambda gain: (-gain[0], gain[1]))

    def counts(self):
        """How many lines are better, equal and worse: (int, int, int)."""
        better = sum(gain > 0 for gain, *_ in self._ranked)
        worse = len(self._ranked) - better
        return better, len(self) - better - worse, worse

    def gains(self, count):
        """The lines at which the second system is better, the most first.

        Args:
            count: int, the largest number of them.

        Returns:
            A list of `ComparedLine`.
        """
        found = (line for line in self._ranked if line[0] > 0)
        return self._lines(found, count)

    def losses(self, count):
        """The lines at which the second system is worse, the most first."""
        found = [line for line in self._ranked if line[0] < 0]
        return self._lines(sorted(found), count)

    def _lines(self, ranked, count):
        return [
            ComparedLine(
                place,
                self.sources[place],
                self.references[place],
                tuple(each[place] for each in self.outputs),
                values,
            )
            for _, place, values in itertools.islice(ranked, count)
        ]

    def verdict(self):
        """One sentence: which differences are significant at 0.05."""
        found = [scores for scores in self.scores if scores.better is not None]
        if not found:
            return f"No difference is significant at {LEVEL} by both tests."
        better = []
        for system, letter in enumerate("AB"):
            labels = [each.label for each in found if each.better == system]
            if labels:
                better.append(f"{letter} is better in {', '.join(labels)}")
        return f"{'; '.join(better)}: significant at {LEVEL} by both tests."

    def balance(self):
        """One sentence: at how many lines either system is better."""
        better, equal, worse = self.counts()
        return (
            f"By {self.ranked_by.label}, B is better at {better:,} lines, "
            f"worse at {worse:,} and equal at {equal:,}."
        )

    def tables(self):
        """The scores and the groups as text.

        Returns:
            A list of (caption, header, rows): str, a list of str, a list of
            lists of str.
        """
        first = self.scores[0].label
        groups = [
            (f"{first} by characters of the reference", self.by_length()),
            ("F1 of words by frequency in the references", self.by_frequency()),
        ]
        header = ["", "A", "B", "B - A", "95 % interval", *_P_VALUES]
        tables = [("", header, list(map(_score_row, self.scores)))]
        for caption, found in groups:
            if found:
                header = ["", "count", "A", "B", "B - A"]
                tables.append((caption, header, list(map(_group_row, found))))
        return tables

    def signatures(self):
        """How each metric was computed, a list of str."""
        return [f"{scores.label}  {scores.signature}" for scores in self.scores]

    def page(self, names, attend=lambda system, places: None):
        """An HTML page, see `kseq.pictures.comparison_page`.

        Args:
            names: two str, of the systems.
            attend: function of the number of a system, 0 or 1, and of a list
                of places; gives a dict, place -> `kseq.serving.Attention`, or
                None.
        """
        lines = self.losses(_SHOWN), self.gains(_SHOWN)
        places = [line.place for each in lines for line in each]
        attentions = [attend(system, places) for system in (0, 1)]
        return comparison_page(self, names, *lines, attentions)

    def by_length(self):
        """The first metric by the length of the references.

        Returns:
            A list of four `ComparedGroup` with the same number of lines,
            bounded by characters of their first references; empty if there
            are fewer than 40 lines, or all have the same length.
        """
        lengths = np.array([len(several[0]) for several in self.references])
        if len(self) < _LEAST or lengths.min() == lengths.max():
            return []
        order = np.argsort(lengths, kind="stable")
        return [
            ComparedGroup(
                int(lengths[part[0]]),
                int(lengths[part[-1]]),
                len(part),
                tuple(each[0].total(part) for each in self._statistics),
            )
            for part in np.array_split(order, _GROUPS)
        ]

    def by_frequency(self):
        """F1 of words, 0 to 100, by their frequency in the references.

        A word of an answer is right as often as its first reference has it.
        Words are those of BLEU's tokenizer 13a, in lower case.

        Returns:
            A list of `ComparedGroup`, whose sizes are numbers of words of the
            references.
        """
        words = _words(several[0] for several in self.references)
        frequencies = Counter()
        for counts in words:  # sum() would copy all of them for each line
            frequencies.update(counts)
        answers = [_words(each) for each in self.outputs]
        bounds = [*_FREQUENCIES[1:], None]
        groups = []
        for least, below in zip(_FREQUENCIES, bounds, strict=True):
            chosen = {
                word
                for word, times in frequencies.items()
                if times >= least and (below is None or times < below)
            }
            size = sum(frequencies[word] for word in chosen)
            if size:
                most = None if below is None else below - 1
                values = tuple(_f1(words, each, chosen) for each in answers)
                groups.append(ComparedGroup(least, most, size, values))
        return groups


def _score_row(scores):
    values = [
        f"{value:.2f} ± {width:.2f}"
        for value, width in zip(scores.values, scores.half_widths, strict=True)
    ]
    low, high = scores.interval
    return [
        scores.label,
        *values,
        f"{scores.difference:+.2f}",
        f"{low:+.2f} to {high:+.2f}",
        f"{scores.p_bootstrap:.4f}",
        f"{scores.p_randomization:.4f}",
    ]


def _group_row(group):
    least, most, size, values = group
    bounds = f"{least} to {most}" if most is not None else f"{least} or more"
    return [
        f"{least}" if least == most else bounds,
        f"{size:,}",
        *(f"{value:.2f}" for value in values),
        f"{values[1] - values[0]:+.2f}",
    ]


def _words(texts):
    split = Tokenizer13a()
    return [Counter(split(text).lower().split()) for text in texts]


def _f1(references, outputs, chosen):
    common = total = 0
    for reference, output in zip(references, outputs, strict=True):
        for word in (reference.keys() | output.keys()) & chosen:
            common += min(reference[word], output[word])
            total += reference[word] + output[word]
    return 100 * 2 * common / total if total else 0.0
