"""kseq compare: whether one model is better than another."""

import argparse
import json
import os
import sys

from kseq.command_line.search_options import option_of
from kseq.commands.capabilities import Capabilities
from kseq.commands.evaluate import opened_evaluation
from kseq.commands.read_chunks import count_invalid, warn_of_invalid
from kseq.data import read_lines
from kseq.data.files.url_files import copy_urls
from kseq.files.atomic_write import atomic_write, unique_path
from kseq.files.model_path import is_run
from kseq.sources import SOURCES, source_named
from kseq.terminal import progress, single_line
from kseq.user_error import UserError


def run(options):
    """Prints scores of both, their differences and the lines that differ."""
    from kseq.evaluation import Comparison

    copy_urls(options)
    paths = options.a, options.b
    if options.allow_op and all(
        os.path.isfile(path) or is_run(path) for path in paths
    ):
        raise UserError("--allow-op is for an export; neither A nor B is one.")
    names = list(map(str, paths))
    systems = [_System(path, options) for path in paths]
    examples = next(filter(None, (each.evaluation for each in systems)), None)
    if examples is None:
        examples = _examples_in_files(options)
    metrics = _metrics(examples.metrics, options.metrics)
    for each in systems:
        each.check(examples)
    outputs = [each.outputs() for each in systems]
    with progress("Comparing", Comparison.resamples, "resamples") as advance:
        compared = Comparison(
            examples.sources,
            examples.references,
            outputs,
            metrics,
            advance,
        )
    if options.json:
        text = json.dumps(_record(compared, names, options.show))
    else:
        text = "\n".join(_report(compared, names, options.show))
    try:
        if options.page:  # first: nobody may read the report to its end
            page = compared.page(
                names,
                lambda system, places: systems[system].attentions(places),
            )
            content = page.encode("utf-8", "replace")
            atomic_write(options.page, content, unique_path(options.page))
    finally:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()


class _System:
    """A model, or a file with the answers of one.

    Args:
        path: `pathlib.Path` of either.
        options: of the command.

    Attributes:
        evaluation: of the model; None of a file.

    Raises:
        UserError: if the model does not answer with texts.
    """

    def __init__(self, path, options):
        self.path = path
        self.evaluation = None
        self._of_table = options.reference is None
        self._answers = None  # of a file
        if os.path.isfile(path):
            lines = [line.text for line in read_lines(path)]
            warn_of_invalid(path, count_invalid(lines))
            self._answers = [line.decode("utf-8", "replace") for line in lines]
            return
        model = Capabilities(path)
        if not (model.answer.has_metrics and "metrics" in model.source.options):
            raise UserError(
                f"{path} has no answers with references: compare is for models "
                "that answer with a text, and for files of answers."
            )
        given = vars(options) | {"path": path, "ensemble": None}
        if is_run(path):
            given["allow_op"] = ()  # it is for the other one
        self.evaluation = opened_evaluation(model, argparse.Namespace(**given))

    def check(self, examples):
        """UserError if these are not the examples that it answers."""
        if self.evaluation is None:
            if len(self._answers) != len(examples):
                rows = ": rows of a table with the same source are one example"
                raise UserError(
                    f"{self.path} has {len(self._answers)} answers, for "
                    f"{len(examples)} examples{rows if self._of_table else ''}."
                )
        elif self.evaluation.references != examples.references:
            raise UserError("A and B read different examples in these files.")

    def outputs(self):
        """The answers, a list of str."""
        if self.evaluation is None:
            return self._answers
        count = len(self.evaluation)
        with progress(f"Answers of {self.path}", count, "lines") as advance:
            self.evaluation.generate(advance)
        return self.evaluation.outputs

    def attentions(self, places):
        """A dict, place of an example -> its attention; None if it has none."""
        found = self.evaluation
        if found is None or "explain" not in found.predictor.signatures:
            return None
        try:
            found.predictor.explain([])
        except UserError:  # a model without attention
            return None
        inputs = [found.inputs[place] for place in places]
        explained = found.predictor.attention(inputs)
        return dict(zip(places, explained, strict=True))


def _examples_in_files(options):
    """The examples of two files of answers."""
    from kseq.evaluation import Translations

    text = source_named("text")
    of_models = {name for source in SOURCES for name in source.options}
    for name in ("batch_size", *sorted(of_models - text.options)):
        if getattr(options, name):
            raise UserError(
                f"{option_of(name)} is for a model; A and B are files of "
                "answers."
            )
    examples = text.read_examples(None, options)
    return Translations(None, examples)


def _metrics(default, names):
    from kseq.evaluation import has_line_statistics, metrics_named

    if not names:
        return list(filter(has_line_statistics, default))
    chosen = metrics_named(names)
    for metric in chosen:
        if not has_line_statistics(metric):
            raise UserError(
                f"--metrics {metric.__name__}: it depends on all lines at "
                "once, and cannot be compared by resampling."
            )
    return chosen


def _report(compared, names, show):
    """The lines of the report."""
    for letter, name in zip("AB", names, strict=True):
        yield f"{letter}: {single_line(name)}"
    yield f"{len(compared):,} examples"
    for caption, header, rows in compared.tables():
        yield f"\n{caption}" if caption else ""
        yield from _aligned([header, *rows])
    yield f"\n{compared.verdict()}"
    yield compared.balance()
    for title, lines in (
        ("worse", compared.losses(show)),
        ("better", compared.gains(show)),
    ):
        for line in lines:
            yield f"\nLine {line.place + 1}: B is {title}"
            yield f"  source     {single_line(line.source)}"
            for reference in line.references:
                yield f"  reference  {single_line(reference)}"
            for letter, text, value in zip(
                "AB", line.outputs, line.values, strict=True
            ):
                yield f"  {letter} {value:7.2f}  {single_line(text)}"
    yield ""
    yield from compared.signatures()


def _aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *row in rows:
        cells = [f"{name:<{widths[0]}}"]
        cells += [
            f"{text:>{width}}"
            for text, width in zip(row, widths[1:], strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _record(compared, names, show):
    def lines(found):
        return [line._asdict() for line in found]

    return {
        "a": names[0],
        "b": names[1],
        "examples": len(compared),
        "scores": [scores._asdict() for scores in compared.scores],
        "by_length": lines(compared.by_length()),
        "by_frequency": lines(compared.by_frequency()),
        "losses": lines(compared.losses(show)),
        "gains": lines(compared.gains(show)),
    }
